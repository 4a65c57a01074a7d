/** Parts of a shard that are made from its options, each with what it needs of the others. */
import { randomUUID } from 'node:crypto';
import type { MessagePort } from 'node:worker_threads';
import { GroupCoordinator } from '../engine/groups/group_coordinator.ts';
import { ThreadCalls } from '../engine/thread/calls.ts';
import type { MetadataImage } from '../replication/metadata/image.ts';
import type { FabricMemory } from './fabric/fabric_memory.ts';
import { GroupCoordinators } from './groups/group_coordinators.ts';
import type { PartitionTable } from './partition_table.ts';
import { Purgatory } from './server/purgatory.ts';
import type { ShardOptions } from './shard.ts';
import type { ShardCalls } from './shard_calls.ts';

/** Among the shards: what is asked of all of them is not asked of the replication thread. */
export function makeCalls({ shard, shardCount, peers }: FabricMemory): ShardCalls {
  const ports: (MessagePort | undefined)[] = [];
  for (const peer of peers) if (peer.shard < shardCount) ports[peer.shard] = peer.callPort;
  return new ThreadCalls(shard, ports);
}

/** The coordinators of the groups, who also answer other shards. */
export function makeGroups(
  { data, ports, logger }: ShardOptions,
  image: MetadataImage,
  partitions: PartitionTable,
  calls: ShardCalls,
): GroupCoordinators {
  const groups = new GroupCoordinators({
    config: data.config.groups,
    image,
    partitions,
    clock: ports.clock,
    timers: new Purgatory(),
    logger,
    newUuid: randomUUID,
    makeMachine: (environment) => new GroupCoordinator(environment),
    defer: setImmediate,
  });
  groups.serve(calls);
  calls.serve('groups.behind', (asked) => groups.behind(asked));
  return groups;
}
