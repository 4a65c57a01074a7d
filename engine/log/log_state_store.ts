/**
 * Puts into files what a log holds in memory besides its batches: index entries, leader epochs, producers. None of
 * it is needed to be right after a crash (the log itself says it all), but all of it to start without reading the log.
 */

import { leaderEpochFile, segmentFileName } from './file_names.ts';
import type { FlushSet } from './flush_set.ts';
import type { LogParts } from './log_parts.ts';

/** Suffix of a file that takes its real name once its bytes are flushed. */
export const temporarySuffix = '.tmp';

/**
 * Writes index entries, the producers' snapshot (unless batches are pending, which it would wrongly count in) and the
 * leader epochs (under a temporary name: see `commitEpochs`) and adds the files to `set`.
 * @param isFinal the log is about to be closed
 * @throws DiskError
 */
export function storeState(
  parts: LogParts,
  set: FlushSet,
  hasPending: boolean,
  isFinal: boolean,
): void {
  const { segments, files, epochs } = parts;
  // With the segment that ends there: it may have been closed since.
  const first = Math.max(0, segments.floor(parts.recoveryPoint - 1));
  for (let number = first; number < segments.count; number += 1) {
    const segment = segments.at(number);
    if (segment === undefined) continue;
    const isActive = number === segments.count - 1;
    segment.storeIndexes(isFinal || !isActive);
    // Also what was written when the segment was closed, between two checkpoints.
    if (segment.hasWrittenIndexes) {
      set.addPath(segment.path('.index'));
      set.addPath(segment.path('.timeindex'));
      set.addDirectory(files.dir);
    }
  }
  if (!hasPending) storeSnapshot(parts);
  if (parts.snapshotOffset > parts.flushedSnapshotOffset) {
    set.addPath(`${files.dir}/${segmentFileName(parts.snapshotOffset, '.snapshot')}`);
    set.addDirectory(files.dir);
  }
  if (epochs.isDirty) {
    const path = `${files.dir}/${leaderEpochFile}${temporarySuffix}`;
    files.disk.writeFile(path, epochs.toFile());
    set.addPath(path);
    epochs.isDirty = false;
    epochs.isStaged = true;
  }
}

/** Gives the epochs file its name; the directory is to be flushed after that. Returns false when there is none. */
export function commitEpochs(parts: LogParts): boolean {
  const { files, epochs } = parts;
  if (!epochs.isStaged) return false;
  const path = `${files.dir}/${leaderEpochFile}`;
  files.disk.rename(path + temporarySuffix, path);
  epochs.isStaged = false;
  return true;
}

/**
 * Snapshots the producers as of the log's end, which must not have batches pending. Keeps, as Kafka does, those at the
 * segments' base offsets and the newest; also the newest that is flushed, until another one is. Returns false when
 * there is one for this offset already.
 * @throws DiskError
 */
export function storeSnapshot(parts: LogParts): boolean {
  const { files, segments, snapshotOffsets } = parts;
  const offset = parts.logEndOffset;
  if (parts.snapshotOffset === offset) return false;
  segments.active.flushCut();
  files.disk.writeFile(
    `${files.dir}/${segmentFileName(offset, '.snapshot')}`,
    parts.producers.snapshot(),
  );
  parts.snapshotOffset = offset;
  snapshotOffsets.push(offset);
  removeOldSnapshots(parts);
  return true;
}

function removeOldSnapshots(parts: LogParts): void {
  const { segments, snapshotOffsets, flushedSnapshotOffset } = parts;
  // A power cut that takes the batches takes that one, too: it would be past the log's end.
  if (flushedSnapshotOffset > parts.flushedOffset) return;
  for (const offset of [...snapshotOffsets]) {
    if (offset >= flushedSnapshotOffset) break;
    if (segments.at(segments.floor(offset))?.baseOffset !== offset) removeSnapshot(parts, offset);
  }
}

/** A snapshot is on stable storage: those that it makes superfluous go. */
export function noteSnapshotFlushed(parts: LogParts, offset: number): void {
  if (offset <= parts.flushedSnapshotOffset) return;
  parts.flushedSnapshotOffset = offset;
  removeOldSnapshots(parts);
}

/** For offsets whose segments are gone. */
export function removeSnapshotsBelow(parts: LogParts, offset: number): void {
  while ((parts.snapshotOffsets[0] ?? offset) < offset)
    removeSnapshot(parts, parts.snapshotOffsets[0] as number);
}

function removeSnapshot({ files, snapshotOffsets }: LogParts, offset: number): void {
  files.disk.unlink(`${files.dir}/${segmentFileName(offset, '.snapshot')}`);
  snapshotOffsets.splice(snapshotOffsets.indexOf(offset), 1);
}
