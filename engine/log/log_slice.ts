import type { Segment } from './segment.ts';

/**
 * A range of whole batches in one file. Pin the segment before anything else happens on the thread, and unpin it when
 * the bytes are sent: the descriptor and the file stay until then.
 */
export interface LogSlice {
  readonly segment: Segment;
  readonly fd: number;
  readonly position: number;
  /** Bytes, more than 0. */
  readonly length: number;
  /** The offset asked for, which lies in the first batch or before it. */
  readonly startOffset: number;
  /** Why it ends where it does: there is no more; more would not fit; or more is in the next segment. */
  readonly end: 'all' | 'full' | 'segment';
}
