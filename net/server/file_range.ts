/** A piece of a file that is sent as part of a response without passing through our memory. */
import { readSync } from 'node:fs';

export interface FileRange {
  readonly fd: number;
  /** Where the piece starts in the file, bytes. */
  readonly position: number;
  readonly byteLength: number;
  /** Keeps the file open and the bytes in place; `unpin` is called exactly once, sent or not. */
  readonly pin: { unpin(): void } | null;
}

/** Where in a response's bytes a range belongs: before the byte at offset `at`. Offsets ascend. */
export interface RangeHole {
  readonly at: number;
  readonly value: FileRange;
}

/**
 * Reads `target.length` bytes of the file at `position` into `target`. Returns null, or why it failed: an IO error, or a
 * file that is shorter than the range said.
 */
export function readFully(fd: number, position: number, target: Uint8Array): string | null {
  let done = 0;
  try {
    while (done < target.length) {
      const count = readSync(fd, target, done, target.length - done, position + done);
      if (count === 0) return `the file ends at ${position + done}`;
      done += count;
    }
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
