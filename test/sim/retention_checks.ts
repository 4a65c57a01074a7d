/** What `RetentionHistory` knows of its records, and what it demands of a deletion. */
import assert from 'node:assert/strict';
import type { PartitionLog } from '../../engine/log/partition_log.ts';
import type { DeletableSegment } from '../../engine/log/retention.ts';

export interface Sent {
  readonly bytes: Uint8Array;
  readonly endOffset: number;
  readonly producerId: number;
  readonly sequence: number;
  readonly timestampMs: number;
}

/** By the records themselves, and not by indexes or segments. */
export function checkFound(
  log: PartitionLog,
  wallMs: number,
  found: readonly DeletableSegment[],
  sent: readonly Sent[],
): void {
  const { retentionMs, retentionBytes } = log.config;
  let size = log.size;
  for (const { baseOffset, endOffset, bytes, reason } of found) {
    const committed = log.config.durability === 'os' ? log.writtenOffset : log.flushedOffset;
    assert(endOffset <= committed, `deletes up to ${endOffset}, committed up to ${committed}`);
    size -= bytes;
    if (reason === 'start') assert(endOffset <= log.logStartOffset, 'above the log start');
    if (reason === 'bytes') assert(size >= retentionBytes, `only ${size} bytes would be left`);
    if (reason !== 'time') continue;
    const own = sent.filter((one) => one.endOffset > baseOffset && one.endOffset <= endOffset);
    for (const { timestampMs } of own)
      assert(wallMs - timestampMs > retentionMs, `a record is but ${wallMs - timestampMs} ms old`);
  }
}
