/**
 * Compares a segment's indexes with its batches while these go by: each entry of the offset index must name a place where
 * a batch begins, each of the time index the largest timestamp up to its offset.
 */
import {
  maxTimestampOf,
  readInt32,
  readInt64,
  recordTimestampOf,
} from '../../engine/batch/header.ts';
import type { ScannedBatch } from './segment_scan.ts';

/** What is wrong with an index: of several wrong entries, the first one is told. */
export interface IndexProblem {
  /** Byte in the index's file. */
  readonly position: number;
  readonly problem: string;
}

/** Entries of one size, without the zeros that Kafka's preallocation leaves behind them. */
class Entries {
  readonly bytes: Uint8Array;
  readonly entryBytes: number;
  readonly count: number;
  /** Bytes of zeros behind the entries. */
  readonly padding: number;
  problem: IndexProblem | null = null;
  #wrong = 0;

  constructor(bytes: Uint8Array, entryBytes: number) {
    this.bytes = bytes;
    this.entryBytes = entryBytes;
    let end = bytes.length;
    while (end > 0 && bytes[end - 1] === 0) end -= 1;
    const count = Math.ceil(end / entryBytes);
    this.count = Math.min(count, Math.floor(bytes.length / entryBytes));
    this.padding = Math.max(0, bytes.length - count * entryBytes);
    if (bytes.length % entryBytes !== 0)
      this.wrong(
        this.count,
        `${bytes.length} bytes are no whole number of entries of ${entryBytes}`,
      );
  }

  wrong(entry: number, problem: string): void {
    this.#wrong += 1;
    this.problem ??= { position: entry * this.entryBytes, problem };
  }

  /** The first problem, with how many there are. */
  result(): IndexProblem | null {
    if (this.problem === null || this.#wrong === 1) return this.problem;
    return {
      ...this.problem,
      problem: `${this.problem.problem}; ${this.#wrong} entries are wrong`,
    };
  }
}

export class OffsetIndexCheck {
  readonly #entries: Entries;
  readonly #baseOffset: number;
  #next = 0;
  #lastOffset = -1;
  #lastPosition = -1;

  constructor(bytes: Uint8Array, baseOffset: number) {
    this.#entries = new Entries(bytes, 8);
    this.#baseOffset = baseOffset;
  }

  get padding(): number {
    return this.#entries.padding;
  }

  get count(): number {
    return this.#entries.count;
  }

  onBatch({ position, baseOffset }: ScannedBatch): void {
    const entries = this.#entries;
    for (; this.#next < entries.count; this.#next += 1) {
      const entryPosition = readInt32(entries.bytes, this.#next * 8 + 4);
      if (entryPosition > position) return;
      const offset = this.#offsetAt(this.#next);
      if (entryPosition < position)
        entries.wrong(this.#next, `offset ${offset} at ${entryPosition}, where no batch begins`);
      else if (offset < baseOffset)
        entries.wrong(
          this.#next,
          `offset ${offset} at ${entryPosition}, where the batch begins with offset ${baseOffset}`,
        );
      this.#checkGrowth(offset, entryPosition);
    }
  }

  /** @param lastOffset of the segment's last batch */
  end(lastOffset: number): IndexProblem | null {
    const entries = this.#entries;
    for (; this.#next < entries.count; this.#next += 1) {
      const position = readInt32(entries.bytes, this.#next * 8 + 4);
      entries.wrong(this.#next, `position ${position}, where no batch begins`);
    }
    if (this.#lastOffset > lastOffset)
      entries.wrong(
        entries.count - 1,
        `offset ${this.#lastOffset}, and the segment ends with ${lastOffset}`,
      );
    return entries.result();
  }

  #offsetAt(entry: number): number {
    return this.#baseOffset + readInt32(this.#entries.bytes, entry * 8);
  }

  #checkGrowth(offset: number, position: number): void {
    if (offset <= this.#lastOffset || position <= this.#lastPosition)
      this.#entries.wrong(
        this.#next,
        `offset ${offset} at ${position} follows ${this.#lastOffset} at ${this.#lastPosition}`,
      );
    this.#lastOffset = offset;
    this.#lastPosition = position;
  }
}

export class TimeIndexCheck {
  readonly #entries: Entries;
  readonly #baseOffset: number;
  #next = 0;
  #largest = -1n;
  /** Of the headers: compaction takes a batch its records, and leaves what the header says. */
  #largestOfHeaders = -1n;
  #lastTimestamp = -1n;

  constructor(bytes: Uint8Array, baseOffset: number) {
    this.#entries = new Entries(bytes, 12);
    this.#baseOffset = baseOffset;
  }

  get padding(): number {
    return this.#entries.padding;
  }

  onBatch({ buffer, at, lastOffset }: ScannedBatch): void {
    const timestamp = recordTimestampOf(buffer, at);
    const ofHeader = maxTimestampOf(buffer, at);
    if (timestamp > this.#largest) this.#largest = timestamp;
    if (ofHeader > this.#largestOfHeaders) this.#largestOfHeaders = ofHeader;
    for (; this.#next < this.#entries.count; this.#next += 1) {
      if (this.#offsetAt(this.#next) > lastOffset) return;
      this.#check(this.#next);
    }
  }

  end(): IndexProblem | null {
    for (; this.#next < this.#entries.count; this.#next += 1)
      this.#entries.wrong(
        this.#next,
        `offset ${this.#offsetAt(this.#next)} is past the segment's end`,
      );
    return this.#entries.result();
  }

  #offsetAt(entry: number): number {
    return this.#baseOffset + readInt32(this.#entries.bytes, entry * 12 + 8);
  }

  #check(entry: number): void {
    const timestamp = readInt64(this.#entries.bytes, entry * 12);
    const offset = this.#offsetAt(entry);
    if (timestamp < this.#largest)
      this.#entries.wrong(
        entry,
        `timestamp ${timestamp} up to offset ${offset}, where there is ${this.#largest}`,
      );
    else if (timestamp !== this.#largest && timestamp !== this.#largestOfHeaders)
      this.#entries.wrong(
        entry,
        `timestamp ${timestamp} up to offset ${offset}, where the largest is ${this.#largest}`,
      );
    else if (timestamp <= this.#lastTimestamp)
      this.#entries.wrong(entry, `timestamp ${timestamp} follows ${this.#lastTimestamp}`);
    this.#lastTimestamp = timestamp;
  }
}
