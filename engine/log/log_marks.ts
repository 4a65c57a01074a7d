/**
 * Batch boundaries seen lately: a small ring of (offset, segment, position). Everything in it is true until the log is
 * truncated or a segment replaced, which must `clear` it.
 */
import type { Segment } from './segment.ts';

const marksKept = 32;
/** Of a log that is idle there are no more: a broker may have tens of thousands of them. */
const marksAtFirst = 2;
const none: never[] = [];

export class LogMarks {
  /** All three of one length, which doubles up to `marksKept`. */
  #offsets: number[] = none;
  #positions: number[] = none;
  #segments: Array<Segment | null> = none;
  #next = 0;

  /** Notes that the batch with `offset` begins, or will begin, at `position` of the segment. */
  add(offset: number, segment: Segment, position: number): void {
    const { length } = this.#offsets;
    const latest = (this.#next === 0 ? length : this.#next) - 1;
    if (this.#offsets[latest] === offset && this.#segments[latest] === segment) return;
    if (this.#next === length) this.#makeRoom();
    this.#offsets[this.#next] = offset;
    this.#positions[this.#next] = position;
    this.#segments[this.#next] = segment;
    this.#next += 1;
  }

  /** Goes on behind the last place, or at the first one once there are enough. */
  #makeRoom(): void {
    const { length } = this.#offsets;
    if (length === marksKept) {
      this.#next = 0;
      return;
    }
    const more = Math.max(marksAtFirst, length);
    this.#offsets = this.#offsets.concat(new Array<number>(more).fill(-1));
    this.#positions = this.#positions.concat(new Array<number>(more).fill(-1));
    this.#segments = this.#segments.concat(new Array<Segment | null>(more).fill(null));
  }

  /** The position, or -1 when it is not known. */
  find(offset: number, segment: Segment): number {
    const { length } = this.#offsets;
    for (let step = 1; step <= length; step += 1) {
      const at = (this.#next + length - step) % length;
      if (this.#offsets[at] === offset && this.#segments[at] === segment)
        return this.#positions[at] as number;
    }
    return -1;
  }

  clear(): void {
    this.#offsets = none;
    this.#positions = none;
    this.#segments = none;
    this.#next = 0;
  }
}
