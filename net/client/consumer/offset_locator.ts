/**
 * Finds where partitions are to be read from: the group's committed offsets, and offsets by time (ListOffsets). Partitions
 * that wait for the same answer share a request.
 *
 * Thread: the client's. One run at a time; what comes up meanwhile is looked at by the next one.
 */
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { errorInfo } from '../../protocol/errors.ts';
import type { Cluster } from '../cluster.ts';
import { asksForMetadata, brokerError, ClientCode, MillraceError } from '../errors.ts';
import { sleep } from '../retry.ts';
import type { CommittedOffset } from './committed_offsets.ts';
import { retryAfterMs } from './membership.ts';
import { earliestTimestamp, latestTimestamp, type PartitionCursor } from './partition_cursor.ts';
import { keyOf, type TopicPartition } from './topic_partition.ts';

type Cursor = PartitionCursor<unknown, unknown>;

export interface LocatorOwner {
  readonly cursors: Iterable<Cursor>;
  /** Of the group; null without one. */
  readonly fetchCommitted:
    | ((
        partitions: readonly TopicPartition[],
        signal: AbortSignal,
      ) => Promise<ReadonlyMap<string, CommittedOffset>>)
    | null;
  /** Some have a position now, or a failure for the reader. */
  onLocated(cursors: readonly Cursor[]): void;
}

export interface ListedOffset extends TopicPartition {
  /** -1: no record is as young. */
  readonly offset: number;
  readonly leaderEpoch: number;
  readonly timestampMs: number;
}

/** Of the coordinator: another epoch by now, so that the same question may be answered. */
const outdated: ReadonlySet<string> = new Set([
  'STALE_MEMBER_EPOCH',
  'UNKNOWN_MEMBER_ID',
  'UNSTABLE_OFFSET_COMMIT',
]);
/** With leader epochs (KIP-320). */
const listVersionMin = 4;

export class OffsetLocator {
  readonly #cluster: Cluster;
  readonly #owner: LocatorOwner;
  readonly #isCommitted: boolean;
  readonly #signal: AbortSignal;
  #running: Promise<void> | null = null;
  #failures = 0;

  /** `isCommitted`: the latest offset is that of the last stable one (read_committed). */
  constructor(cluster: Cluster, owner: LocatorOwner, isCommitted: boolean, signal: AbortSignal) {
    this.#cluster = cluster;
    this.#owner = owner;
    this.#isCommitted = isCommitted;
    this.#signal = signal;
  }

