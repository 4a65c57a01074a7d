/**
 * Takes damaged ranges out of a log that has no other copy: the bytes go into files of their own beside the segment,
 * for whoever can make sense of them, and the segment is written anew without them, so that every tool can read it.
 *
 * Rare, so everything waits for the device. A crash in between leaves the segment as it was, or as it shall be.
 */
import { segmentFileName } from './file_names.ts';
import type { LogParts } from './log_parts.ts';
import { temporarySuffix } from './log_state_store.ts';
import type { DamagedRange } from './recovery.ts';
import { Segment } from './segment.ts';

/** Of a file with what was moved out of a segment. While it lies there, the log has a hole. */
export const damagedSuffix = '.damaged';
/** Appended to it when other copies have filled the hole: the bytes may be somebody's still. */
const repairedSuffix = '.repaired';
/** Appended to it when nobody will fill the hole: offsets are missing there in every copy. */
export const acceptedSuffix = '.accepted';
const copyBytes = 1024 * 1024;

/** @throws DiskError */
export function setAside(parts: LogParts, ranges: readonly DamagedRange[]): void {
  for (let number = 0; number < parts.segments.count; number += 1) {
    const segment = parts.segments.at(number) as Segment;
    const own = ranges.filter((range) => range.segmentBaseOffset === segment.baseOffset);
    if (own.length > 0) replaceSegment(parts, number, segment, own);
  }
  parts.hasSetAside = true;
}

/**
 * The log has no holes any more: they are cut, on stable storage, and what follows will be another replica's. Durable with
 * the log's next flush; a crash before makes the next start take the log for one with holes, which does no harm.
 * @throws DiskError
 */
export function noteRepaired(parts: LogParts): void {
  renameDamaged(parts, repairedSuffix);
  parts.hasSetAside = false;
}

/** What is missing stays missing: from now on this log is what the others copy. Durability as of `noteRepaired`. @throws DiskError */
export function noteAccepted(parts: LogParts): void {
  renameDamaged(parts, acceptedSuffix);
}

function renameDamaged(parts: LogParts, suffix: string): void {
  const { disk, dir } = parts.files;
  for (const name of disk.list(dir) ?? [])
    if (name.endsWith(damagedSuffix)) disk.rename(`${dir}/${name}`, `${dir}/${name}${suffix}`);
  parts.isDirectoryDirty = true;
}

function replaceSegment(
  parts: LogParts,
  number: number,
  segment: Segment,
  ranges: readonly DamagedRange[],
): void {
  const { disk, dir } = parts.files;
  for (const range of ranges) {
    const name = segmentFileName(segment.baseOffset, `-${range.position}${damagedSuffix}`);
    const copy = disk.open(`${dir}/${name}`, true);
    copyRange(parts, segment, range.position, range.position + range.length, copy, 0);
    disk.flushSync(copy);
    disk.close(copy);
  }
  const path = segment.path('.log');
  const whole = disk.open(path + temporarySuffix, true);
  disk.truncate(whole, 0);
  let written = 0;
  let from = 0;
  for (const range of ranges) {
    written += copyRange(parts, segment, from, range.position, whole, written);
    from = range.position + range.length;
  }
  written += copyRange(parts, segment, from, segment.size, whole, written);
  disk.flushSync(whole);
  disk.close(whole);
  disk.flushDirectorySync(dir);
  segment.close();
  disk.unlink(segment.path('.index'));
  disk.unlink(segment.path('.timeindex'));
  disk.rename(path + temporarySuffix, path);
  disk.flushDirectorySync(dir);
  parts.files.cache.forget(segment);
  const replacement = new Segment(parts.files, segment.baseOffset, written);
  parts.segments.replace(number, replacement);
  const dirty = parts.dirtySegments.indexOf(segment);
  if (dirty >= 0) parts.dirtySegments.splice(dirty, 1);
}

function copyRange(
  parts: LogParts,
  segment: Segment,
  from: number,
  to: number,
  target: number,
  targetPosition: number,
): number {
  const { disk } = parts.files;
  const buffer = new Uint8Array(Math.min(copyBytes, to - from));
  for (let at = from; at < to; at += buffer.length) {
    const count = disk.read(segment.fd, buffer, 0, Math.min(buffer.length, to - at), at);
    disk.write(target, buffer, 0, count, targetPosition + at - from);
  }
  return to - from;
}
