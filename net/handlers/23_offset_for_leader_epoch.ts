/**
 * OffsetForLeaderEpoch: where the log of a leader epoch ends, so that a client can see whether its records
 * were cut off (KIP-101, KIP-279, KIP-320).
 *
 *   v2  current leader epoch    v3  replica id    v4  flexible
 *
 * Thread: the connection's shard; partitions of other shards are asked through the fabric.
 */
import { type EpochEndAnswer, endOfEpoch, refusedEpoch } from '../partition_offsets.ts';
import type {
  OffsetForLeaderEpochRequestOffsetForLeaderPartition,
  OffsetForLeaderEpochResponseEpochEndOffsetInput,
} from '../protocol/messages.gen.ts';
import { isHere } from '../routes.ts';
import { type Handler, rpc } from '../server/registry.ts';
import type { ShardServices } from '../shard_services.ts';
import { mapAll } from './map_all.ts';

type Answer = OffsetForLeaderEpochResponseEpochEndOffsetInput;

export function offsetForLeaderEpochHandler(services: ShardServices): Handler {
  return rpc('OffsetForLeaderEpoch', 2, 4, (request) => {
    const answered = mapAll(request.topics, ({ topic, partitions }) => {
      const all = mapAll(partitions, (asked) => answer(services, topic, asked));
      return all instanceof Promise
        ? all.then((later) => ({ topic, partitions: later }))
        : { topic, partitions: all };
    });
    return answered instanceof Promise
      ? answered.then((all) => ({ topics: all }))
      : { topics: answered };
  });
}

function answer(
  services: ShardServices,
  topic: string,
  asked: OffsetForLeaderEpochRequestOffsetForLeaderPartition,
): Answer | Promise<Answer> {
  const { partition, currentLeaderEpoch, leaderEpoch } = asked;
  const place = services.routes.byName(topic, partition);
  const say = (ended: EpochEndAnswer): Answer => ({ partition, ...ended });
  if (typeof place === 'number') return say(refusedEpoch(place));
  if (isHere(place)) return say(endOfEpoch(place, currentLeaderEpoch, leaderEpoch));
  return services.remote.endOfEpoch(place, currentLeaderEpoch, leaderEpoch).then(say);
}
