/** What a partition's log is made of, shared by the files that each do one thing with it. */
import type { Clock, Random } from '../ports.ts';
import type { EpochCache } from './epoch_cache.ts';
import { segmentSuffixes } from './file_names.ts';
import type { LogConfig } from './log_config.ts';
import type { ProducerState } from './producer_state.ts';
import type { LogFiles, Segment } from './segment.ts';
import type { SegmentList } from './segment_list.ts';

export interface LogParts {
  readonly files: LogFiles;
  readonly clock: Clock;
  readonly random: Random;
  readonly topic: string;
  readonly partition: number;
  config: LogConfig;
  readonly segments: SegmentList;
  readonly producers: ProducerState;
  readonly epochs: EpochCache;
  /** First offset that may be read. Invariant: at least the first segment's base offset. */
  logStartOffset: number;
  /** Offset that the next batch gets. */
  logEndOffset: number;
  /** Below it, every batch is in its file (page cache). */
  writtenOffset: number;
  /** Below it, everything is on stable storage. */
  flushedOffset: number;
  /** Below it, everything was on stable storage, indexes included, when the checkpoint was taken. */
  recoveryPoint: number;
  /** Offset of the newest producer snapshot, -1 if there is none. */
  snapshotOffset: number;
  /** Offsets of the producer snapshots on disk, ascending. */
  readonly snapshotOffsets: number[];
  /** Segments with bytes in the page cache that no flush has begun to cover. */
  readonly dirtySegments: Segment[];
  /** Damaged ranges were moved out of the log at some time, so that offsets may be missing anywhere. */
  hasSetAside: boolean;
  /** Names in the partition's directory, or its own name in the log directory, that no flush has begun to cover. */
  isDirectoryDirty: boolean;
  isParentDirty: boolean;
}

/** Kafka's `partition.metadata`. */
export function formatPartitionMetadata(topicId: string): Uint8Array {
  return new TextEncoder().encode(`version: 0\ntopic_id: ${topicId}`);
}

/** The topic id in such a file, or null when there is none. */
export function parseTopicId(bytes: Uint8Array): string | null {
  return /^topic_id: *(\S+)/m.exec(new TextDecoder().decode(bytes))?.[1] ?? null;
}

/** Notes that the segment's file has bytes that wait for a flush. */
export function markSegmentDirty(parts: LogParts, segment: Segment): void {
  if (segment.isDirty || segment.isRemoved) return;
  segment.isDirty = true;
  parts.dirtySegments.push(segment);
}

/** Lets go of a segment that is no longer in the list; what is pinned can still be read. */
export function letGo(parts: LogParts, segment: Segment): void {
  segment.isRemoved = true;
  segment.isActive = false;
  parts.files.cache.forget(segment);
  segment.close();
  const dirty = parts.dirtySegments.indexOf(segment);
  if (dirty >= 0) parts.dirtySegments.splice(dirty, 1);
}

/** Removes the files of a segment that is no longer in the list. */
export function removeSegmentFiles(parts: LogParts, segment: Segment): void {
  letGo(parts, segment);
  for (const suffix of segmentSuffixes) parts.files.disk.unlink(segment.path(suffix));
  parts.isDirectoryDirty = true;
}
