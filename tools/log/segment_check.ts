/** Checks one segment: its batches, the records in them, and its two indexes. */
import { basename } from 'node:path';
import { crcOf, leaderEpochOf, recordCountOf } from '../../engine/batch/header.ts';
import { Scratch } from '../../engine/batch/scratch.ts';
import { finding, type Report, remedies } from './finding.ts';
import { type IndexProblem, OffsetIndexCheck, TimeIndexCheck } from './index_check.ts';
import { readIfThere, type SegmentFile, withFile } from './log_files.ts';
import { recordsProblem, type ScannedBatch, scanSegment, wholeBatch } from './segment_scan.ts';

/** What is known of a partition while its segments go by, in their order. */
export interface LogProgress {
  /** The offset that should come next; null before the first batch. */
  expected: number | null;
  /** Largest leader epoch so far. */
  epoch: number;
  /** Compaction has been here: offsets may be missing. */
  isCompacted: boolean;
  batches: number;
  records: number;
}

export interface SegmentContext {
  readonly report: Report;
  /** Told how many bytes more have been read. */
  readonly onBytes: (count: number) => void;
  /** Each intact batch, for those who compare it with something else. */
  readonly onBatch: (batch: ScannedBatch) => void;
  /** The broker has been stopped cleanly: nothing is unfinished. */
  readonly isClean: boolean;
  /** Nothing after this offset is known to have been written wholly, where the broker runs or has been killed. */
  readonly recoveryPoint: number;
  /** No segment with records follows. */
  readonly isLast: boolean;
}

const scratch = new Scratch();

export function checkSegment(
  file: SegmentFile,
  progress: LogProgress,
  context: SegmentContext,
): void {
  const { report } = context;
  const offsets = openIndex(
    file,
    '.index',
    (bytes) => new OffsetIndexCheck(bytes, file.baseOffset),
  );
  const times = openIndex(
    file,
    '.timeindex',
    (bytes) => new TimeIndexCheck(bytes, file.baseOffset),
  );
  let isDamaged = false;
  // As long as it is now that the indexes have been read: where a broker writes, what they name is there by now.
  withFile(file.path, (fd, size) => {
    let seen = 0;
    for (const found of scanSegment({ ...file, size }, fd)) {
      if (found.isDamage) {
        isDamaged = true;
        reportDamage(file, found, context);
        progress.expected = found.toOffset;
      } else {
        offsets?.check.onBatch(found);
        times?.check.onBatch(found);
        checkBatch(file, fd, found, progress, context);
        context.onBatch(found);
      }
      const end = found.position + (found.isDamage ? found.length : found.size);
      context.onBytes(end - seen);
      seen = end;
    }
  });
  const lastOffset = (progress.expected ?? file.baseOffset) - 1;
  // Behind damage the indexes name batches that cannot be seen: their word would only repeat it.
  if (isDamaged) return;
  for (const index of [offsets, times]) {
    if (index === null) continue;
    reportIndex(index.path, index.check.end(lastOffset), report);
    if (index.check.padding > 0 && context.isClean)
      report(
        finding({
          severity: 'note',
          path: index.path,
          length: index.check.padding,
          problem: `ends with ${index.check.padding} bytes of zeros: room that Kafka sets aside, and has not given back`,
        }),
      );
  }
  if (offsets === null && file.size > 0 && !context.isLast)
    report(
      finding({
        severity: 'rebuildable',
        path: indexPath(file, '.index'),
        problem: 'is missing',
        remedy: 'It is made again from the log at the next start, or when it is first needed.',
      }),
    );
}

function openIndex<T extends OffsetIndexCheck | TimeIndexCheck>(
  file: SegmentFile,
  suffix: string,
  open: (bytes: Uint8Array) => T,
): { readonly path: string; readonly check: T } | null {
  const path = indexPath(file, suffix);
  const bytes = readIfThere(path);
  return bytes === null ? null : { path, check: open(bytes) };
}

function indexPath(file: SegmentFile, suffix: string): string {
  return file.path.replace(/\.log$/, suffix);
}

function reportIndex(path: string, problem: IndexProblem | null, report: Report): void {
  if (problem === null) return;
  report(finding({ severity: 'rebuildable', path, ...problem, remedy: remedies.index }));
}

function reportDamage(
  file: SegmentFile,
  found: {
    readonly position: number;
    readonly length: number;
    readonly fromOffset: number;
    readonly toOffset: number | null;
    readonly problem: string;
  },
  context: SegmentContext,
): void {
  const { position, length, fromOffset, toOffset, problem } = found;
  const common = { path: file.path, position, length, fromOffset, toOffset };
  const isTail = toOffset === null && context.isLast && fromOffset >= context.recoveryPoint;
  context.report(
    isTail
      ? finding({
          ...common,
          severity: 'note',
          problem: `the log ends in the middle of a write (${problem})`,
          remedy: 'The next start cuts it off: nothing there was acknowledged with acks=all.',
        })
      : finding({ ...common, severity: 'damage', problem, remedy: remedies.records }),
  );
}

function checkBatch(
  file: SegmentFile,
  fd: number,
  batch: ScannedBatch,
  progress: LogProgress,
  { report }: SegmentContext,
): void {
  const { position, size, baseOffset, lastOffset, buffer, at } = batch;
  const common = { path: file.path, position, length: size };
  const offsets = { fromOffset: baseOffset, toOffset: lastOffset + 1 };
  const count = recordCountOf(buffer, at);
  if (count < lastOffset - baseOffset + 1) progress.isCompacted = true;
  if (progress.expected !== null && baseOffset > progress.expected && !progress.isCompacted)
    report(
      finding({
        ...common,
        severity: 'damage',
        fromOffset: progress.expected,
        toOffset: baseOffset,
        problem: `the offsets before ${baseOffset} are missing, and the log was never compacted`,
        remedy: remedies.records,
      }),
    );
  if (progress.expected !== null && baseOffset < progress.expected)
    report(
      finding({
        ...common,
        ...offsets,
        severity: 'damage',
        problem: `offset ${baseOffset} stands again behind ${progress.expected - 1}`,
        remedy: remedies.records,
      }),
    );
  const epoch = leaderEpochOf(buffer, at);
  if (epoch < progress.epoch)
    report(
      finding({
        ...common,
        ...offsets,
        severity: 'damage',
        problem: `leader epoch ${epoch} follows ${progress.epoch}`,
        remedy: remedies.records,
      }),
    );
  const whole = wholeBatch(batch, fd);
  const problem = recordsProblem(whole.bytes, whole.at, scratch);
  if (problem !== null)
    report(
      finding({
        ...common,
        ...offsets,
        severity: 'damage',
        problem: `${problem} (the checksum ${crcOf(buffer, at).toString(16)} is right: it was written so)`,
        remedy: 'No consumer can read this batch. Have consumers seek past it.',
      }),
    );
  progress.expected = Math.max(progress.expected ?? 0, lastOffset + 1);
  progress.epoch = Math.max(progress.epoch, epoch);
  progress.batches += 1;
  progress.records += Math.max(0, count);
}

/** What a file in a partition's directory is that no broker reads, or null. */
export function leftoverNote(name: string): string | null {
  if (name.endsWith('.deleted')) return 'waits to be removed';
  if (name.endsWith('.cleaned')) return 'is a compaction that was cut short';
  if (name.endsWith('.swap')) return 'is a compaction that the next start brings to its end';
  if (name.endsWith('.cut')) return 'was past the end of what recovery kept';
  if (/\.damaged(?:\.accepted|\.repaired)?$/.test(name))
    return `holds damaged bytes that were moved aside (${basename(name)})`;
  return null;
}
