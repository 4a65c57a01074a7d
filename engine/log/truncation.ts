/** Cuts a log back to an offset, as a follower does where its log leaves its leader's (KIP-101). */
import { Scan } from './batch_scanner.ts';
import { type LogParts, markSegmentDirty, removeSegmentFiles } from './log_parts.ts';
import { removeSnapshotsBelow } from './log_state_store.ts';
import { restoreProducers } from './producer_recovery.ts';
import { Segment } from './segment.ts';

/**
 * Drops every batch that ends at or past `offset`. Nothing may be pending. When it is past the log's start, the log then
 * ends at the last batch boundary at or before it; otherwise the log is empty and begins at `offset`.
 * @throws DiskError
 */
export function truncateLog(parts: LogParts, offset: number): void {
  const { segments, epochs, producers } = parts;
  if (offset >= parts.logEndOffset) {
    // An epoch may have begun at the end without writing anything; the leader's history does not know it.
    epochs.truncateFromEnd(parts.logEndOffset);
    return;
  }
  const number = segments.floor(offset);
  const removed = segments.truncate(Math.max(0, number + 1));
  for (const segment of removed) removeSegmentFiles(parts, segment);
  if (number < 0) startAt(parts, offset);
  else cutSegment(parts, segments.active, offset);
  parts.writtenOffset = parts.logEndOffset;
  parts.flushedOffset = Math.min(parts.flushedOffset, parts.logEndOffset);
  parts.recoveryPoint = Math.min(parts.recoveryPoint, parts.logEndOffset);
  epochs.truncateFromEnd(parts.logEndOffset);
  producers.clear();
  parts.snapshotOffset = -1;
  parts.flushedSnapshotOffset = Math.min(parts.flushedSnapshotOffset, parts.logEndOffset);
  restoreProducers(parts);
}

/** Makes the log an empty one that begins at `offset`: all that it holds lies below. @throws DiskError */
export function restartLog(parts: LogParts, offset: number): void {
  for (const segment of parts.segments.truncate(0)) removeSegmentFiles(parts, segment);
  startAt(parts, offset);
  // Or a power cut could bring segments back that do not follow on one another.
  parts.files.disk.flushDirectorySync(parts.files.dir);
  parts.writtenOffset = offset;
  parts.flushedOffset = offset;
  parts.recoveryPoint = offset;
}

/** The same for a log in use: nothing of its history stays, neither epochs nor producers. @throws DiskError */
export function replaceLog(parts: LogParts, offset: number): void {
  restartLog(parts, offset);
  parts.epochs.truncateFromEnd(0);
  parts.producers.clear();
  removeSnapshotsBelow(parts, Number.POSITIVE_INFINITY);
  parts.snapshotOffset = -1;
  parts.flushedSnapshotOffset = -1;
}

function startAt(parts: LogParts, offset: number): void {
  const segment = new Segment(parts.files, offset, 0);
  segment.create(parts.clock.wallMs());
  parts.segments.push(segment);
  parts.isDirectoryDirty = true;
  parts.logStartOffset = offset;
  parts.logEndOffset = offset;
}

function cutSegment(parts: LogParts, segment: Segment, offset: number): void {
  const { disk } = parts.files;
  segment.load(parts.config.indexIntervalBytes);
  const entry = segment.offsets.floorByOffset(offset - 1);
  const scanner = segment.scan(entry < 0 ? 0 : segment.offsets.positionAt(entry));
  let end = scanner.nextPosition;
  let endOffset = segment.baseOffset;
  while (scanner.next() === Scan.batch && scanner.lastOffset < offset) {
    end = scanner.nextPosition;
    endOffset = scanner.lastOffset + 1;
  }
  disk.truncate(segment.fd, end);
  segment.size = end;
  segment.noteCut();
  segment.truncateIndexes(endOffset, parts.config.indexIntervalBytes);
  markSegmentDirty(parts, segment);
  parts.logEndOffset = endOffset;
  parts.logStartOffset = Math.min(parts.logStartOffset, endOffset);
}
