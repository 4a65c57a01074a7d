/**
 * Opens what is in a partition's directory: few system calls for each partition, and after an unclean stop a scan of
 * what lies past the recovery point. See `recovery.ts` for what is done about damage.
 */
import type { Clock, Disk, Random } from '../ports.ts';
import { EpochCache } from './epoch_cache.ts';
import { leaderEpochFile, offsetInFileName, partitionMetadataFile } from './file_names.ts';
import type { LogConfig } from './log_config.ts';
import { formatPartitionMetadata, type LogParts, parseTopicId } from './log_parts.ts';
import { strayDirectory } from './partition_directory.ts';
import { restoreProducers } from './producer_recovery.ts';
import { ProducerState } from './producer_state.ts';
import {
  newRecoveryReport,
  type RecoveryReport,
  recoverSegments,
  scanEpochs,
  scanFirstEpochs,
} from './recovery.ts';
import { Segment } from './segment.ts';
import type { SegmentCache } from './segment_cache.ts';
import { SegmentList } from './segment_list.ts';
import { acceptedSuffix, damagedSuffix } from './set_aside.ts';
import { finishSwaps } from './swap_files.ts';
import { restartLog } from './truncation.ts';

export type { DamagedRange, RecoveryReport } from './recovery.ts';

export interface LogOptions {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  /** The thread's, shared by its logs. */
  readonly cache: SegmentCache;
  /** The partition's directory, without a slash at the end. */
  readonly dir: string;
  readonly topic: string;
  readonly partition: number;
  /** As in Kafka's `partition.metadata`: 22 characters. */
  readonly topicId: string;
  readonly config: LogConfig;
  /** From the log directory's checkpoints; 0 when they have no entry. */
  readonly recoveryPoint: number;
  readonly logStartOffset: number;
  /** From `cleaner-offset-checkpoint`: below it the log is compacted; default 0. */
  readonly cleanedOffset?: number;
  /** The log directory was closed as it should be: nothing lies past the recovery point. */
  readonly cleanShutdown: boolean;
  /**
   * The machine may have lost power since the log was open: unflushed pages may be missing before ones that are there.
   * When false, what was written is in the files as it was written.
   */
  readonly afterPowerLoss: boolean;
  /** A flush failed before the stop: what lies past the recovery point is read from the device, not from the cache. */
  readonly dropCache: boolean;
  /** There is no other copy to repair from: a damaged range is moved into a file of its own, and the log goes on. */
  readonly setAsideDamage: boolean;
}

/** @throws DiskError */
export function openLogParts(options: LogOptions): { parts: LogParts; recovery: RecoveryReport } {
  const parts = emptyParts(options);
  const recovery = newRecoveryReport();
  const names = listOwn(options, recovery);
  if (names === null) {
    createDirectory(parts, options);
    recovery.isNew = true;
  } else {
    openDirectory(parts, options, names, recovery);
  }
  if (parts.logEndOffset < options.recoveryPoint)
    recovery.lost = { fromOffset: parts.logEndOffset, toOffset: options.recoveryPoint };
  return { parts, recovery };
}

/**
 * The names in the directory, or null when there is none. One that belongs to another topic id (of an older topic of
 * that name, whose deletion a crash has undone) is moved out of the way; its data may be somebody's, so it stays.
 */
function listOwn(options: LogOptions, recovery: RecoveryReport): string[] | null {
  const { disk, dir, topicId, random } = options;
  const names = disk.list(dir);
  if (names === null) return null;
  const metadata = disk.readFile(`${dir}/${partitionMetadataFile}`);
  const found = metadata === null ? null : parseTopicId(metadata);
  if (found === null || found === topicId) return names;
  recovery.strayPath = strayDirectory(dir, random);
  disk.rename(dir, recovery.strayPath);
  return null;
}

function emptyParts(options: LogOptions): LogParts {
  return {
    files: { disk: options.disk, cache: options.cache, dir: options.dir },
    clock: options.clock,
    random: options.random,
    topic: options.topic,
    partition: options.partition,
    config: options.config,
    segments: new SegmentList(),
    producers: new ProducerState(),
    epochs: new EpochCache(),
    logStartOffset: options.logStartOffset,
    logEndOffset: options.logStartOffset,
    writtenOffset: options.logStartOffset,
    flushedOffset: options.logStartOffset,
    recoveryPoint: options.logStartOffset,
    snapshotOffset: -1,
    flushedSnapshotOffset: -1,
    snapshotOffsets: [],
    dirtySegments: [],
    hasSetAside: false,
    isDirectoryDirty: false,
    isParentDirty: false,
    isMetadataDirty: false,
  };
}

