/** Checks a partition's directory: its segments one after the other, and the small files beside them. */
import { join } from 'node:path';
import { leaderEpochOf } from '../../engine/batch/header.ts';
import { EpochCache } from '../../engine/log/epoch_cache.ts';
import { leaderEpochFile, partitionMetadataFile } from '../../engine/log/file_names.ts';
import { decodeProducerSnapshot } from '../../engine/log/producer_snapshot.ts';
import { finding, type Report, remedies } from './finding.ts';
import { type PartitionFiles, readIfThere, type SegmentFile, withFile } from './log_files.ts';
import { checkSegment, type LogProgress, leftoverNote } from './segment_check.ts';
import { type ScannedBatch, scanSegment } from './segment_scan.ts';

/** What the log directory's checkpoint files say of a partition; null where they say nothing. */
export interface PartitionCheckpoints {
  readonly recoveryPoint: number | null;
  readonly logStartOffset: number | null;
  readonly highWatermark: number | null;
  readonly isCompacted: boolean;
  /** The broker has been stopped cleanly: everything in the directory should agree. */
  readonly isClean: boolean;
}

export interface PartitionSummary {
  readonly partition: PartitionFiles;
  readonly segments: number;
  readonly bytes: number;
  readonly batches: number;
  readonly records: number;
  /** Null for a log without a batch. */
  readonly firstOffset: number | null;
  readonly endOffset: number;
}

export function checkPartition(
  partition: PartitionFiles,
  checkpoints: PartitionCheckpoints,
  report: Report,
  onBytes: (count: number) => void,
): PartitionSummary {
  const { segments } = partition;
  const { isCompacted, isClean } = checkpoints;
  const progress: LogProgress = {
    expected: segments[0]?.baseOffset ?? null,
    epoch: -1,
    isCompacted,
    batches: 0,
    records: 0,
  };
  const epochs = new EpochCheck(partition, checkpoints);
  let firstOffset: number | null = null;
  const onBatch = (batch: ScannedBatch): void => {
    firstOffset ??= batch.baseOffset;
    epochs.onBatch(batch);
  };
  const recoveryPoint = isClean ? Number.POSITIVE_INFINITY : (checkpoints.recoveryPoint ?? 0);
  for (const [number, file] of segments.entries()) {
    const isLast = segments.slice(number + 1).every((later) => later.size === 0);
    checkSegment(file, progress, { report, onBytes, onBatch, isClean, recoveryPoint, isLast });
    checkBorder(file, segments[number + 1], progress, report);
  }
  epochs.end(report);
  checkSmallFiles(partition, report);
  const endOffset = progress.expected ?? segments.at(-1)?.baseOffset ?? 0;
  checkMarks(partition, checkpoints, endOffset, report);
  const { batches, records } = progress;
  const bytes = segments.reduce((sum, { size }) => sum + size, 0);
  return {
    partition,
    segments: segments.length,
    bytes,
    batches,
    records,
    firstOffset,
    endOffset,
  };
}

/** A segment holds the offsets from that in its name to that in the next one's. */
function checkBorder(
  file: SegmentFile,
  next: SegmentFile | undefined,
  progress: LogProgress,
  report: Report,
): void {
  const { expected } = progress;
  if (next === undefined || expected === null || expected === next.baseOffset) return;
  const common = { severity: 'damage', path: file.path, remedy: remedies.records } as const;
  if (expected > next.baseOffset) {
    const problem = `ends with offset ${expected - 1}, and the next segment begins with ${next.baseOffset}`;
    const offsets = { fromOffset: next.baseOffset, toOffset: expected };
    report(finding({ ...common, ...offsets, problem }));
    return;
  }
  if (!progress.isCompacted) {
    const problem = `ends at offset ${expected}, the next segment begins with ${next.baseOffset}, and the log was never compacted`;
    const offsets = { fromOffset: expected, toOffset: next.baseOffset };
    report(finding({ ...common, ...offsets, problem }));
  }
  progress.expected = next.baseOffset;
}

/** Compares `leader-epoch-checkpoint` with the epochs in the batches. */
class EpochCheck {
  readonly #path: string;
  readonly #cache: EpochCache | null;
  readonly #isReadable: boolean;
  /** The file says nothing of offsets below. */
  readonly #from: number;
  /** Entries past it are made again from the batches. */
  readonly #to: number;
  #lastEpoch = -1;
  #problem: { readonly offset: number; readonly text: string } | null = null;

