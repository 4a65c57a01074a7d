/** The group coordinators of a `ShardWorld`. */
import { GroupCoordinator } from '../../../engine/groups/group_coordinator.ts';
import { GroupCoordinators } from '../../../net/groups/group_coordinators.ts';
import { Purgatory } from '../../../net/server/purgatory.ts';
import type { ShardCalls } from '../../../net/shard_calls.ts';
import { SeededRandom } from '../../sim/seeded_random.ts';
import type { ShardWorld } from '../data_path/shard_world.ts';

export function groupsOf(
  { config, image, partitions, clock, logger }: ShardWorld,
  calls: ShardCalls,
  defer: (run: () => void) => void,
): GroupCoordinators {
  const random = new SeededRandom(6);
  const groups = new GroupCoordinators({
    config: config.groups,
    image,
    partitions: partitions.table,
    clock,
    timers: new Purgatory(clock),
    logger,
    newUuid: () => Buffer.from(random.bytes(16)).toString('hex'),
    makeMachine: (environment) => new GroupCoordinator(environment),
    defer,
  });
  groups.serve(calls);
  return groups;
}
