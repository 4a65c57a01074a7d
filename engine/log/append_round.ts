/**
 * What a log was like before the batches that wait for the end of the turn, so that a write that finds the disk full
 * leaves no trace of them.
 */
import type { LogParts } from './log_parts.ts';
import type { Segment } from './segment.ts';

export class AppendRound {
  #segment: Segment | null = null;
  #epochCount = 0;
  #offsetEntries = 0;
  #timeEntries = 0;
  #maxTimestamp = -1n;
  #maxTimestampOffset = 0;
  #firstTimestamp: bigint | null = null;
  #bytesSinceIndexEntry = 0;

  /** Call before the first batch of a round. The active segment must be loaded. */
  begin(parts: LogParts): void {
    const segment = parts.segments.active;
    this.#segment = segment;
    this.#epochCount = parts.epochs.count;
    this.#offsetEntries = segment.offsets.file.count;
    this.#timeEntries = segment.times.file.count;
    this.#maxTimestamp = segment.maxTimestamp;
    this.#maxTimestampOffset = segment.maxTimestampOffset;
    this.#firstTimestamp = segment.firstTimestamp;
    this.#bytesSinceIndexEntry = segment.bytesSinceIndexEntry;
    parts.producers.beginRound();
  }

  undo(parts: LogParts): void {
    const segment = this.#segment as Segment;
    segment.offsets.file.truncate(this.#offsetEntries);
    segment.times.file.truncate(this.#timeEntries);
    segment.maxTimestamp = this.#maxTimestamp;
    segment.maxTimestampOffset = this.#maxTimestampOffset;
    segment.firstTimestamp = this.#firstTimestamp;
    segment.bytesSinceIndexEntry = this.#bytesSinceIndexEntry;
    parts.epochs.truncateEntries(this.#epochCount);
    parts.producers.undoRound();
    parts.logEndOffset = parts.writtenOffset;
  }
}
