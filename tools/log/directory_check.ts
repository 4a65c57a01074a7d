/** Reads a log directory's own files: checkpoints, `meta.properties`, and whether it was left cleanly. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { parseCheckpoint } from '../../engine/log/checkpoint_text.ts';
import { finding, type Report, remedies } from './finding.ts';
import { type PartitionFiles, readIfThere } from './log_files.ts';
import type { PartitionCheckpoints } from './partition_check.ts';

/** The checkpoint files, by what they hold. */
const files = {
  recoveryPoint: 'recovery-point-offset-checkpoint',
  logStartOffset: 'log-start-offset-checkpoint',
  highWatermark: 'replication-offset-checkpoint',
  cleaned: 'cleaner-offset-checkpoint',
} as const;

type Offsets = ReadonlyMap<string, number>;

export interface DirectoryMarks {
  /** It has the marker that a broker leaves when it stops, and removes when it starts. */
  readonly isClean: boolean;
  readonly recoveryPoint: Offsets;
  readonly logStartOffset: Offsets;
  readonly highWatermark: Offsets;
  readonly cleaned: Offsets;
}

export function checkDirectory(dir: string, report: Report): DirectoryMarks {
  const read = (name: string): Offsets => readOffsets(join(dir, name), report);
  checkMeta(dir, report);
  return {
    isClean: existsSync(join(dir, '.kafka_cleanshutdown')),
    recoveryPoint: read(files.recoveryPoint),
    logStartOffset: read(files.logStartOffset),
    highWatermark: read(files.highWatermark),
    cleaned: read(files.cleaned),
  };
}

/** What the marks say of one partition. */
export function checkpointsOf(
  marks: DirectoryMarks,
  { topic, partition }: PartitionFiles,
): PartitionCheckpoints {
  const key = `${topic} ${partition}`;
  return {
    recoveryPoint: marks.recoveryPoint.get(key) ?? null,
    logStartOffset: marks.logStartOffset.get(key) ?? null,
    highWatermark: marks.highWatermark.get(key) ?? null,
    isCompacted: marks.cleaned.has(key) || topic === '__consumer_offsets',
    isClean: marks.isClean,
  };
}

function readOffsets(path: string, report: Report): Offsets {
  const offsets = new Map<string, number>();
  const bytes = readIfThere(path);
  // Kafka creates them empty.
  if (bytes === null || bytes.length === 0) return offsets;
  const lines = parseCheckpoint(bytes);
  for (const line of lines ?? []) {
    const match = /^(\S+ \d+) (\d+)$/.exec(line);
    if (match !== null) offsets.set(match[1] as string, Number(match[2]));
  }
  if (lines === null || offsets.size !== lines.length)
    report(
      finding({
        severity: 'rebuildable',
        path,
        problem: 'cannot be read: it is cut short, or no checkpoint',
        remedy: remedies.checkpoint,
      }),
    );
  return offsets;
}

function checkMeta(dir: string, report: Report): void {
  const path = join(dir, 'meta.properties');
  const bytes = readIfThere(path);
  const text = bytes === null ? '' : new TextDecoder().decode(bytes);
  if (/^version=1\s*$/m.test(text) && /^(?:node|broker)\.id=\d+\s*$/m.test(text)) return;
  report(
    finding({
      severity: 'damage',
      path,
      problem:
        bytes === null
          ? 'is missing: nothing says whose directory this is'
          : 'does not say version=1 and node.id: nothing says whose directory this is',
      remedy:
        'Write it again with version=1, node.id, cluster.id and directory.id; the first two and the third are those of the other directories and brokers of this cluster.',
    }),
  );
}
