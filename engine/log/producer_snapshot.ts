/**
 * Kafka's `<offset>.snapshot`: the producers of a partition as of an offset. int16 version 1, uint32 CRC-32C of all
 * that follows it, int32 count, then for each entry: producer id int64, epoch int16, last sequence int32, last offset
 * int64, offset delta int32, timestamp int64, coordinator epoch int32, first offset of the open transaction int64.
 *
 * Kafka writes one entry for each producer, with its last batch. We write one for each batch that is remembered,
 * oldest first, so that a restart does not forget four of the five. Kafka, reading the file, lets the later entry of
 * a producer replace the earlier one and ends up with what it would have written itself.
 */

import { crc32c } from '../batch/crc.ts';
import {
  readInt16,
  readInt32,
  readInt64,
  readInt64Number,
  writeInt16,
  writeInt32,
  writeInt64,
  writeInt64Number,
} from '../batch/header.ts';
import { decrementSequence, type ProducedBatch, ProducerEntry } from './producer_entry.ts';

const version = 1;
const headerBytes = 10;
const crcAt = 2;
const crcEnd = 6;
const entryBytes = 46;
const noSequence = -1;

export function encodeProducerSnapshot(entries: Iterable<ProducerEntry>): Uint8Array {
  const list = [...entries];
  let count = 0;
  for (const entry of list) count += Math.max(1, entry.batchCount);
  const bytes = new Uint8Array(headerBytes + count * entryBytes);
  writeInt16(bytes, 0, version);
  writeInt32(bytes, crcEnd, count);
  let at = headerBytes;
  for (const entry of list) {
    for (let batch = 0; batch < Math.max(1, entry.batchCount); batch += 1) {
      encodeEntry(bytes, at, entry, entry.batches[batch], batch >= entry.batchCount - 1);
      at += entryBytes;
    }
  }
  writeInt32(bytes, crcAt, crc32c(bytes.subarray(crcEnd)));
  return bytes;
}

function encodeEntry(
  bytes: Uint8Array,
  at: number,
  entry: ProducerEntry,
  slot: ProducedBatch | undefined,
  isLast: boolean,
): void {
  const batch = entry.batchCount === 0 ? undefined : slot;
  writeInt64Number(bytes, at, entry.producerId);
  writeInt16(bytes, at + 8, entry.epoch);
  writeInt32(bytes, at + 10, batch === undefined ? noSequence : batch.lastSequence);
  writeInt64Number(bytes, at + 14, batch === undefined ? -1 : batch.lastOffset);
  writeInt32(bytes, at + 22, batch === undefined ? 0 : batch.offsetDelta);
  const timestamp = batch === undefined || isLast ? entry.lastTimestamp : batch.timestamp;
  writeInt64(bytes, at + 26, timestamp);
  writeInt32(bytes, at + 34, entry.coordinatorEpoch);
  writeInt64Number(bytes, at + 38, entry.currentTxnFirstOffset);
}

/**
 * @param nowMs becomes the entries' append time: their timestamps are the records', which say nothing about when a
 *   producer was last here
 * @returns null when version, size or checksum are wrong
 */
export function decodeProducerSnapshot(bytes: Uint8Array, nowMs: number): ProducerEntry[] | null {
  if (bytes.length < headerBytes || readInt16(bytes, 0) !== version) return null;
  if (crc32c(bytes.subarray(crcEnd)) !== readInt32(bytes, crcAt) >>> 0) return null;
  const count = readInt32(bytes, crcEnd);
  if (count < 0 || headerBytes + count * entryBytes > bytes.length) return null;
  const entries = new Map<number, ProducerEntry>();
  for (let number = 0; number < count; number += 1) {
    const at = headerBytes + number * entryBytes;
    const producerId = readInt64Number(bytes, at);
    let entry = entries.get(producerId);
    if (entry === undefined) {
      entry = new ProducerEntry();
      entry.producerId = producerId;
      entries.set(producerId, entry);
    }
    decodeEntry(bytes, at, entry);
    entry.lastAppendMs = nowMs;
  }
  return [...entries.values()];
}

function decodeEntry(bytes: Uint8Array, at: number, entry: ProducerEntry): void {
  entry.setEpoch(readInt16(bytes, at + 8));
  const lastSequence = readInt32(bytes, at + 10);
  const lastOffset = readInt64Number(bytes, at + 14);
  const offsetDelta = readInt32(bytes, at + 22);
  const timestamp = readInt64(bytes, at + 26);
  entry.coordinatorEpoch = readInt32(bytes, at + 34);
  entry.currentTxnFirstOffset = readInt64Number(bytes, at + 38);
  entry.lastTimestamp = timestamp;
  if (lastSequence === noSequence) return;
  const baseSequence = decrementSequence(lastSequence, offsetDelta);
  entry.addBatch(baseSequence, lastSequence, lastOffset, offsetDelta, timestamp);
}
