/**
 * The writing half of a partition's log: appends batches, and stores what a turn of the event loop has appended with one
 * gathered write.
 *
 * Thread: the partition's shard. Memory: a pending batch is a view of where it was received, which stays as it is until
 * the write; all logs of a thread share one gather buffer. Durability: none before `writePending`, then the page cache;
 * the flush is the `FlushGroup`'s.
 */
import { baseOffsetOf, leaderEpochOf, maxTimestampOf } from '../batch/header.ts';
import type { BatchInfo } from '../batch/rules.ts';
import { rewriteTimestamps, stampBatch } from '../batch/stamp.ts';
import { ErrorCode } from '../error_code.gen.ts';
import type { Disk, DiskError } from '../ports.ts';
import type { AppendResult } from './append_result.ts';
import { AppendRound } from './append_round.ts';
import { asDiskError } from './flush_set.ts';
import type { LogMarks } from './log_marks.ts';
import { type LogParts, markSegmentDirty } from './log_parts.ts';
import { rollSegment, SegmentAge } from './log_rolling.ts';
import type { ProducedBatch } from './producer_entry.ts';
import { newProducerFields, type ProducerFields, readFields } from './producer_fields.ts';
import type { Segment } from './segment.ts';

/** Below this sum, copying into one buffer is cheaper than a vector of many small pieces. */
const gatherBytes = 64 * 1024;
let sharedGather: Buffer | null = null;

/** Header fields of the batch at hand, for `appendStamped`. */
const stamped = newProducerFields();

export class LogAppender {
  readonly #parts: LogParts;
  readonly #marks: LogMarks;
  readonly #age: SegmentAge;
  /** Batches that wait for the write: `#lengths[k]` bytes at `#starts[k]` of `#buffers[k]`. */
  readonly #buffers: Uint8Array[] = [];
  readonly #starts: number[] = [];
  readonly #lengths: number[] = [];
  #pendingBytes = 0;
  /** What the log was like before them. */
  readonly #round = new AppendRound();
  /** A write in the middle of the turn failed: appends are refused until the end of the turn reports it. */
  #turnError: ErrorCode = ErrorCode.NONE;
  /** Offset behind the last batch that the failed write would have stored. */
  failedOffset = 0;
  /** Why there are no more appends, or null. */
  failure: DiskError | null = null;
  /** Told once, when `failure` comes about. */
  onFailure: ((error: DiskError) => void) | null = null;
  /** No appends: the log is closed or damaged. */
  isReadOnly: boolean;

  constructor(parts: LogParts, marks: LogMarks, isReadOnly: boolean) {
    this.#parts = parts;
    this.#marks = marks;
    this.#age = new SegmentAge(parts);
    this.isReadOnly = isReadOnly;
  }

