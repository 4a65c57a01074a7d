/** The metadata log and its snapshots on a simulated node's disk. */
import type { Clock, Disk } from '../../../engine/ports.ts';
import type { LogDirectories } from '../../../net/log_directories.ts';
import { metadataCodec } from '../../../net/metadata_codec.ts';
import {
  metadataLogPath,
  PartitionLogStore,
} from '../../../replication/raft/partition_log_store.ts';
import { newestSnapshot, type SnapshotSettings } from '../../../replication/raft/raft_snapshots.ts';
import { SnapshotFiles } from '../../../replication/raft/snapshot_files.ts';
import type { SeededRandom } from '../seeded_random.ts';

export interface NodeStoreOptions {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: SeededRandom;
  readonly logDir: string;
  readonly metadata: LogDirectories['metadata'];
  readonly snapshotEveryBytes: number;
  readonly defer: (run: () => void) => void;
  /** A piece of a snapshot has been written. */
  readonly onSlice: () => void;
  readonly onWarning: (text: string) => void;
}

export async function openNodeStore({
  disk,
  clock,
  random,
  logDir,
  metadata,
  snapshotEveryBytes: everyBytes,
  defer,
  onSlice,
  onWarning,
}: NodeStoreOptions): Promise<{ store: PartitionLogStore; snapshots: SnapshotSettings }> {
  const files = new SnapshotFiles(disk, metadataLogPath(logDir));
  const loaded = newestSnapshot(files, metadataCodec, onWarning);
  const store = await PartitionLogStore.open({
    disk,
    clock,
    random,
    logDir,
    recoveryPoint: metadata.marksOf('__cluster_metadata', 0).recoveryPoint,
    cleanShutdown: metadata.cleanShutdown,
    afterPowerLoss: metadata.afterPowerLoss,
    dropCache: metadata.flushFailed,
    snapshotEndOffset: loaded?.id.endOffset ?? 0,
    defer,
  });
  const sizes = { everyBytes, intervalMs: 0, fetchBytesMax: 1 + random.below(2_000) };
  const later = (run: () => void): void => {
    onSlice();
    defer(run);
  };
  return { store, snapshots: { files, loaded, ...sizes, defer: later } };
}
