/** One Produce request: batches of several partitions, at most one of each. */
import type {
  ProduceRequestInput,
  ProduceResponse,
  ProduceResponsePartitionProduceResponse,
} from '../protocol/messages.gen.ts';
import type { Done, HeldRecords } from './call.ts';
import type { BrokerConnection } from './connection.ts';
import type { MillraceError } from './errors.ts';
import type { MetadataCache } from './metadata.ts';
import type { PartitionQueue } from './partition_queue.ts';
import type { RecordBatch } from './record_batch.ts';

export interface Part {
  readonly queue: PartitionQueue;
  readonly batch: RecordBatch;
  readonly records: HeldRecords;
}

/** Format 2 of record batches came with it. */
const versionMin = 3;
/** From this version on topics are named by id alone (KIP-516). */
const topicIdVersion = 13;

/** Batches up to this size are copied into the request: one piece goes to the socket for less than three do. */
const copiedBytesMax = 16 * 1024;

export class ProduceRequest {
  readonly parts: Part[] = [];
  /** Of the batches. */
  byteLength = 0;
  #isByTopicId: boolean = false;

  add(part: Part): void {
    this.parts.push(part);
    this.byteLength += part.records.byteLength;
  }

  /** `done` is called once, perhaps before this returns. */
  send(
    connection: BrokerConnection,
    metadata: MetadataCache,
    acks: number,
    timeoutMs: number,
    done: Done<'Produce'>,
  ): void {
    let version: number;
    try {
      const hasIds = this.parts.every(({ queue }) => idOf(metadata, queue) !== null);
      const versionMax = hasIds ? Number.POSITIVE_INFINITY : topicIdVersion - 1;
      version = connection.version('Produce', versionMin, versionMax);
    } catch (error) {
      done(error as MillraceError, null);
      return;
    }
    this.#isByTopicId = version >= topicIdVersion;
    const body = this.#body(metadata, acks, timeoutMs);
    connection.send('Produce', version, body, timeoutMs, done, acks !== 0);
  }

  /** What the broker said of one batch; null when it said nothing. */
  answerTo(
    { queue }: Part,
    reply: ProduceResponse,
    metadata: MetadataCache,
  ): ProduceResponsePartitionProduceResponse | null {
    const key = this.#isByTopicId ? idOf(metadata, queue) : queue.topic;
    for (const topic of reply.responses) {
      if ((this.#isByTopicId ? topic.topicId : topic.name) !== key) continue;
      for (const answer of topic.partitionResponses)
        if (answer.index === queue.partition) return answer;
    }
    return null;
  }

  #body(metadata: MetadataCache, acks: number, timeoutMs: number): ProduceRequestInput {
    const topics = new Map<string, { index: number; records: HeldRecords | Uint8Array }[]>();
    for (const { queue, records: held } of this.parts) {
      const records = held.byteLength > copiedBytesMax ? held : held.bytes;
      const data = { index: queue.partition, records };
      const listed = topics.get(queue.topic);
      if (listed === undefined) topics.set(queue.topic, [data]);
      else listed.push(data);
    }
    const topicData = [...topics].map(([name, partitionData]) => {
      if (!this.#isByTopicId) return { name, partitionData };
      return { topicId: metadata.topic(name)?.topicId ?? undefined, partitionData };
    });
    return { acks, timeoutMs, topicData };
  }
}

function idOf(metadata: MetadataCache, queue: PartitionQueue): string | null {
  return metadata.topic(queue.topic)?.topicId ?? null;
}
