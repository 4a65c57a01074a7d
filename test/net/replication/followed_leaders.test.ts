import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { FollowedLeaders } from '../../../net/replication/followed_leaders.ts';
import { MetadataImage } from '../../../replication/metadata/image.ts';
import type {
  MetadataDelta,
  MetadataRecord,
  PartitionRecord,
} from '../../../replication/metadata/records.ts';

const test = suite('followed leaders');

const topicId = 'BAAAAAAAAAAAAAAAAAAAAA';

interface World {
  apply(...records: MetadataRecord[]): string[];
}

/** This broker is number 1. What is said to the fetches of other brokers, in order. */
function world(): World {
  const image = new MetadataImage('cluster');
  let said: string[] = [];
  const leaders = new FollowedLeaders({
    nodeId: 1,
    fetchOf: (leaderId) => ({
      follow: (_, partition, epoch) => said.push(`${leaderId} + ${partition} @${epoch}`),
      unfollow: (_, partition) => said.push(`${leaderId} - ${partition}`),
    }),
  });
  let offset = -1;
  return {
    apply: (...records) => {
      said = [];
      const firstOffset = offset + 1;
      offset += records.length;
      const lastOffset = offset;
      const delta: MetadataDelta = {
        snapshot: false,
        firstOffset,
        lastOffset,
        epoch: 1,
        leaderId: 1,
        records,
      };
      leaders.apply(image.apply(delta));
      return said;
    },
  };
}

function partition(
  partitionId: number,
  leader: number,
  leaderEpoch: number,
  replicas = [1, 2, 3],
): PartitionRecord {
  return {
    type: 'PartitionRecord',
    topicId,
    partitionId,
    replicas,
    isr: replicas,
    removingReplicas: [],
    addingReplicas: [],
    leader,
    leaderRecoveryState: 0,
    leaderEpoch,
    partitionEpoch: leaderEpoch,
    directories: replicas.map(() => 'AAAAAAAAAAAAAAAAAAAAAQ'),
    eligibleLeaderReplicas: [],
    lastKnownElr: [],
  };
}

const topic: MetadataRecord = { type: 'TopicRecord', name: 'a', topicId };

test('what others lead and this broker has a copy of is followed', () => {
  const { apply } = world();
  const said = apply(
    topic,
    partition(0, 1, 0),
    partition(1, 2, 0),
    partition(2, 3, 4),
    partition(3, 2, 0, [2, 3]),
    partition(4, -1, 0),
  );
  assert.deepEqual(said, ['2 + 1 @0', '3 + 2 @4']);
});

test('a change of the leader or of its epoch is followed at once', () => {
  const { apply } = world();
  apply(topic, partition(0, 2, 0));
  assert.deepEqual(apply(partition(0, 2, 1)), ['2 + 0 @1']);
  assert.deepEqual(apply(partition(0, 3, 2)), ['2 - 0', '3 + 0 @2']);
  assert.deepEqual(apply(partition(0, 1, 3)), ['3 - 0'], 'this broker leads');
  assert.deepEqual(apply(partition(0, -1, 4)), []);
  assert.deepEqual(apply(partition(0, 2, 5)), ['2 + 0 @5']);
  assert.deepEqual(apply(partition(0, -1, 6)), ['2 - 0'], 'nobody leads');
});

test('what this broker has no copy of any more is not followed any more', () => {
  const { apply } = world();
  apply(topic, partition(0, 2, 0), partition(1, 2, 0));
  assert.deepEqual(apply(partition(0, 2, 0, [2, 3])), ['2 - 0']);
  assert.deepEqual(apply({ type: 'RemoveTopicRecord', topicId }), ['2 - 1']);
});

test.run();
