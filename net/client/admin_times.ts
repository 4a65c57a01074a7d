/** When the record at an offset was written: what tells a consumer group's lag in time. */

import { CompressionError } from '../../engine/batch/compression_error.ts';
import {
  baseOffsetOf,
  batchHeaderBytes,
  lastOffsetOf,
  maxTimestampOf,
  sizeOf,
} from '../../engine/batch/header.ts';
import { BatchFormatError, iterateRecords } from '../../engine/batch/records.ts';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { AdminOptions } from './admin_options.ts';
import type { Cluster } from './cluster.ts';
import type { TopicPartition } from './consumer/topic_partition.ts';

export interface RecordPosition extends TopicPartition {
  readonly offset: number;
}

/** Up to this version topics go by name. */
const namesVersionMax = 12;
/** A broker sends a whole batch, however large: this only keeps it from sending a second one. */
const partitionBytes = 1;
const answerBytes = 64 * 1024 * 1024;
const decompressedMaxBytes = 256 * 1024 * 1024;
const noTimestamp = -1;

/**
 * The timestamp of the first record at or after each position, in milliseconds since 1970; -1 where there is none that can
 * be read. One request for each position, since an answer may end with the first batch.
 */
export function timestampsAt(
  cluster: Cluster,
  positions: readonly RecordPosition[],
  options: AdminOptions = {},
): Promise<number[]> {
  return Promise.all(positions.map((position) => timestampAt(cluster, position, options)));
}

async function timestampAt(
  cluster: Cluster,
  { topic, partition, offset }: RecordPosition,
  options: AdminOptions,
): Promise<number> {
  const wanted = {
    partition,
    fetchOffset: BigInt(offset),
    partitionMaxBytes: partitionBytes,
  };
  const reply = await cluster.request(
    { topic, partition },
    'Fetch',
    (version) => ({
      ...(version <= 14 ? { replicaId: -1 } : {}),
      ...{ maxWaitMs: 0, minBytes: 0, maxBytes: answerBytes },
      topics: [{ topic, partitions: [wanted] }],
      forgottenTopicsData: [],
      ...(version >= 7 ? { sessionId: 0, sessionEpoch: -1 } : {}),
    }),
    {
      ...options,
      maxVersion: namesVersionMax,
      errorOf: ({ responses }) => responses[0]?.partitions[0]?.errorCode ?? ErrorCode.NONE,
    },
  );
  const records = reply.responses[0]?.partitions[0]?.records ?? null;
  return records === null ? noTimestamp : timestampIn(records, offset);
}

function timestampIn(bytes: Uint8Array, offset: number): number {
  let at = 0;
  while (at + batchHeaderBytes <= bytes.length && at + sizeOf(bytes, at) <= bytes.length) {
    if (lastOffsetOf(bytes, at) >= offset) return timestampInBatch(bytes, at, offset);
    at += sizeOf(bytes, at);
  }
  return noTimestamp;
}

function timestampInBatch(bytes: Uint8Array, at: number, offset: number): number {
  const base = baseOffsetOf(bytes, at);
  try {
    for (const { offsetDelta, timestamp } of iterateRecords(bytes, at, decompressedMaxBytes))
      if (base + offsetDelta >= offset) return Number(timestamp);
  } catch (error) {
    if (!(error instanceof BatchFormatError || error instanceof CompressionError)) throw error;
  }
  return Number(maxTimestampOf(bytes, at));
}
