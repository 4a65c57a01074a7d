/** Looks at bytes that are no batch: what comes after them, and whether they look like a power cut's work. */
import { batchHeaderBytes, batchMagic, batchOffset } from '../batch/header.ts';
import type { Disk } from '../ports.ts';
import { BatchScanner, Scan } from './batch_scanner.ts';
import { relativeOffsetMax } from './offset_index.ts';
import type { Segment } from './segment.ts';

const chunkBytes = 1024 * 1024;
/** What a device writes whole or not at all. */
const sectorBytes = 512;
const lostBytesMin = 8;

export interface FoundBatch {
  readonly position: number;
  readonly baseOffset: number;
}

/** The first valid batch after `damagedAt` in the segment whose offsets are `offset` or later; null if there is none. */
export function findNextBatch(
  disk: Pick<Disk, 'read'>,
  segment: Pick<Segment, 'fd' | 'size' | 'baseOffset'>,
  damagedAt: number,
  offset: number,
): FoundBatch | null {
  const { fd, size } = segment;
  const chunk = new Uint8Array(Math.min(chunkBytes, size - damagedAt));
  let from = damagedAt + 1;
  while (from + batchHeaderBytes <= size) {
    const count = disk.read(fd, chunk, 0, Math.min(chunk.length, size - from), from);
    if (count < batchHeaderBytes) return null;
    const last = count - batchHeaderBytes;
    for (let at = 0; at <= last; at += 1) {
      if (!isCandidate(chunk, at)) continue;
      const scanner = new BatchScanner(disk, fd, from + at, size, offset, true);
      if (
        scanner.next() === Scan.batch &&
        scanner.lastOffset - segment.baseOffset <= relativeOffsetMax
      )
        return { position: from + at, baseOffset: scanner.baseOffset };
    }
    from += last + 1;
  }
  return null;
}

/** Magic and the high bytes of offset and length: what is cheap to look at and seldom there by chance. */
function isCandidate(bytes: Uint8Array, at: number): boolean {
  return (
    bytes[at + batchOffset.magic] === batchMagic &&
    bytes[at] === 0 &&
    bytes[at + 1] === 0 &&
    (bytes[at + batchOffset.length] as number) < 0x80
  );
}

/**
 * Whether a sector, or the part of it that lies in the range, was never written: all zeros. A batch may well begin with
 * zeros, those of its offset, so that the few bytes of it before a sector's end say something only where that is large.
 * @param baseOffset of the batch that should be at `from`
 */
export function hasLostSector(
  disk: Disk,
  fd: number,
  from: number,
  to: number,
  baseOffset: number,
): boolean {
  /** So many bytes of the batch are never all zeros. */
  const tellingStart = 8 - Math.floor(Math.log2(Math.max(1, baseOffset)) / 8);
  const chunk = new Uint8Array(chunkBytes);
  let position = from;
  while (position < to) {
    // Chunks end at sector boundaries.
    const wanted = Math.min(chunkBytes - (position % sectorBytes), to - position);
    const count = disk.read(fd, chunk, 0, wanted, position);
    if (count === 0) return true;
    let at = 0;
    while (at < count) {
      const end = Math.min(count, at + sectorBytes - ((position + at) % sectorBytes));
      const isStart = position + at === from;
      if (end - at >= (isStart ? tellingStart : lostBytesMin) && isZero(chunk, at, end))
        return true;
      at = end;
    }
    position += count;
  }
  return false;
}

function isZero(bytes: Uint8Array, from: number, to: number): boolean {
  for (let at = from; at < to; at += 1) if (bytes[at] !== 0) return false;
  return true;
}
