/** `millrace log verify`: reads log directories without a broker and says what is wrong with them. */
import { dirname } from 'node:path';
import { CliExit } from '../cli/exit_code.ts';
import { paragraph } from '../cli/flow.ts';
import { createProgress } from '../cli/progress.ts';
import { byteText, countText } from '../cli/quantity.ts';
import { printTable } from '../cli/table.ts';
import { colour, printJson, writeOut } from '../cli/terminal.ts';
import { checkDirectory, checkpointsOf, type DirectoryMarks } from './directory_check.ts';
import type { Finding } from './finding.ts';
import { type FoundLogs, findLogs, LogPathError, type PartitionFiles } from './log_files.ts';
import { checkPartition, type PartitionSummary } from './partition_check.ts';

export interface VerifyOptions {
  readonly topic?: readonly string[];
  readonly json?: boolean;
}

interface Verified {
  readonly findings: readonly Finding[];
  readonly partitions: readonly PartitionSummary[];
  readonly isClean: boolean;
}

export function runVerify(paths: readonly string[], options: VerifyOptions): void {
  const startedMs = performance.now();
  let verified: Verified;
  try {
    verified = verify(paths.map(findLogs), options.topic ?? []);
  } catch (error) {
    if (!(error instanceof LogPathError)) throw error;
    process.stderr.write(`millrace: ${error.message}\n`);
    process.exitCode = CliExit.usage;
    return;
  }
  const isSound = verified.findings.every(({ severity }) => severity === 'note');
  process.exitCode = isSound ? CliExit.ok : CliExit.damaged;
  if (options.json === true) printJson(asJson(verified, isSound));
  else printFindings(verified, (performance.now() - startedMs) / 1000);
}

/** Checks all of it; with `topics`, only those. */
export function verify(found: readonly FoundLogs[], topics: readonly string[]): Verified {
  const findings: Finding[] = [];
  const report = (one: Finding): void => {
    findings.push(one);
  };
  const marks = new Map<string, DirectoryMarks>();
  const marksOf = (dir: string, isChecked: boolean): DirectoryMarks => {
    const known = marks.get(dir) ?? checkDirectory(dir, isChecked ? report : () => {});
    marks.set(dir, known);
    return known;
  };
  for (const dir of found.flatMap(({ directories }) => directories)) marksOf(dir, true);
  const partitions = found
    .flatMap((one) => one.partitions)
    .filter(({ topic }) => topics.length === 0 || topics.includes(topic));
  const total = partitions.reduce((sum, one) => sum + bytesOf(one), 0);
  const progress = createProgress('verifying', total, byteText);
  const summaries = partitions.map((one) => {
    progress.note(`${one.topic}-${one.partition}`);
    const checkpoints = checkpointsOf(marksOf(dirname(one.path), false), one);
    return checkPartition(one, checkpoints, report, (count) => progress.add(count));
  });
  progress.end();
  const isClean = [...marks.values()].every((one) => one.isClean);
  return { findings, partitions: summaries, isClean };
}

function bytesOf({ segments }: PartitionFiles): number {
  return segments.reduce((sum, { size }) => sum + size, 0);
}

function asJson({ findings, partitions, isClean }: Verified, isSound: boolean): unknown {
  return {
    ok: isSound,
    cleanShutdown: isClean,
    findings,
    partitions: partitions.map(({ partition, ...rest }) => ({
      topic: partition.topic,
      partition: partition.partition,
      path: partition.path,
      ...rest,
    })),
  };
}

const unclean =
  'The directory is in use, or was not left cleanly: what is past the recovery point is not judged.';

const severityColours = { damage: 'red', rebuildable: 'yellow', note: 'dim' } as const;

/** In front of what is said about a finding. */
const inset = '    ';

function printFindings({ findings, partitions, isClean }: Verified, seconds: number): void {
  for (const one of findings) {
    const tag = colour(severityColours[one.severity], one.severity);
    const place = one.position === null ? '' : `, byte ${one.position}`;
    writeOut(`${tag}  ${one.path}${place}${rangeText(one)}\n${paragraph(one.problem, inset)}\n`);
    if (one.remedy !== null) writeOut(`${colour('dim', paragraph(one.remedy, inset))}\n`);
  }
  if (findings.length > 0) writeOut('\n');
  const topics = new Map<string, PartitionSummary[]>();
  for (const one of partitions) {
    const list = topics.get(one.partition.topic) ?? [];
    list.push(one);
    topics.set(one.partition.topic, list);
  }
  const sum = (list: readonly PartitionSummary[], field: 'bytes' | 'batches' | 'records'): number =>
    list.reduce((total, one) => total + one[field], 0);
  printTable(
    ['topic', 'partitions', 'segments', 'batches', 'records', 'size'],
    [...topics].map(([topic, list]) => [
      topic,
      list.length,
      list.reduce((total, { segments }) => total + segments, 0),
      sum(list, 'batches'),
      sum(list, 'records'),
      byteText(sum(list, 'bytes')),
    ]),
  );
  const count = (severity: Finding['severity']): number =>
    findings.filter((one) => one.severity === severity).length;
  const bad = count('damage');
  const verdict =
    bad > 0 ? colour('red', countText(bad, 'damage', 'damages')) : colour('green', 'no damage');
  const rest = `${count('rebuildable')} rebuildable, ${countText(count('note'), 'note')}`;
  writeOut(
    `\n${verdict}, ${rest}; ${byteText(sum(partitions, 'bytes'))} in ${seconds.toFixed(1)} s\n`,
  );
  if (!isClean) writeOut(`${paragraph(unclean)}\n`);
}

function rangeText({ fromOffset, toOffset, length }: Finding): string {
  const bytes = length === null ? '' : `, ${countText(length, 'byte')}`;
  if (fromOffset === null) return bytes;
  if (toOffset === null) return `${bytes}, offsets from ${fromOffset}`;
  if (toOffset === fromOffset + 1) return `${bytes}, offset ${fromOffset}`;
  return `${bytes}, offsets ${fromOffset} to ${toOffset - 1}`;
}
