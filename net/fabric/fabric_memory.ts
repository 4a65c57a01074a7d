/**
 * What the shards share: rings between every two of them, a doorbell for each, ports for the doorbells, for the
 * announcements of slabs and for calls. In a cluster the replication thread takes part, with the number after the last
 * shard's and no partitions of its own.
 *
 * Thread: made on main, which keeps nothing of it. Memory: zero pages until two shards first talk.
 */
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { createDoorbellFlag } from '../../engine/thread/doorbell.ts';
import { createLink, type LinkMemory } from '../../engine/thread/link.ts';
import { createCounter } from '../../engine/thread/shared_counter.ts';

/** Another shard (or the replication thread), as one sees it. */
export interface PeerMemory {
  readonly shard: number;
  /** This shard asks, the peer answers. */
  readonly asking: LinkMemory;
  readonly answering: LinkMemory;
  /** Of the peer's doorbell. */
  readonly flag: SharedArrayBuffer;
  /** To be transferred with it. */
  readonly bellPort: MessagePort;
  readonly slabPort: MessagePort;
  /** For requests outside of the data path. */
  readonly callPort: MessagePort;
}

/** What one shard gets. */
export interface FabricMemory {
  readonly shard: number;
  /** Without the replication thread. */
  readonly shardCount: number;
  readonly flag: SharedArrayBuffer;
  /** Of all shards: bytes of throttled replicas that this broker has sent to followers. */
  readonly throttledBytes: SharedArrayBuffer;
  readonly peers: readonly PeerMemory[];
}

/** For each of `shardCount` shards its part, and then the replication thread's, if there is to be one. */
export function createFabric(shardCount: number, withReplication = false): FabricMemory[] {
  const length = shardCount + (withReplication ? 1 : 0);
  const throttledBytes = createCounter();
  const shards = Array.from({ length }, (_, shard) => ({
    shard,
    shardCount,
    flag: createDoorbellFlag(),
    throttledBytes,
    peers: [] as PeerMemory[],
  }));
  for (const one of shards)
    for (const other of shards) {
      if (other.shard <= one.shard) continue;
      const forth = createLink();
      const back = createLink();
      const bells = new MessageChannel();
      const slabs = new MessageChannel();
      const calls = new MessageChannel();
      one.peers.push({
        shard: other.shard,
        asking: forth,
        answering: back,
        flag: other.flag,
        bellPort: bells.port1,
        slabPort: slabs.port1,
        callPort: calls.port1,
      });
      other.peers.push({
        shard: one.shard,
        asking: back,
        answering: forth,
        flag: one.flag,
        bellPort: bells.port2,
        slabPort: slabs.port2,
        callPort: calls.port2,
      });
    }
  return shards;
}

/** What must be transferred, not cloned, when the part goes to its thread. */
export function fabricTransfers({ peers }: FabricMemory): MessagePort[] {
  return peers.flatMap(({ bellPort, slabPort, callPort }) => [bellPort, slabPort, callPort]);
}
