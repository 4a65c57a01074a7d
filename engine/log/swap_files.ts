/**
 * Files that a crash of Kafka's cleaner, splitter or deleter can leave (`.cleaned`, `.swap`, `.deleted`), brought to an
 * end as Kafka does it when it loads a log.
 */
import type { Disk } from '../ports.ts';
import { BatchScanner, Scan } from './batch_scanner.ts';
import { offsetInFileName, segmentFileName, segmentSuffixes, swapSuffix } from './file_names.ts';
import type { LogParts } from './log_parts.ts';

/**
 * Removes `.deleted` and `.cleaned` files. A `.swap` segment is complete and takes the place of those it was made from,
 * unless a `.cleaned` one at or below it says that its group was not. Returns the names that are left.
 */
export function finishSwaps(parts: LogParts, names: readonly string[]): readonly string[] {
  if (!names.some((name) => /\.(cleaned|swap|deleted)$/.test(name))) return names;
  const { disk, dir } = parts.files;
  let cleanedMin = Number.POSITIVE_INFINITY;
  for (const name of names) {
    const cleaned = /^(\d{20})\.\w+\.cleaned$/.exec(name);
    if (cleaned !== null) cleanedMin = Math.min(cleanedMin, Number(cleaned[1]));
    if (/\.(cleaned|deleted)$/.test(name)) disk.unlink(`${dir}/${name}`);
  }
  const swaps = names
    .map((name) => offsetInFileName(name, '.log.swap'))
    .filter((base) => base >= 0)
    .sort((a, b) => a - b);
  for (const base of swaps) {
    if (base >= cleanedMin) removeSwap(parts, base);
    else takeSwap(parts, base, names);
  }
  // Indexes that a crash has left behind under that name are made anew.
  for (const name of disk.list(dir) ?? [])
    if (name.endsWith(swapSuffix)) disk.unlink(`${dir}/${name}`);
  parts.isDirectoryDirty = true;
  return disk.list(dir) ?? [];
}

function removeSwap({ files }: LogParts, base: number): void {
  for (const suffix of segmentSuffixes)
    files.disk.unlink(`${files.dir}/${segmentFileName(base, `${suffix}.swap`)}`);
}

/**
 * The swap holds what the segments from its base up to the next one's after its last offset held. Their loss is flushed
 * before it gets its name: a power cut could otherwise leave both.
 */
function takeSwap({ files }: LogParts, base: number, names: readonly string[]): void {
  const { disk, dir } = files;
  const end = lastOffsetIn(`${dir}/${segmentFileName(base, '.log.swap')}`, disk) + 1;
  for (const name of names) {
    const other = offsetInFileName(name, '.log');
    if (other < 0 || other < base || other >= end) continue;
    for (const suffix of segmentSuffixes) disk.unlink(`${dir}/${segmentFileName(other, suffix)}`);
  }
  disk.flushDirectorySync(dir);
  for (const suffix of segmentSuffixes) {
    const path = `${dir}/${segmentFileName(base, suffix)}`;
    if (disk.status(`${path}.swap`) !== null) disk.rename(`${path}.swap`, path);
  }
}

/** Last offset in a log file by its headers, -1 when it holds no batch. */
function lastOffsetIn(path: string, disk: Disk): number {
  const fd = disk.open(path, false);
  try {
    const scanner = new BatchScanner(disk, fd, 0, disk.size(fd), 0, false);
    let last = -1;
    while (scanner.next() === Scan.batch) last = scanner.lastOffset;
    return last;
  } finally {
    disk.close(fd);
  }
}