  /** Looks for all partitions that need it. Resolves when none does any more. Never rejects. */
  run(): Promise<void> {
    this.#running ??= this.#runAll().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  /** Offsets by timestamp, or one of the special values, of any partitions. Tries again as the cluster does. */
  async list(
    wanted: ReadonlyMap<TopicPartition, number>,
    signal: AbortSignal | undefined,
  ): Promise<ListedOffset[]> {
    const found: ListedOffset[] = [];
    let left = new Map(wanted);
    for (let failures = 1; left.size > 0; failures += 1) {
      const round = await this.#listOnce(left, signal);
      found.push(...round.found);
      for (const error of round.failed.values()) throw error;
      left = new Map([...left].filter(([one]) => round.again.has(keyOf(one))));
      if (left.size > 0) await sleep(retryAfterMs(failures, Math.random()), signal);
    }
    return found;
  }

  async #runAll(): Promise<void> {
    while (!this.#signal.aborted) {
      const cursors = [...this.#owner.cursors];
      const toFetch = cursors.filter(({ state }) => state === 'committed');
      const toList = cursors.filter(
        ({ state, failure }) => state === 'listing' && failure === null,
      );
      if (toFetch.length === 0 && toList.length === 0) return;
      const isDone = await this.#attempt(toFetch, toList);
      if (isDone) this.#failures = 0;
      else {
        this.#failures += 1;
        await sleep(retryAfterMs(this.#failures, Math.random()), this.#signal).catch(() => {});
      }
    }
  }

  /** False when some have to be looked for again after a while. */
  async #attempt(toFetch: readonly Cursor[], toList: readonly Cursor[]): Promise<boolean> {
    try {
      if (toFetch.length > 0) await this.#fetchCommitted(toFetch);
      if (toList.length === 0) return true;
      return await this.#locateByTime(toList);
    } catch (error) {
      if (this.#signal.aborted) return true;
      const told =
        error instanceof MillraceError
          ? error
          : new MillraceError(ClientCode.INVALID_ARGUMENT, `${error}`, { cause: error });
      if (told.isRetriable || outdated.has(told.code)) return false;
      const cursors = [...toFetch, ...toList].filter(
        ({ state }) => state === 'committed' || state === 'listing',
      );
      for (const cursor of cursors) {
        cursor.state = 'listing';
        cursor.failure = told;
      }
      this.#owner.onLocated(cursors);
      return true;
    }
  }

  async #fetchCommitted(cursors: readonly Cursor[]): Promise<void> {
    const versions = cursors.map(({ version }) => version);
    const offsets = await this.#owner.fetchCommitted?.(cursors, this.#signal);
    for (const [index, cursor] of cursors.entries()) {
      if (cursor.version !== versions[index] || cursor.state !== 'committed') continue;
      const found = offsets?.get(keyOf(cursor));
      if (found === undefined) cursor.reset();
      else cursor.seek(found.offset, found.leaderEpoch);
    }
    this.#owner.onLocated(cursors);
  }

  async #locateByTime(cursors: readonly Cursor[]): Promise<boolean> {
    const versions = new Map(cursors.map((cursor) => [cursor, cursor.version]));
    const isWanted = (cursor: Cursor): boolean =>
      versions.get(cursor) === cursor.version && cursor.state === 'listing';
    const asked = new Map<Cursor, number>(cursors.map((one) => [one, one.timestamp]));
    const { found, again, failed } = await this.#listOnce(asked, this.#signal);
    const byKey = new Map(found.map((one) => [keyOf(one), one]));
    for (const cursor of cursors) {
      if (!isWanted(cursor)) continue;
      const listed = byKey.get(keyOf(cursor));
      const failure = failed.get(keyOf(cursor));
      if (failure !== undefined) cursor.failure = failure;
      else if (listed === undefined) continue;
      // Nothing is as young: what comes will be.
      else if (listed.offset < 0) cursor.seekByTime(latestTimestamp);
      else cursor.seek(listed.offset, listed.leaderEpoch);
    }
    this.#owner.onLocated(cursors);
    return again.size === 0;
  }

  /** One request to each leader. `again`: keys of those for which that may help. */
  async #listOnce(
    wanted: ReadonlyMap<TopicPartition, number>,
    signal: AbortSignal | undefined,
  ): Promise<{
    found: ListedOffset[];
    again: ReadonlySet<string>;
    failed: ReadonlyMap<string, MillraceError>;
  }> {
    const found: ListedOffset[] = [];
    const again = new Set<string>();
    const failed = new Map<string, MillraceError>();
    const byLeader = new Map<number, TopicPartition[]>();
    await Promise.all(
      [...new Set([...wanted.keys()].map(({ topic }) => topic))].map((topic) =>
        this.#cluster.topic(topic, { signal }),
      ),
    );
    for (const one of wanted.keys()) {
      const leaderId = this.#cluster.metadata.partition(one.topic, one.partition)?.leaderId ?? -1;
      byLeader.set(leaderId, [...(byLeader.get(leaderId) ?? []), one]);
    }
    let isMoved = byLeader.has(-1);
    const askOne = async (leaderId: number, partitions: TopicPartition[]): Promise<void> => {
      if (leaderId < 0) {
        for (const one of partitions) again.add(keyOf(one));
        return;
      }
      try {
        for (const answer of await this.#ask(leaderId, partitions, wanted, signal)) {
          const { errorCode, ...listed } = answer;
          if (errorCode === ErrorCode.NONE) found.push(listed);
          else if (errorInfo(errorCode).retriable || asksForMetadata(errorCode)) {
            isMoved ||= asksForMetadata(errorCode);
            again.add(keyOf(listed));
          } else failed.set(keyOf(listed), brokerError(errorCode, `look up ${keyOf(listed)}`));
        }
      } catch (error) {
        if (!(error instanceof MillraceError) || !error.isRetriable) throw error;
        isMoved = true;
        for (const one of partitions) again.add(keyOf(one));
      }
    };
    await Promise.all([...byLeader].map(([id, partitions]) => askOne(id, partitions)));
    if (isMoved) await this.#cluster.refresh().catch(() => undefined);
    return { found, again, failed };
  }

  async #ask(
    leaderId: number,
    partitions: readonly TopicPartition[],
    wanted: ReadonlyMap<TopicPartition, number>,
    signal: AbortSignal | undefined,
  ): Promise<(ListedOffset & { errorCode: number })[]> {
    const topics = new Map<
      string,
      { partitionIndex: number; currentLeaderEpoch: number; timestamp: number }[]
    >();
    for (const one of partitions) {
      const { topic, partition: partitionIndex } = one;
      const known = this.#cluster.metadata.partition(topic, partitionIndex);
      const currentLeaderEpoch = known?.leaderEpoch ?? -1;
      const timestamp = wanted.get(one) ?? earliestTimestamp;
      const list = topics.get(topic) ?? [];
      topics.set(topic, list);
      list.push({ partitionIndex, currentLeaderEpoch, timestamp });
    }
    const connection = await this.#cluster.connection(leaderId, undefined, signal);
    const answer = await connection.request(
      'ListOffsets',
      {
        replicaId: -1,
        isolationLevel: this.#isCommitted ? 1 : 0,
        topics: [...topics].map(([name, list]) => ({ name, partitions: list })),
      },
      { timeoutMs: this.#cluster.requestTimeoutMs, signal, minVersion: listVersionMin },
    );
    return answer.topics.flatMap(({ name: topic, partitions: list }) =>
      list.map(({ partitionIndex: partition, errorCode, offset, leaderEpoch, timestamp }) => ({
        ...{ topic, partition, errorCode, leaderEpoch },
        offset: Number(offset),
        timestampMs: Number(timestamp),
      })),
    );
  }
}
