/**
 * What the checkpoint files of one log directory say, by partition: put together from what threads report.
 *
 * Thread: main. A report can be older than what is known (the two come by different ways), so a log start never goes
 * back, and what is said of another topic of the same name is not mixed in.
 */
import { partitionDirectoryName } from './partition_directory.ts';

/** What the checkpoints say of a partition; 0 where they say nothing. */
export interface PartitionMarks {
  readonly recoveryPoint: number;
  readonly logStartOffset: number;
  readonly highWatermark: number;
  /** Below it the log is compacted; absent where it never was. */
  readonly cleanedOffset?: number;
}

export interface PartitionCheckpoint extends PartitionMarks {
  readonly topic: string;
  readonly partition: number;
  /** Of the topic: a later one of the same name is another one. */
  readonly topicId: string;
}

/** Where a partition's log is to begin. */
export interface LogStart {
  readonly topic: string;
  readonly partition: number;
  readonly topicId: string;
  readonly logStartOffset: number;
  /** The recovery point is not past it: the log is about to be cut there. */
  readonly recoveryPointMax?: number;
}

export class CheckpointTable {
  readonly #entries = new Map<string, PartitionCheckpoint>();

  /** In no particular order. */
  values(): PartitionCheckpoint[] {
    return [...this.#entries.values()];
  }

  /** As they would be with these log starts. */
  valuesWith(starts: readonly LogStart[]): PartitionCheckpoint[] {
    if (starts.length === 0) return this.values();
    const copy = new CheckpointTable();
    for (const one of this.#entries.values()) copy.report(one);
    copy.advance(starts);
    return copy.values();
  }

  /** Takes over what the partition's thread reports. False: it is known already. */
  report(one: PartitionCheckpoint): boolean {
    const name = partitionDirectoryName(one.topic, one.partition);
    const known = this.#entries.get(name);
    const isSame = known !== undefined && known.topicId === one.topicId;
    const logStartOffset = isSame
      ? Math.max(known.logStartOffset, one.logStartOffset)
      : one.logStartOffset;
    const told = { ...one, logStartOffset };
    if (isSame && areEqual(known, told)) return false;
    this.#entries.set(name, told);
    return true;
  }

  /** Moves log starts up, which are on stable storage now. */
  advance(starts: readonly LogStart[]): void {
    for (const { recoveryPointMax = Number.POSITIVE_INFINITY, ...start } of starts) {
      const known = this.#entries.get(partitionDirectoryName(start.topic, start.partition));
      const isSame = known?.topicId === start.topicId;
      const marks = isSame ? known : { recoveryPoint: 0, highWatermark: 0 };
      const recoveryPoint = Math.min(marks.recoveryPoint, recoveryPointMax);
      this.report({ ...marks, ...start, recoveryPoint });
    }
  }

  /** The partition is gone. False when nothing was known of it. */
  remove(topic: string, partition: number, topicId: string): boolean {
    const name = partitionDirectoryName(topic, partition);
    if (this.#entries.get(name)?.topicId !== topicId) return false;
    return this.#entries.delete(name);
  }
}

function areEqual(a: PartitionMarks, b: PartitionMarks): boolean {
  return (
    a.recoveryPoint === b.recoveryPoint &&
    a.logStartOffset === b.logStartOffset &&
    a.highWatermark === b.highWatermark &&
    (a.cleanedOffset ?? 0) === (b.cleanedOffset ?? 0)
  );
}
