/** Requests of the data path in short form, and batches to put into them. */
import assert from 'node:assert/strict';
import { type BatchInput, encodeBatch } from '../../../engine/batch/encode.ts';
import { iterateRecords } from '../../../engine/batch/records.ts';
import type {
  FetchRequestInput,
  FetchResponse,
  FetchResponsePartitionData,
  ProduceRequestInput,
  ProduceResponse,
  ProduceResponsePartitionProduceResponse,
} from '../../../net/protocol/messages.gen.ts';
import { splitBatches } from '../../sim/log_world.ts';
import type { ShardWorld } from './shard_world.ts';
import { startMs } from './world_clock.ts';

/** A batch with one record for each value; other fields of the batch as wished. */
export function batchOf(values: readonly string[], input: Partial<BatchInput> = {}): Uint8Array {
  const records = values.map((value) => ({
    timestamp: BigInt(startMs),
    key: Buffer.from('k'),
    value: Buffer.from(value),
  }));
  return encodeBatch({ records, ...input });
}

/** A batch of exactly that many bytes. */
export function batchOfBytes(bytes: number): Uint8Array {
  let size = bytes - 80;
  for (;;) {
    const batch = batchOf(['x'.repeat(size)]);
    if (batch.length === bytes) return batch;
    size += bytes - batch.length;
  }
}

export interface Part {
  readonly topic: string;
  readonly partition?: number;
  readonly records: Uint8Array | null;
}

/** By name, or by id from v13 on. */
export function produce(
  world: ShardWorld,
  version: number,
  acks: number,
  parts: readonly Part[],
  timeoutMs = 1_000,
): ProduceRequestInput {
  return {
    acks,
    timeoutMs,
    topicData: parts.map(({ topic, partition = 0, records }) => ({
      ...(version >= 13 ? { topicId: world.idOf(topic) } : { name: topic }),
      partitionData: [{ index: partition, records }],
    })),
  };
}

/** The answer for the first partition of the n-th topic. */
export function produced(
  response: ProduceResponse,
  at = 0,
): ProduceResponsePartitionProduceResponse {
  const found = response.responses[at]?.partitionResponses[0];
  assert(found !== undefined, `no answer ${at}`);
  return found;
}

export interface Wanted {
  readonly topic: string;
  readonly partition?: number;
  readonly offset?: number | bigint;
  readonly maxBytes?: number;
  readonly currentLeaderEpoch?: number;
  readonly lastFetchedEpoch?: number;
}

export function fetch(
  world: ShardWorld,
  version: number,
  wanted: readonly Wanted[],
  rest: Partial<FetchRequestInput> = {},
): FetchRequestInput {
  return {
    maxWaitMs: 500,
    minBytes: 1,
    maxBytes: 1_000_000,
    sessionEpoch: version >= 7 ? -1 : undefined,
    topics: wanted.map(({ topic, partition = 0, offset = 0, ...one }) => ({
      ...(version >= 13 ? { topicId: world.idOf(topic) } : { topic }),
      partitions: [
        {
          partition,
          fetchOffset: BigInt(offset),
          partitionMaxBytes: one.maxBytes ?? 1_000_000,
          ...(version >= 9 ? { currentLeaderEpoch: one.currentLeaderEpoch } : {}),
          ...(version >= 12 ? { lastFetchedEpoch: one.lastFetchedEpoch } : {}),
        },
      ],
    })),
    ...rest,
  } as FetchRequestInput;
}

/** All partitions of an answer, in order. */
export function fetched(response: FetchResponse): FetchResponsePartitionData[] {
  return response.responses.flatMap(({ partitions }) => partitions);
}

/** The only partition of an answer. */
export function fetchedOne(response: FetchResponse): FetchResponsePartitionData {
  const all = fetched(response);
  assert.equal(all.length, 1);
  return all[0] as FetchResponsePartitionData;
}

/** The values of all records, `offset value`, of whole batches. */
export function valuesIn(records: unknown): string[] {
  assert(records instanceof Uint8Array);
  return splitBatches(records).flatMap(({ baseOffset, bytes }) =>
    [...iterateRecords(bytes, 0, 1 << 24)].map(
      ({ offsetDelta, value }) =>
        `${baseOffset + offsetDelta} ${Buffer.from(value ?? []).toString()}`,
    ),
  );
}
