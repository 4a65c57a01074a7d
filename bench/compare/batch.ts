/** Record batches (magic 2) for the load clients, built once and sent many times. */
import { crc32c } from '@node-rs/crc32';

export const BATCH_HEADER_BYTES = 61;
/** Where the fields of a batch header stand, in bytes from its start. */
export const BatchField = {
  baseOffset: 0,
  length: 8,
  leaderEpoch: 12,
  magic: 16,
  crc: 17,
  attributes: 21,
  lastOffsetDelta: 23,
  baseTimestamp: 27,
  maxTimestamp: 35,
  recordCount: 57,
} as const;

/**
 * A plain batch of `records` records without keys, each with a value of `valueBytes` bytes, stamped with
 * `timestampMs` (Unix milliseconds).
 */
export function buildBatch(records: number, valueBytes: number, timestampMs: number): Buffer {
  const value = Buffer.alloc(valueBytes, 'millrace-bench-');
  const chunks: Buffer[] = [];
  for (let index = 0; index < records; index += 1) chunks.push(recordOf(index, value));
  const body = Buffer.concat(chunks);
  const batch = Buffer.alloc(BATCH_HEADER_BYTES + body.length);
  batch.writeInt32BE(batch.length - BatchField.leaderEpoch, BatchField.length);
  batch.writeInt32BE(-1, BatchField.leaderEpoch);
  batch.writeInt8(2, BatchField.magic);
  batch.writeInt32BE(records - 1, BatchField.lastOffsetDelta);
  batch.writeBigInt64BE(BigInt(timestampMs), BatchField.baseTimestamp);
  batch.writeBigInt64BE(BigInt(timestampMs), BatchField.maxTimestamp);
  // Producer id, epoch and base sequence: none.
  batch.fill(0xff, 43, BatchField.recordCount);
  batch.writeInt32BE(records, BatchField.recordCount);
  batch.set(body, BATCH_HEADER_BYTES);
  batch.writeUInt32BE(crc32c(batch.subarray(BatchField.attributes)), BatchField.crc);
  return batch;
}

function recordOf(offsetDelta: number, value: Buffer): Buffer {
  const body = Buffer.concat([
    Buffer.from([0]),
    varint(0),
    varint(offsetDelta),
    varint(-1),
    varint(value.length),
    value,
    varint(0),
  ]);
  return Buffer.concat([varint(body.length), body]);
}

/** Zigzag variable-length integer of Kafka's record format. */
export function varint(value: number): Buffer {
  let rest = ((value << 1) ^ (value >> 31)) >>> 0;
  const bytes: number[] = [];
  while (rest > 0x7f) {
    bytes.push((rest & 0x7f) | 0x80);
    rest >>>= 7;
  }
  bytes.push(rest);
  return Buffer.from(bytes);
}
