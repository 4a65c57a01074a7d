/** The machine under the figures: what it is, who runs where, and memory that is ready to be used. */
import { closeSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { cpus, loadavg, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { run } from './children.ts';

const MIB = 1_024 * 1_024;
const FILE_SYSTEMS: Record<number, string> = {
  61267: 'ext4',
  16914836: 'tmpfs',
  1481003842: 'xfs',
  2435016766: 'btrfs',
  2035054128: 'overlayfs',
};

export interface Machine {
  cpuModel: string;
  cpus: number;
  memoryGiB: number;
  kernel: string;
  node: string;
  fileSystem: string;
  /** Load of the last minute before the run: above 0.5 somebody else uses the machine. */
  loadBefore: number;
}

/** Describes this machine; `directory` is where the brokers will keep their data. */
export function describeMachine(directory: string): Machine {
  const type = statfsSync(directory).type;
  return {
    cpuModel: cpus()[0]?.model ?? 'unknown',
    cpus: cpus().length,
    memoryGiB: Math.round(totalmem() / 1_024 ** 3),
    kernel: release(),
    node: process.version,
    fileSystem: FILE_SYSTEMS[type] ?? `type ${type}`,
    loadBefore: Number((loadavg()[0] ?? 0).toFixed(2)),
  };
}

/** Binds this process, all its threads and the children it starts from now on to one CPU. */
export async function pinSelf(cpu: number): Promise<void> {
  await run(['taskset', '-a', '-c', '-p', String(cpu), String(process.pid)], { timeoutMs: 10_000 });
}

/** Writes all dirty pages of the machine to its disks. */
export async function sync(): Promise<void> {
  await run(['sync'], { timeoutMs: 120_000 });
}

/**
 * Writes a scratch file and removes it, so that the next `mib` MiB of page cache come from pages that the
 * host of a virtual machine has just backed. Hosts take free memory back within seconds, and the first
 * touch of a page then costs 2–4 ms/MiB of system time, several times the broker's own work (seen on
 * Firecracker with free page reporting; a file written twice as large as what the host lets lie is half
 * lost again, which is why rounds are small).
 */
export function warmPageCache(directory: string, mib: number): void {
  const file = join(directory, 'scratch');
  const block = Buffer.alloc(MIB, 0x5a);
  const fd = openSync(file, 'w');
  try {
    for (let written = 0; written < mib; written += 1) writeSync(fd, block);
  } finally {
    closeSync(fd);
    rmSync(file, { force: true });
  }
}
