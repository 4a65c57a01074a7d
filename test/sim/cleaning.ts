/**
 * Runs cleanings of a simulated log as the cleaner's thread and the shard do it together, with an end at any operation
 * of the disk if the test wants one.
 */
import type { CleanableRange, InstalledSegment } from '../../engine/log/cleaner/cleanable_log.ts';
import type { CleaningJob, CleaningResult } from '../../engine/log/cleaner/cleaning_job.ts';
import { LogCleaning } from '../../engine/log/cleaner/log_cleaning.ts';
import type { PartitionLog } from '../../engine/log/partition_log.ts';
import type { Disk } from '../../engine/ports.ts';

/** The process is gone in the middle of a cleaning. */
export class Interrupted extends Error {}

const changing = new Set<PropertyKey>([
  ...['open', 'write', 'writev', 'truncate', 'flushSync', 'flushDirectorySync'],
  ...['rename', 'unlink', 'writeFile'],
]);

/** What a test does to the cleaner's disk. */
export interface DiskFaults {
  /** Changes that are carried out before the process ends; Infinity: it does not end. */
  readonly endAfter?: number;
  /** Mutation: calls that do nothing. */
  readonly skipped?: ReadonlySet<string>;
}

/** The disk as the cleaner's thread sees it. `It may not be used after the process has ended. */
export class FaultyDisk {
  count = 0;
  /** The change before which the process ended, or null. */
  endedAt: string | null = null;
  readonly disk: Disk;

  constructor(disk: Disk, { endAfter = Number.POSITIVE_INFINITY, skipped }: DiskFaults = {}) {
    this.disk = new Proxy(disk, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== 'function') return member;
        return (...args: unknown[]): unknown => {
          if (changing.has(name)) {
            if (this.count >= endAfter) {
              this.endedAt ??= String(name);
              throw new Interrupted(`at ${String(name)}`);
            }
            this.count += 1;
          }
          if (skipped?.has(String(name)) === true) return undefined;
          return member.apply(target, args);
        };
      },
    });
  }
}

export interface CleaningOptions {
  readonly stableOffset?: number;
  readonly nowMs: number;
  readonly disk: Disk;
  readonly mapBytes?: number;
  /** Changes what the shard asks for: mutations. */
  readonly change?: (job: CleaningJob) => CleaningJob;
  readonly range?: (log: PartitionLog, range: CleanableRange) => CleanableRange;
  /** Called between two steps of the work. */
  readonly onStep?: () => void;
}

/**
 * Cleans whatever can be cleaned, whether it is worth it or not; null when there is nothing. The log's own cleaned offset
 * moves on. @throws Interrupted and what the cleaning throws
 */
export function cleanLog(log: PartitionLog, options: CleaningOptions): CleaningResult | null {
  const { disk, nowMs, stableOffset = log.flushedOffset, mapBytes = 1 << 20 } = options;
  const found = log.cleaning.range(stableOffset, nowMs);
  const range = options.range?.(log, found) ?? found;
  if (range.dirtyBytes === 0) return null;
  const making = log.cleaning.job(range, nowMs);
  let part = making.next();
  while (part.done !== true) part = making.next();
  if (part.value === null) return null;
  const made = part.value;
  const job = options.change?.(made) ?? made;
  const budget = { mapBytes, mapLoadFactor: 0.9, ioBytes: 8192 };
  const steps = new LogCleaning(disk, job, budget, 7).run();
  let installed: InstalledSegment | null = null;
  let step = steps.next(true);
  while (step.done !== true) {
    options.onStep?.();
    let reply = true;
    if (step.value.type === 'install') {
      installed = log.cleaning.install(step.value.segment);
      reply = installed !== null;
    } else if (step.value.type === 'installed' && installed !== null) {
      log.cleaning.finish(installed);
      installed = null;
      options.onStep?.();
    }
    step = steps.next(reply);
  }
  log.cleaning.cleanedOffset = step.value.cleanedOffset;
  return step.value;
}
