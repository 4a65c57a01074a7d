/** Where partitions begin and end, and which offset was written at a time. */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { AdminOptions } from './admin_options.ts';
import type { Cluster } from './cluster.ts';
import type { TopicPartition } from './consumer/topic_partition.ts';
import { brokerError } from './errors.ts';

/**
 * `latest` is what consumers may read up to (the high watermark, or the last stable offset for `readCommitted`); a number
 * is a time in milliseconds since 1970, and means the first record at or after it; `maxTimestamp` means the record with the
 * latest timestamp (KIP-734).
 */
export type OffsetSpec = 'earliest' | 'latest' | 'maxTimestamp' | number;

export interface ListedOffset {
  readonly topic: string;
  readonly partition: number;
  /** -1 when there is no such record. */
  readonly offset: number;
  /** Of the record, in milliseconds; -1 for `earliest` and `latest`, and when there is none. */
  readonly timestampMs: number;
  readonly leaderEpoch: number;
}

const specials = { latest: -1n, earliest: -2n, maxTimestamp: -3n } as const;
const maxTimestampVersion = 7;

/**
 * One request to each leader; in the order of `partitions`. Throws UNKNOWN_TOPIC_OR_PARTITION, LEADER_NOT_AVAILABLE, …
 */
export async function listOffsets(
  cluster: Cluster,
  partitions: readonly TopicPartition[],
  spec: OffsetSpec,
  options: AdminOptions & { readonly isReadCommitted?: boolean | undefined } = {},
): Promise<ListedOffset[]> {
  const names = new Set(partitions.map(({ topic }) => topic));
  await Promise.all([...names].map((name) => cluster.topic(name, options)));
  const byLeader = Map.groupBy(
    partitions,
    ({ topic, partition }) => cluster.metadata.partition(topic, partition)?.leaderId ?? -1,
  );
  const found = new Map<string, ListedOffset>();
  await Promise.all(
    [...byLeader.values()].map(async (group) => {
      for (const one of await askLeader(cluster, group, spec, options)) found.set(keyOf(one), one);
    }),
  );
  return partitions.map((one) => found.get(keyOf(one)) as ListedOffset);
}

/** All at once; what the leader does not lead any more is asked for one by one, by the newest metadata. */
async function askLeader(
  cluster: Cluster,
  partitions: readonly TopicPartition[],
  spec: OffsetSpec,
  options: AdminOptions & { readonly isReadCommitted?: boolean | undefined },
): Promise<ListedOffset[]> {
  const first = partitions[0] as TopicPartition;
  const isOne = partitions.length === 1;
  const timestamp = typeof spec === 'number' ? BigInt(spec) : specials[spec];
  const topics = [...Map.groupBy(partitions, ({ topic }) => topic)].map(([name, list]) => ({
    name,
    partitions: list.map(({ partition }) => ({ partitionIndex: partition, timestamp })),
  }));
  const reply = await cluster.request(
    first,
    'ListOffsets',
    (version) => ({
      replicaId: -1,
      topics,
      ...(version >= 2 ? { isolationLevel: options.isReadCommitted === true ? 1 : 0 } : {}),
    }),
    {
      ...{ signal: options.signal, timeoutMs: options.timeoutMs },
      ...(spec === 'maxTimestamp' ? { minVersion: maxTimestampVersion } : {}),
      ...(isOne
        ? { errorOf: (answer) => answer.topics[0]?.partitions[0]?.errorCode ?? ErrorCode.NONE }
        : {}),
    },
  );
  const listed: ListedOffset[] = [];
  for (const { name: topic, partitions: answers } of reply.topics) {
    for (const {
      partitionIndex: partition,
      errorCode,
      offset,
      timestamp: ms,
      leaderEpoch,
    } of answers) {
      if (errorCode === ErrorCode.NONE)
        listed.push({
          ...{ topic, partition, leaderEpoch },
          ...{ offset: Number(offset), timestampMs: Number(ms) },
        });
      else if (isOne) throw brokerError(errorCode, `listing offsets of ${topic}-${partition}`);
      else listed.push(...(await askLeader(cluster, [{ topic, partition }], spec, options)));
    }
  }
  return listed;
}

function keyOf({ topic, partition }: TopicPartition): string {
  return `${topic} ${partition}`;
}
