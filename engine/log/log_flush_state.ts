/**
 * What of a log waits for a flush, and what the flush under way covers. At most one flush of a log at a time; the
 * FlushGroup calls begin, then end or abandon.
 */
import type { ErrorCode } from '../error_code.gen.ts';
import { partitionMetadataFile } from './file_names.ts';
import type { FlushSet } from './flush_set.ts';
import { type LogParts, markSegmentDirty } from './log_parts.ts';
import { parentOf } from './partition_directory.ts';
import type { Segment } from './segment.ts';

/** Durability 'os': write-back begins after so many bytes, so that dirty pages never pile up. */
const writeBackBytes = 4 * 1024 * 1024;
/** Less is not worth two calls. */
const passingBytes = 64 * 1024;
const pageBytes = 4096;

/** Bytes of a segment's file whose write-back was asked for. */
interface WrittenRange {
  readonly segment: Segment;
  readonly position: number;
  readonly length: number;
}

export class LogFlushState {
  readonly #parts: LogParts;
  readonly #flushing: Segment[] = [];
  #target = 0;
  #writeBackSegment: Segment | null = null;
  #writeBackPosition = 0;
  /** What the page cache lets go of after the next flush, and after the one under way. */
  readonly #passing: WrittenRange[] = [];
  readonly #passingFlushing: WrittenRange[] = [];
  /** The log stands on the FlushGroup's list of logs to flush. */
  isQueued: boolean = false;
  /** On the FlushGroup's clock: when the oldest unflushed write happened; with durability 'os' alone. */
  firstWriteMs = -1;
  /** The flushed offset that the checkpoint under way will make the recovery point. */
  checkpointOffset: number;
  /** No checkpoint takes the recovery point past it: the log is about to be cut there. */
  checkpointLimit: number = Number.POSITIVE_INFINITY;
  /** The snapshot of the producers that it covers, -1 for none. */
  checkpointSnapshot = -1;

  constructor(parts: LogParts) {
    this.#parts = parts;
    this.checkpointOffset = parts.recoveryPoint;
  }

  /** Something is written that no flush has begun to cover. */
  get isNeeded(): boolean {
    const parts = this.#parts;
    return (
      parts.dirtySegments.length > 0 ||
      parts.isDirectoryDirty ||
      parts.isParentDirty ||
      (this.#flushing.length === 0 && parts.flushedOffset < parts.writtenOffset)
    );
  }

  /** Adds what has to be flushed so that everything written by now is safe. */
  begin(set: FlushSet): void {
    const parts = this.#parts;
    this.#target = parts.writtenOffset;
    this.firstWriteMs = -1;
    for (const segment of parts.dirtySegments) {
      segment.beginFlush();
      segment.pin();
      this.#flushing.push(segment);
      set.addFile(segment.fd);
    }
    parts.dirtySegments.length = 0;
    this.#passingFlushing.push(...this.#passing.splice(0));
    const { dir } = parts.files;
    if (parts.isMetadataDirty) set.addPath(`${dir}/${partitionMetadataFile}`);
    if (parts.isDirectoryDirty) set.addDirectory(dir);
    if (parts.isParentDirty) set.addDirectory(parentOf(dir));
    parts.isMetadataDirty = false;
    parts.isDirectoryDirty = false;
    parts.isParentDirty = false;
  }

  /** Asks for write-back of what was written since the last time, once it is worth it. */
  startWriteBack(): void {
    const { segments, files } = this.#parts;
    const { active } = segments;
    if (this.#writeBackSegment !== active) {
      this.#writeBackSegment = active;
      this.#writeBackPosition = 0;
    }
    const length = active.size - this.#writeBackPosition;
    if (length < writeBackBytes) return;
    files.disk.startWriteBack(active.fd, this.#writeBackPosition, length);
    this.#writeBackPosition = active.size;
  }

  /**
   * Runs a write to the active segment whose bytes nobody is expected to read soon: write-back begins at once, and the page
   * cache lets go of them with the flush. Memory that is used again soon is cheaper to write to than what the system has
   * to find for each page (measured: 0.9 ms of its time for each MiB, beside 2.5), and what others read stays.
   */
  passing(write: () => ErrorCode): ErrorCode {
    const { segments, files } = this.#parts;
    const segment = segments.active;
    const position = segment.size;
    const code = write();
    const length = segment.size - position;
    if (length < passingBytes) return code;
    files.disk.startWriteBack(segment.fd, position, length);
    this.#passing.push({ segment, position, length });
    return code;
  }

  /** The flush has ended well. Returns the new flushed offset. */
  end(): number {
    const parts = this.#parts;
    for (const segment of this.#flushing) segment.endFlush();
    for (const range of this.#passingFlushing) this.#letGo(range);
    this.#unpin();
    if (this.#target > parts.flushedOffset) parts.flushedOffset = this.#target;
    return parts.flushedOffset;
  }

  /** The log was cut: a flush or checkpoint under way covers nothing past its end. */
  truncate(endOffset: number): void {
    this.#target = Math.min(this.#target, endOffset);
    this.checkpointOffset = Math.min(this.checkpointOffset, endOffset);
    this.checkpointSnapshot = Math.min(this.checkpointSnapshot, endOffset);
  }

  /** The flush could not be tried, for want of descriptors or memory: all that it was to cover waits for another. */
  retry(): void {
    const parts = this.#parts;
    for (const segment of this.#flushing) markSegmentDirty(parts, segment);
    parts.isMetadataDirty = true;
    parts.isDirectoryDirty = true;
    parts.isParentDirty = true;
    this.#unpin();
  }

  /** The flush has failed: its pages may be clean now and lost all the same. */
  abandon(): void {
    this.#unpin();
  }

  #unpin(): void {
    for (const segment of this.#flushing) segment.unpin();
    this.#flushing.length = 0;
    this.#passingFlushing.length = 0;
  }

  /** From the page on that it has begun in the middle of. */
  #letGo({ segment, position, length }: WrittenRange): void {
    const before = position % pageBytes;
    if (this.#flushing.includes(segment))
      this.#parts.files.disk.dropCache(segment.fd, position - before, before + length);
  }
}
