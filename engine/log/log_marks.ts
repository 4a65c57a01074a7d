/**
 * Batch boundaries seen lately: a small ring of (offset, segment, position). Everything in it is true until the log is
 * truncated or a segment replaced, which must `clear` it.
 */
import type { Segment } from './segment.ts';

const marksKept = 32;

export class LogMarks {
  readonly #offsets: number[] = new Array<number>(marksKept).fill(-1);
  readonly #positions: number[] = new Array<number>(marksKept).fill(-1);
  readonly #segments: Array<Segment | null> = new Array<Segment | null>(marksKept).fill(null);
  #next = 0;

  /** Notes that the batch with `offset` begins, or will begin, at `position` of the segment. */
  add(offset: number, segment: Segment, position: number): void {
    const latest = (this.#next + marksKept - 1) % marksKept;
    if (this.#offsets[latest] === offset && this.#segments[latest] === segment) return;
    this.#offsets[this.#next] = offset;
    this.#positions[this.#next] = position;
    this.#segments[this.#next] = segment;
    this.#next = (this.#next + 1) % marksKept;
  }

  /** The position, or -1 when it is not known. */
  find(offset: number, segment: Segment): number {
    for (let step = 1; step <= marksKept; step += 1) {
      const at = (this.#next + marksKept - step) % marksKept;
      if (this.#offsets[at] === offset && this.#segments[at] === segment)
        return this.#positions[at] as number;
    }
    return -1;
  }

  clear(): void {
    this.#offsets.fill(-1);
    this.#segments.fill(null);
  }
}