  constructor({ path }: PartitionFiles, checkpoints: PartitionCheckpoints) {
    this.#path = join(path, leaderEpochFile);
    const bytes = readIfThere(this.#path);
    const cache = new EpochCache();
    this.#isReadable = bytes === null || cache.load(bytes);
    this.#cache = bytes === null || !this.#isReadable ? null : cache;
    this.#from = Math.max(cache.entries[0]?.startOffset ?? 0, checkpoints.logStartOffset ?? 0);
    this.#to = checkpoints.isClean
      ? Number.POSITIVE_INFINITY
      : (checkpoints.recoveryPoint ?? Number.POSITIVE_INFINITY);
  }

  onBatch({ buffer, at, baseOffset }: ScannedBatch): void {
    const epoch = leaderEpochOf(buffer, at);
    if (this.#cache === null || epoch < 0 || epoch === this.#lastEpoch) return;
    this.#lastEpoch = epoch;
    if (baseOffset < this.#from || baseOffset >= this.#to || this.#problem !== null) return;
    const known = this.#cache.epochFor(baseOffset);
    if (known !== epoch)
      this.#problem = {
        offset: baseOffset,
        text: `says leader epoch ${known} for offset ${baseOffset}, and the batch there has ${epoch}`,
      };
  }

  end(report: Report): void {
    const problem = this.#isReadable
      ? this.#problem
      : { offset: null, text: 'cannot be read: it is cut short, or no list of epochs' };
    if (problem === null) return;
    report(
      finding({
        severity: 'rebuildable',
        path: this.#path,
        fromOffset: problem.offset,
        problem: problem.text,
        remedy: remedies.epochs,
      }),
    );
  }
}

function checkSmallFiles({ path, names }: PartitionFiles, report: Report): void {
  for (const name of names) {
    const file = join(path, name);
    const note = leftoverNote(name);
    if (note !== null) report(finding({ severity: 'note', path: file, problem: note }));
    if (/^\d{20}\.snapshot$/.test(name)) {
      const bytes = readIfThere(file);
      if (bytes !== null && decodeProducerSnapshot(bytes, 0) === null)
        report(
          finding({
            severity: 'rebuildable',
            path: file,
            problem: 'cannot be read: version, size or checksum are wrong',
            remedy: remedies.producers,
          }),
        );
    }
    if (/^\d{20}-\d{10}\.checkpoint$/.test(name)) checkMetadataSnapshot(file, report);
    if (name === partitionMetadataFile) checkTopicId(file, report);
  }
}

/** A snapshot of the metadata log is batches, too (KIP-630); its offsets begin with 0. */
function checkMetadataSnapshot(path: string, report: Report): void {
  withFile(path, (fd, size) => {
    for (const found of scanSegment({ path, baseOffset: 0, size }, fd)) {
      if (!found.isDamage) continue;
      const { position, length, problem } = found;
      report(
        finding({
          severity: 'damage',
          path,
          position,
          length,
          problem,
          remedy:
            'With the broker stopped, remove the file if the log still begins with offset 0 or an older snapshot is there; else move the directory away: the other controllers have it.',
        }),
      );
    }
  });
}

function checkTopicId(path: string, report: Report): void {
  const text = new TextDecoder().decode(readIfThere(path) ?? new Uint8Array(0));
  if (/^version: \d+\ntopic_id: [A-Za-z0-9_-]{22}\s*$/.test(text)) return;
  report(
    finding({
      severity: 'damage',
      path,
      problem: 'does not say which topic this is',
      remedy:
        'Write it again: "version: 0", and "topic_id: " with the id that `millrace topic describe` or kafka-topics.sh shows.',
    }),
  );
}

/** What the checkpoints say must lie within the log. */
function checkMarks(
  { path, segments }: PartitionFiles,
  checkpoints: PartitionCheckpoints,
  endOffset: number,
  report: Report,
): void {
  const { recoveryPoint, logStartOffset, highWatermark } = checkpoints;
  for (const [name, offset] of [
    ['the recovery point', recoveryPoint],
    ['the high watermark', highWatermark],
    ['the log start', logStartOffset],
  ] as const) {
    if (offset === null || offset <= endOffset) continue;
    report(
      finding({
        severity: 'damage',
        path,
        fromOffset: endOffset,
        toOffset: offset,
        problem: `the log ends at ${endOffset}, and ${name} in the checkpoint is ${offset}: its end is missing`,
        remedy: remedies.records,
      }),
    );
  }
  const first = segments[0];
  if (first !== undefined && logStartOffset !== null && first.baseOffset > logStartOffset)
    report(
      finding({
        severity: 'damage',
        path,
        fromOffset: logStartOffset,
        toOffset: first.baseOffset,
        problem: `the log is to begin at ${logStartOffset}, and its first segment begins at ${first.baseOffset}`,
        remedy: remedies.records,
      }),
    );
}
