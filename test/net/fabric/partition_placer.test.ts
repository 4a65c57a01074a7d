import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { PartitionPlacer } from '../../../net/fabric/partition_placer.ts';
import { Placements } from '../../../net/fabric/placements.ts';
import type { MetadataDelta, MetadataRecord } from '../../../replication/metadata/records.ts';

const test = suite('placement of partitions');

function delta(...records: MetadataRecord[]): MetadataDelta {
  return { snapshot: false, records, firstOffset: 0, lastOffset: 1, epoch: 1, leaderId: 1 };
}

function partition(topicId: string, partitionId: number): MetadataRecord {
  return {
    type: 'PartitionRecord',
    partitionId,
    topicId,
    replicas: [1],
    isr: [1],
    removingReplicas: [],
    addingReplicas: [],
    leader: 1,
    leaderRecoveryState: 0,
    leaderEpoch: 0,
    partitionEpoch: 0,
    directories: [],
    eligibleLeaderReplicas: null,
    lastKnownElr: null,
  };
}

const topic = (topicId: string, count: number): MetadataRecord[] =>
  Array.from({ length: count }, (_, k) => partition(topicId, k));

test('partitions go to the shard with the fewest, and deleted ones count no more', () => {
  const placer = new PartitionPlacer(3);
  const [first] = placer.follow(delta(...topic('a', 4)));
  assert.deepEqual(first?.shards, [0, 1, 2, 0]);
  const [second] = placer.follow(delta(...topic('b', 2)));
  assert.deepEqual(second?.shards, [1, 2]);
  assert.deepEqual(placer.follow(delta({ type: 'RemoveTopicRecord', topicId: 'b' })), []);
  const [third] = placer.follow(delta(...topic('c', 3)));
  assert.deepEqual(third?.shards, [1, 2, 0]);
  const numbers = placer.all.flatMap((one) => one.numbers);
  assert.equal(new Set(numbers).size, 7, 'every partition has a number of its own');
});

test('a partition is placed once, whatever is said of it later', () => {
  const placer = new PartitionPlacer(2);
  placer.follow(delta(...topic('a', 3)));
  assert.deepEqual(placer.follow(delta(partition('a', 1))), []);
  const [more] = placer.follow(delta(partition('a', 1), partition('a', 3)));
  assert.deepEqual(more?.partitions, [3]);
});

test('what a delta both creates and deletes is not told', () => {
  const placer = new PartitionPlacer(2);
  const gone: MetadataRecord = { type: 'RemoveTopicRecord', topicId: 'a' };
  assert.deepEqual(placer.follow(delta(...topic('a', 2), gone)), []);
  assert.deepEqual(placer.all, []);
});

test('one shard owns everything and is told of nothing', () => {
  assert.deepEqual(new PartitionPlacer(1).follow(delta(...topic('a', 2))), []);
  assert.equal(new Placements(0, 1).isOurs('a', 1), true);
});

test('a shard knows its own and the others, until the topic is deleted', () => {
  const placer = new PartitionPlacer(2);
  placer.follow(delta(...topic('a', 2)));
  const placements = new Placements(1, 2);
  placements.add(placer.all);
  placements.add(placer.follow(delta(partition('a', 2))));
  assert.deepEqual(
    [0, 1, 2, 3].map((k) => placements.isOurs('a', k)),
    [false, true, false, false],
  );
  const other = placements.find('a', 2);
  assert.equal(other?.shard, 0);
  assert.equal(placements.byNumber(other?.number ?? -1), other);
  placements.remove('a');
  assert.equal(placements.find('a', 2), undefined);
  assert.equal(placements.byNumber(other?.number ?? -1), undefined);
});

test.run();