/** Nothing is flushed here: the first flush that counts covers the new names as well. */
function createDirectory(parts: LogParts, options: LogOptions): void {
  options.disk.mkdir(options.dir);
  parts.isParentDirty = true;
  writeMetadata(parts, options);
  createSegment(parts);
}

function writeMetadata(parts: LogParts, options: LogOptions): void {
  options.disk.writeFile(
    `${options.dir}/${partitionMetadataFile}`,
    formatPartitionMetadata(options.topicId),
  );
  parts.isMetadataDirty = true;
  parts.isDirectoryDirty = true;
}

function createSegment(parts: LogParts): void {
  const segment = new Segment(parts.files, parts.logEndOffset, 0);
  segment.create(parts.clock.wallMs());
  parts.segments.push(segment);
  parts.isDirectoryDirty = true;
}

function openDirectory(
  parts: LogParts,
  options: LogOptions,
  found: readonly string[],
  recovery: RecoveryReport,
): void {
  const names = removeOrphans(parts, finishSwaps(parts, found));
  const bases: number[] = [];
  let hasEpochs = false;
  let hasMetadata = false;
  for (const name of names) {
    const base = offsetInFileName(name, '.log');
    const snapshot = base < 0 ? offsetInFileName(name, '.snapshot') : -1;
    if (base >= 0) bases.push(base);
    else if (snapshot >= 0) parts.snapshotOffsets.push(snapshot);
    else if (name === leaderEpochFile) hasEpochs = true;
    else if (name === partitionMetadataFile) hasMetadata = true;
    else if (name.endsWith(damagedSuffix)) {
      const hole = Number(name.slice(0, 20));
      const { earlierHoleFrom: first } = recovery;
      recovery.earlierHoleFrom = first < 0 ? hole : Math.min(first, hole);
      parts.hasSetAside = true;
    } else if (name.endsWith(acceptedSuffix)) parts.hasSetAside = true;
  }
  bases.sort((a, b) => a - b);
  parts.snapshotOffsets.sort((a, b) => a - b);
  for (const base of bases) parts.segments.push(new Segment(parts.files, base, -1));
  if (!hasMetadata) writeMetadata(parts, options);
  if (bases.length === 0) {
    createSegment(parts);
    return;
  }
  parts.logStartOffset = Math.max(options.logStartOffset, parts.segments.first.baseOffset);
  const isEpochsKnown = hasEpochs && loadEpochs(parts);
  // What the file says of the rest may be from before a cut; the batches themselves tell.
  parts.epochs.truncateFromEnd(Math.max(options.recoveryPoint, parts.logStartOffset));
  recoverSegments(parts, options, recovery);
  // A power cut took records that were never flushed (durability 'os') and had been deleted.
  if (parts.logEndOffset < parts.logStartOffset) restartLog(parts, parts.logStartOffset);
  if (isEpochsKnown) scanFirstEpochs(parts);
  else if (options.recoveryPoint > parts.logStartOffset) scanEpochs(parts);
  parts.epochs.truncateFromEnd(parts.logEndOffset);
  parts.epochs.truncateFromStart(parts.logStartOffset);
  restoreProducers(parts);
  if (options.cleanShutdown) parts.flushedSnapshotOffset = parts.snapshotOffset;
}

/** Indexes without their segment: a crash came between the renames of a deletion. */
function removeOrphans({ files }: LogParts, names: readonly string[]): readonly string[] {
  const all = new Set(names);
  return names.filter((name) => {
    const suffix = /^\d{20}\.(index|timeindex|txnindex)$/.test(name) ? name.slice(20) : '';
    if (suffix === '' || all.has(`${name.slice(0, 20)}.log`)) return true;
    files.disk.unlink(`${files.dir}/${name}`);
    return false;
  });
}

function loadEpochs(parts: LogParts): boolean {
  const { disk, dir } = parts.files;
  const bytes = disk.readFile(`${dir}/${leaderEpochFile}`);
  return bytes !== null && parts.epochs.load(bytes);
}
