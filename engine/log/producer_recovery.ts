/** Brings back the state of the producers when a log is opened: the newest snapshot, and the batches after it. */
import {
  attributeBits,
  hasAttribute,
  maxTimestampOf,
  producerEpochOf,
  producerIdOf,
  readInt16,
  readInt32,
} from '../batch/header.ts';
import { iterateRecords } from '../batch/records.ts';
import { BatchScanner, Scan } from './batch_scanner.ts';
import { segmentFileName } from './file_names.ts';
import type { LogParts } from './log_parts.ts';
import { newProducerFields, readFields } from './producer_fields.ts';
import type { Segment } from './segment.ts';

/** Types of control records: the transaction markers. */
const abortMarker = 0;
const commitMarker = 1;

/** @throws DiskError */
export function restoreProducers(parts: LogParts): void {
  dropSnapshotsPastEnd(parts);
  // What lies below the log start but is there still has its producers, who may send it again.
  const from = Math.max(loadNewestSnapshot(parts), parts.segments.first.baseOffset);
  if (from < parts.logEndOffset) replay(parts, from);
}

/**
 * A snapshot can be younger than the flush that a power cut undid. Its removal is flushed at once: were it to come back
 * after other batches have taken those offsets, it would be believed.
 */
function dropSnapshotsPastEnd(parts: LogParts): void {
  const { snapshotOffsets, files } = parts;
  let isChanged = false;
  while ((snapshotOffsets[snapshotOffsets.length - 1] ?? -1) > parts.logEndOffset) {
    removeSnapshot(parts, snapshotOffsets.pop() as number);
    isChanged = true;
  }
  if (isChanged) files.disk.flushDirectorySync(files.dir);
}

function removeSnapshot({ files }: LogParts, offset: number): void {
  files.disk.unlink(`${files.dir}/${segmentFileName(offset, '.snapshot')}`);
}

/** Returns the offset from which batches are to be replayed. */
function loadNewestSnapshot(parts: LogParts): number {
  const { snapshotOffsets, files, producers } = parts;
  for (;;) {
    const offset = snapshotOffsets[snapshotOffsets.length - 1];
    if (offset === undefined) return parts.segments.first.baseOffset;
    const bytes = files.disk.readFile(`${files.dir}/${segmentFileName(offset, '.snapshot')}`);
    if (bytes !== null && producers.restore(bytes, parts.clock.wallMs())) {
      parts.snapshotOffset = offset;
      return offset;
    }
    removeSnapshot(parts, offset);
    snapshotOffsets.pop();
  }
}

function replay(parts: LogParts, from: number): void {
  const { segments, config, files } = parts;
  for (let number = Math.max(0, segments.floor(from)); number < segments.count; number += 1) {
    const segment = segments.at(number) as Segment;
    if (segment.size === 0) continue;
    segment.load(config.indexIntervalBytes);
    const entry = segment.offsets.floorByOffset(from);
    const position = entry < 0 ? 0 : segment.offsets.positionAt(entry);
    const scanner = new BatchScanner(
      files.disk,
      segment.fd,
      position,
      segment.size,
      segment.baseOffset,
      false,
    );
    while (scanner.next() === Scan.batch) {
      if (scanner.baseOffset >= from) replayBatch(parts, segment, scanner);
    }
  }
}

const fields = newProducerFields();

function replayBatch(parts: LogParts, segment: Segment, scanner: BatchScanner): void {
  const { buffer, headerAt } = scanner;
  const producerId = producerIdOf(buffer, headerAt);
  if (producerId < 0) return;
  const nowMs = parts.clock.wallMs();
  const timestamp = maxTimestampOf(buffer, headerAt);
  if (hasAttribute(buffer, headerAt, attributeBits.control)) {
    const producerEpoch = producerEpochOf(buffer, headerAt);
    const coordinatorEpoch = markerCoordinatorEpoch(parts, segment, scanner);
    if (coordinatorEpoch === null) return;
    const offset = scanner.lastOffset;
    parts.producers.recordMarker(
      producerId,
      producerEpoch,
      coordinatorEpoch,
      offset,
      timestamp,
      nowMs,
    );
    return;
  }
  readFields(buffer, headerAt, fields);
  parts.producers.record(fields, scanner.baseOffset, timestamp, nowMs);
}

/** The coordinator's epoch in a transaction marker, or null when the control batch is something else. */
function markerCoordinatorEpoch(
  parts: LogParts,
  segment: Segment,
  scanner: BatchScanner,
): number | null {
  const batch = new Uint8Array(scanner.size);
  parts.files.disk.read(segment.fd, batch, 0, batch.length, scanner.position);
  for (const { key, value } of iterateRecords(batch, 0, parts.config.decompressedMaxBytes)) {
    if (key === null || key.length < 4 || value === null || value.length < 6) return null;
    const type = readInt16(key, 2);
    return type === abortMarker || type === commitMarker ? readInt32(value, 2) : null;
  }
  return null;
}
