/** The segments of a log by base offset. Invariant: base offsets grow strictly; the last one is active. */
import type { Segment } from './segment.ts';

export class SegmentList {
  #segments: Segment[] = [];

  get count(): number {
    return this.#segments.length;
  }

  get first(): Segment {
    return this.#segments[0] as Segment;
  }

  get active(): Segment {
    return this.#segments[this.#segments.length - 1] as Segment;
  }

  at(number: number): Segment | undefined {
    return this.#segments[number];
  }

  /** Adds a segment behind the others and makes it the active one. */
  push(segment: Segment): void {
    const last = this.#segments[this.#segments.length - 1];
    if (last !== undefined) last.isActive = false;
    segment.isActive = true;
    // Most logs have one segment: room for one, where `push` would make room for 17.
    if (last === undefined) this.#segments = [segment];
    else this.#segments.push(segment);
  }

  /** Takes out the segments from number `count` on and returns them; the last of the rest becomes active. */
  truncate(count: number): Segment[] {
    const removed = this.#segments.splice(count);
    for (const segment of removed) segment.isActive = false;
    const last = this.#segments[count - 1];
    if (last !== undefined) last.isActive = true;
    return removed;
  }

  /** Takes out the first segment, which must not be the only one. */
  shift(): Segment {
    return this.#segments.shift() as Segment;
  }

  /** Puts a segment in place of `count` others, which are not active. */
  merge(number: number, count: number, segment: Segment): Segment[] {
    return this.#segments.splice(number, count, segment);
  }

  replace(number: number, segment: Segment): void {
    this.#segments[number] = segment;
    segment.isActive = number === this.#segments.length - 1;
  }

  /** Number of the last segment whose base offset is at most `offset`, or -1. */
  floor(offset: number): number {
    const segments = this.#segments;
    let high = segments.length - 1;
    // Most look-ups want the end of the log.
    if (high >= 0 && (segments[high] as Segment).baseOffset <= offset) return high;
    let low = 0;
    while (low <= high) {
      const middle = (low + high) >>> 1;
      if ((segments[middle] as Segment).baseOffset <= offset) low = middle + 1;
      else high = middle - 1;
    }
    return high;
  }

  [Symbol.iterator](): Iterator<Segment> {
    return this.#segments[Symbol.iterator]();
  }
}
