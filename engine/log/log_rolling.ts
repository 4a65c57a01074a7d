/** When a segment is full or old enough, and what happens then. */
import { batchHeaderBytes, maxTimestampOf } from '../batch/header.ts';
import { asDiskError } from './flush_set.ts';
import type { LogParts } from './log_parts.ts';
import { storeSnapshot } from './log_state_store.ts';
import { relativeOffsetMax } from './offset_index.ts';
import { Segment } from './segment.ts';

const header = new Uint8Array(batchHeaderBytes);

/** Kafka's `LogSegment.shouldRoll`, with the jitter drawn once for each segment. */
export class SegmentAge {
  readonly #parts: LogParts;
  #jitter: number;

  constructor(parts: LogParts) {
    this.#parts = parts;
    this.#jitter = parts.random.next();
  }

  /** A new segment begins. */
  restart(): void {
    this.#jitter = this.#parts.random.next();
  }

  /**
   * @param pendingBytes what waits to be written to the active segment, without the batch
   * @param length size of the batch in bytes
   * @param maxTimestamp of the batch
   */
  mustRoll(
    pendingBytes: number,
    length: number,
    lastOffset: number,
    maxTimestamp: bigint,
    nowMs: number,
  ): boolean {
    const { config, segments } = this.#parts;
    const segment = segments.active;
    const used = segment.size + pendingBytes;
    if (used === 0) return false;
    if (used > config.segmentBytes - length) return true;
    if (lastOffset - segment.baseOffset > relativeOffsetMax) return true;
    if (isIndexFull(segment, config.segmentIndexBytes)) return true;
    // What stays in the segment that takes appends is not compacted (KIP-354).
    const segmentMs = config.cleanupPolicy.compact
      ? Math.min(config.segmentMs, config.maxCompactionLagMs)
      : config.segmentMs;
    const jitterMs = Math.floor(this.#jitter * Math.min(config.segmentJitterMs, segmentMs));
    return this.#waitedMs(segment, maxTimestamp, nowMs) > segmentMs - jitterMs;
  }

  /** By the records' time where they have one, so that old data sent late is kept together as it would have been. */
  #waitedMs(segment: Segment, maxTimestamp: bigint, nowMs: number): number {
    if (segment.firstTimestamp === null) this.#readFirstTimestamp(segment);
    const first = segment.firstTimestamp ?? -1n;
    if (first >= 0n) return Number(maxTimestamp - first);
    return nowMs - segment.createdMs;
  }

  #readFirstTimestamp(segment: Segment): void {
    const count = this.#parts.files.disk.read(segment.fd, header, 0, batchHeaderBytes, 0);
    segment.firstTimestamp = count < batchHeaderBytes ? -1n : maxTimestampOf(header, 0);
  }
}

function isIndexFull(segment: Segment, indexBytes: number): boolean {
  const { offsets, times } = segment;
  return (
    offsets.file.count >= Math.floor(indexBytes / offsets.file.entryBytes) ||
    times.file.count >= Math.floor(indexBytes / times.file.entryBytes) - 1
  );
}

/**
 * Closes the active segment and begins the next at the log's end. Nothing may be pending.
 * @throws DiskError when the new file cannot be made or the directory not be flushed; nothing has changed then
 */
export function rollSegment(parts: LogParts, nowMs: number): void {
  const full = parts.segments.active;
  // Names become durable in order, or a power cut could leave a segment without the one before it. Seldom needed: the
  // first flush of a segment's bytes has flushed its name.
  if (parts.flushedOffset <= full.baseOffset) parts.files.disk.flushDirectorySync(parts.files.dir);
  full.flushCut();
  const next = new Segment(parts.files, parts.logEndOffset, 0);
  next.create(nowMs);
  parts.segments.push(next);
  parts.isDirectoryDirty = true;
  parts.files.cache.touch(full);
  try {
    full.storeIndexes(true);
    storeSnapshot(parts);
  } catch (error) {
    // A full disk: the next checkpoint tries again, and a start without these files makes them from the log.
    if (!asDiskError(error).isPassing) throw error;
  }
}
