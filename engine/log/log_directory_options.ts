/** What opening a log directory takes, and what can be wrong with it. */
import type { BootId, Disk, Random } from '../ports.ts';
import { temporarySuffix } from './log_state_store.ts';
import { parentOf } from './partition_directory.ts';

/** The directory cannot be used; the message says why and what to do. */
export class LogDirectoryError extends Error {}

export interface LogDirectoryOptions {
  readonly disk: Disk;
  readonly random: Random;
  readonly bootId: BootId;
  readonly path: string;
  readonly nodeId: number;
  /** Null: the one in `meta.properties`, or else as `joinsLater` says. '' while the cluster is not known yet. */
  readonly clusterId: string | null;
  /** True: a new directory belongs to no cluster until `adoptCluster`. Else it founds one. */
  readonly joinsLater?: boolean;
}

/** Writes a small file so that after a crash there is the old one or the new one. @throws DiskError */
export function writeFlushed(disk: Disk, path: string, bytes: Uint8Array): void {
  disk.writeFile(path + temporarySuffix, bytes);
  const fd = disk.open(path + temporarySuffix, false);
  try {
    disk.flushSync(fd);
  } finally {
    disk.close(fd);
  }
  disk.rename(path + temporarySuffix, path);
  disk.flushDirectorySync(parentOf(path));
}
