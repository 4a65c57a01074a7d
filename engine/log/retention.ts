/**
 * Which segments a log's settings let go, as Kafka's `UnifiedLog.deleteOldSegments` decides it: those below the log start
 * offset under any policy; with cleanup.policy=delete also the oldest ones beyond retention.bytes, and those whose
 * largest timestamp is older than retention.ms. Always from the front, never past the high watermark.
 *
 * Pure but for reading indexes; changes nothing.
 */
import type { LogParts } from './log_parts.ts';
import type { Segment } from './segment.ts';

export type DeletionReason = 'start' | 'bytes' | 'time';

export interface RetentionRules {
  /** Nothing at or past it is let go. */
  readonly highWatermark: number;
  /**
   * Wall clock in milliseconds. One that may have leapt is the caller's business (`RetentionClock`).
   */
  readonly nowMs: number;
  /**
   * Nothing has been appended for long enough, by a clock that does not leap, that the segment that takes appends may
   * go for its age as well.
   */
  readonly isIdle: boolean;
}

/** A segment that is let go. */
export interface DeletableSegment {
  readonly baseOffset: number;
  /** The offset after its last one. */
  readonly endOffset: number;
  readonly bytes: number;
  readonly reason: DeletionReason;
  readonly isActive: boolean;
}

/** The segments that are let go, oldest first. @throws DiskError when a segment's age cannot be read */
export function findDeletable(parts: LogParts, rules: RetentionRules): DeletableSegment[] {
  const search = new DeletableSearch(parts, rules);
  search.takeBelowStart();
  if (parts.config.cleanupPolicy.delete) {
    search.takeBeyondSize();
    search.takeExpired();
  }
  return search.found;
}

class DeletableSearch {
  readonly found: DeletableSegment[] = [];
  readonly #parts: LogParts;
  readonly #rules: RetentionRules;

  constructor(parts: LogParts, rules: RetentionRules) {
    this.#parts = parts;
    this.#rules = rules;
  }

  takeBelowStart(): void {
    const { logStartOffset } = this.#parts;
    this.#takeWhile('start', (_segment, endOffset, isActive) => {
      return !isActive && endOffset <= logStartOffset;
    });
  }

  takeBeyondSize(): void {
    const { segments, config } = this.#parts;
    if (config.retentionBytes < 0) return;
    let excess = -config.retentionBytes;
    for (const segment of segments) excess += segment.size;
    for (const { bytes } of this.found) excess -= bytes;
    this.#takeWhile('bytes', (segment) => {
      if (excess < segment.size) return false;
      excess -= segment.size;
      return true;
    });
  }

  takeExpired(): void {
    const { config } = this.#parts;
    const { nowMs, isIdle } = this.#rules;
    if (config.retentionMs < 0) return;
    const oldest = Math.floor(nowMs - config.retentionMs);
    this.#takeWhile('time', (segment, _endOffset, isActive) => {
      return (isIdle || !isActive) && this.#isOlder(segment, oldest);
    });
  }

  /** Takes segments from the first that is not taken on, up to the one that the rule or the high watermark keeps. */
  #takeWhile(
    reason: DeletionReason,
    rule: (segment: Segment, endOffset: number, isActive: boolean) => boolean,
  ): void {
    const { segments, logEndOffset } = this.#parts;
    for (let number = this.found.length; number < segments.count; number += 1) {
      const segment = segments.at(number) as Segment;
      const next = segments.at(number + 1);
      const isActive = next === undefined;
      const endOffset = next?.baseOffset ?? logEndOffset;
      if (endOffset > this.#rules.highWatermark || (isActive && segment.size === 0)) return;
      if (!rule(segment, endOffset, isActive)) return;
      const { baseOffset, size: bytes } = segment;
      this.found.push({ baseOffset, endOffset, bytes, reason, isActive });
    }
  }

  /** By its records' largest timestamp or, when they have none, by when its file was last written to. */
  #isOlder(segment: Segment, oldestMs: number): boolean {
    const { indexIntervalBytes } = this.#parts.config;
    const oldest = BigInt(oldestMs);
    const largest = segment.largestTimestamp(indexIntervalBytes);
    if (largest < 0n) return segment.modifiedMs < oldestMs;
    if (largest >= oldest) return false;
    // That was one entry of an index file. Records go for it: compare with the batches.
    segment.load(indexIntervalBytes);
    return segment.maxTimestamp < oldest;
  }
}