  /** Begins a segment at the log's end. Nothing may be pending. @throws DiskError */
  roll(nowMs: number): void {
    rollSegment(this.#parts, nowMs);
    this.#age.restart();
  }

  get hasPending(): boolean {
    return this.#buffers.length > 0 || this.#turnError !== ErrorCode.NONE;
  }

  /** Whether the write may be put off: there is no failure to report, and no more than so many bytes wait for it. */
  mayWait(bytesMax: number): boolean {
    return this.#turnError === ErrorCode.NONE && this.#pendingBytes <= bytesMax;
  }

  /**
   * Appends a batch that has been validated, as the partition's leader: checks the producer's epoch and sequence,
   * stamps base offset, leader epoch and timestamps into `buf` in place, and keeps a view of it until the write at the
   * end of the turn: the memory must stay as it is until then. The caller marks the log dirty at its FlushGroup.
   *
   * @param length size of the batch in bytes, which begins at `start`
   * @param nowMs wall clock
   * @param result filled in when the answer is NONE; otherwise its `errorMessage`, which the caller has set to
   *   null, may say more
   * @returns NONE (also for a duplicate of one of the producer's last five batches: `result.duplicate`);
   *   INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_TXN_STATE; RECORD_LIST_TOO_LARGE for more than a
   *   segment holds; KAFKA_STORAGE_ERROR when the disk is full or broken or the log is damaged
   */
  append(
    buf: Uint8Array,
    start: number,
    length: number,
    info: BatchInfo,
    leaderEpoch: number,
    nowMs: number,
    result: AppendResult,
  ): ErrorCode {
    const parts = this.#parts;
    if (!this.#takesAppends()) return this.#refuseBatch(info, nowMs);
    if (length > parts.config.segmentBytes) return ErrorCode.RECORD_LIST_TOO_LARGE;
    if (info.producerId >= 0) {
      const code = parts.producers.check(info);
      if (code === ErrorCode.DUPLICATE_SEQUENCE_NUMBER) {
        this.#answerDuplicate(parts.producers.duplicate as ProducedBatch, result);
        return ErrorCode.NONE;
      }
      if (code !== ErrorCode.NONE) {
        result.errorMessage = this.#explain(info, code);
        return code;
      }
    }
    const isAppendTime = parts.config.messageTimestampType === 'LogAppendTime';
    const maxTimestamp = isAppendTime ? BigInt(nowMs) : info.maxTimestamp;
    const baseOffset = parts.logEndOffset;
    const lastOffset = baseOffset + info.lastOffsetDelta;
    if (this.#makeRoom(length, lastOffset, maxTimestamp, nowMs) !== ErrorCode.NONE)
      return this.#refuseBatch(info, nowMs);
    stampBatch(buf, start, baseOffset, leaderEpoch);
    if (isAppendTime) rewriteTimestamps(buf, start, length, 'LogAppendTime', maxTimestamp);
    else if (info.rewriteHeader) rewriteTimestamps(buf, start, length, 'CreateTime', maxTimestamp);
    this.#push(buf, start, length, baseOffset, maxTimestamp, leaderEpoch, info, nowMs);
    result.baseOffset = baseOffset;
    result.lastOffset = lastOffset;
    result.logAppendTimeMs = isAppendTime ? maxTimestamp : -1n;
    result.logStartOffset = parts.logStartOffset;
    result.duplicate = false;
    return ErrorCode.NONE;
  }

  /**
   * Appends a batch that carries its base offset and leader epoch already: a follower's copy, or the metadata log's own.
   * It may begin past the log's end (the leader's log was compacted), not before it. Memory as with `append`.
   * @returns NONE; INVALID_RECORD for an offset before the log's end; RECORD_LIST_TOO_LARGE; KAFKA_STORAGE_ERROR
   */
  appendStamped(buf: Uint8Array, start: number, length: number, nowMs: number): ErrorCode {
    const parts = this.#parts;
    if (!this.#takesAppends()) return ErrorCode.KAFKA_STORAGE_ERROR;
    if (length > parts.config.segmentBytes) return ErrorCode.RECORD_LIST_TOO_LARGE;
    const baseOffset = baseOffsetOf(buf, start);
    if (baseOffset < parts.logEndOffset) return ErrorCode.INVALID_RECORD;
    readFields(buf, start, stamped);
    const lastOffset = baseOffset + stamped.lastOffsetDelta;
    const maxTimestamp = maxTimestampOf(buf, start);
    const code = this.#makeRoom(length, lastOffset, maxTimestamp, nowMs);
    if (code !== ErrorCode.NONE) return code;
    const leaderEpoch = leaderEpochOf(buf, start);
    this.#push(buf, start, length, baseOffset, maxTimestamp, leaderEpoch, stamped, nowMs);
    return ErrorCode.NONE;
  }

  #takesAppends(): boolean {
    return this.failure === null && this.#turnError === ErrorCode.NONE && !this.isReadOnly;
  }

  /** For want of space, say: the producer sends the batch again. */
  #refuseBatch(info: BatchInfo, nowMs: number): ErrorCode {
    if (info.producerId >= 0) this.#parts.producers.refuse(info, nowMs);
    return ErrorCode.KAFKA_STORAGE_ERROR;
  }

  #explain(batch: ProducerFields, code: ErrorCode): string {
    const { producerId, producerEpoch, baseSequence } = batch;
    const { producers } = this.#parts;
    if (code === ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
      return `producer ${producerId} sent sequence ${baseSequence} where ${producers.expectedSequence(batch)} was next`;
    if (code === ErrorCode.INVALID_PRODUCER_EPOCH)
      return `producer ${producerId} has epoch ${producerEpoch}, the log has seen ${producers.get(producerId)?.epoch}`;
    return `producer ${producerId} has a transaction open and sent a batch outside of it`;
  }

  #answerDuplicate(batch: ProducedBatch, result: AppendResult): void {
    result.baseOffset = batch.lastOffset - batch.offsetDelta;
    result.lastOffset = batch.lastOffset;
    result.logAppendTimeMs = batch.timestamp;
    result.logStartOffset = this.#parts.logStartOffset;
    result.duplicate = true;
  }

  /** Has an active segment that can take the batch. */
  #makeRoom(length: number, lastOffset: number, maxTimestamp: bigint, nowMs: number): ErrorCode {
    const parts = this.#parts;
    try {
      parts.segments.active.load(parts.config.indexIntervalBytes);
      if (!this.#age.mustRoll(this.#pendingBytes, length, lastOffset, maxTimestamp, nowMs))
        return ErrorCode.NONE;
      if (this.#buffers.length > 0) {
        this.#turnError = this.#writeRound();
        if (this.#turnError !== ErrorCode.NONE) return this.#turnError;
      }
      this.roll(nowMs);
      return ErrorCode.NONE;
    } catch (error) {
      return this.#refuse(error);
    }
  }

  #push(
    buf: Uint8Array,
    start: number,
    length: number,
    baseOffset: number,
    maxTimestamp: bigint,
    leaderEpoch: number,
    fields: ProducerFields,
    nowMs: number,
  ): void {
    const parts = this.#parts;
    const segment = parts.segments.active;
    if (this.#buffers.length === 0) this.#round.begin(parts);
    const lastOffset = baseOffset + fields.lastOffsetDelta;
    const position = segment.size + this.#pendingBytes;
    segment.index(lastOffset, position, length, maxTimestamp, parts.config.indexIntervalBytes);
    if (leaderEpoch !== parts.epochs.latestEpoch) parts.epochs.assign(leaderEpoch, baseOffset);
    if (fields.producerId >= 0) parts.producers.record(fields, baseOffset, maxTimestamp, nowMs);
    parts.logEndOffset = lastOffset + 1;
    const at = this.#buffers.push(buf) - 1;
    this.#starts[at] = start;
    this.#lengths[at] = length;
    this.#pendingBytes += length;
  }

  /**
   * Writes what was appended since the last call with one write. On failure nothing of it is left, in the file or in
   * memory: offsets `writtenOffset` to `failedOffset` were not appended, and the next append gets them again.
   *
   * @returns NONE or KAFKA_STORAGE_ERROR (retriable); `failure` is not null when the disk is broken and not just full
   */
  writePending(): ErrorCode {
    const code = this.#turnError;
    if (code === ErrorCode.NONE) return this.#writeRound();
    this.#turnError = ErrorCode.NONE;
    return code;
  }

  #writeRound(): ErrorCode {
    if (this.#buffers.length === 0) return ErrorCode.NONE;
    const parts = this.#parts;
    const segment = parts.segments.active;
    try {
      this.#write(parts.files.disk, segment.fd, segment.size);
    } catch (error) {
      return this.#undoWrite(segment, error);
    }
    segment.size += this.#pendingBytes;
    markSegmentDirty(parts, segment);
    this.#forgetPending();
    parts.writtenOffset = parts.logEndOffset;
    this.#marks.add(parts.writtenOffset, segment, segment.size);
    return ErrorCode.NONE;
  }

  /** @throws DiskError; some of the bytes may be in the file then */
  #write(disk: Disk, fd: number, position: number): void {
    const buffers = this.#buffers;
    const starts = this.#starts;
    const lengths = this.#lengths;
    const bytes = this.#pendingBytes;
    if (buffers.length === 1) {
      disk.write(fd, buffers[0] as Uint8Array, starts[0] as number, bytes, position);
    } else if (bytes <= gatherBytes) {
      sharedGather ??= Buffer.allocUnsafeSlow(gatherBytes);
      let to = 0;
      for (let at = 0; at < buffers.length; at += 1) {
        const start = starts[at] as number;
        const end = start + (lengths[at] as number);
        // Node's copy takes positions, so that no view has to be made; it works on any Uint8Array.
        to += Buffer.prototype.copy.call(buffers[at] as Buffer, sharedGather, to, start, end);
      }
      disk.write(fd, sharedGather, 0, bytes, position);
    } else {
      const views = buffers.map((buf, at) => {
        const start = starts[at] as number;
        return buf.subarray(start, start + (lengths[at] as number));
      });
      disk.writev(fd, views, bytes, position);
    }
  }

  #forgetPending(): void {
    this.#buffers.length = 0;
    this.#pendingBytes = 0;
  }

  #undoWrite(segment: Segment, cause: unknown): ErrorCode {
    const parts = this.#parts;
    this.failedOffset = parts.logEndOffset;
    this.#forgetPending();
    this.#round.undo(parts);
    const code = this.#refuse(cause);
    try {
      parts.files.disk.truncate(segment.fd, segment.size);
      segment.noteCut();
      markSegmentDirty(parts, segment);
    } catch (error) {
      this.#fail(asDiskError(error));
    }
    return code;
  }

  /** A full disk (or table of descriptors) is a passing state; anything else ends the log's life. */
  #refuse(error: unknown): ErrorCode {
    const diskError = asDiskError(error);
    if (!diskError.isPassing) this.#fail(diskError);
    return ErrorCode.KAFKA_STORAGE_ERROR;
  }

  #fail(error: DiskError): void {
    if (this.failure !== null) return;
    this.failure = error;
    this.onFailure?.(error);
  }
}
