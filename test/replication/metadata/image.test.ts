import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { MetadataImage } from '../../../replication/metadata/image.ts';
import type { MetadataRecord, PartitionRecord } from '../../../replication/metadata/records.ts';
import { clusterId, partitionChange } from './fixtures.ts';

const test = suite('image');

function apply(image: MetadataImage, ...records: MetadataRecord[]) {
  const firstOffset = image.offset + 1;
  const lastOffset = image.offset + records.length;
  return image.apply({ snapshot: false, firstOffset, lastOffset, epoch: 1, leaderId: 1, records });
}

function topic(name: string, topicId: string): MetadataRecord {
  return { type: 'TopicRecord', name, topicId };
}

function partition(topicId: string, partitionId: number): PartitionRecord {
  return {
    type: 'PartitionRecord',
    partitionId,
    topicId,
    replicas: [1, 2],
    isr: [1, 2],
    removingReplicas: [],
    addingReplicas: [],
    leader: 1,
    leaderRecoveryState: 0,
    leaderEpoch: 3,
    partitionEpoch: 5,
    directories: ['d1', 'd2'],
    eligibleLeaderReplicas: null,
    lastKnownElr: null,
  };
}

test('a delta reports what is new, changed and gone', () => {
  const image = new MetadataImage(clusterId);
  const created = apply(image, topic('a', 'A'), partition('A', 0), partition('A', 1));
  assert.deepEqual(
    created.createdPartitions.map(({ partition: { partitionId } }) => partitionId),
    [0, 1],
  );
  assert.deepEqual(created.changedPartitions, []);

  const changed = apply(
    image,
    partitionChange('A', { leader: 2 }),
    partitionChange('A', { isr: [2] }),
  );
  assert.equal(changed.changedPartitions.length, 1, 'two records, one partition');
  const [only] = changed.changedPartitions;
  assert.equal(only?.previous.leader, 1);
  assert.equal(only?.partition.leader, 2);
  assert.deepEqual(only?.partition.isr, [2]);

  const gone = apply(image, { type: 'RemoveTopicRecord', topicId: 'A' });
  assert.deepEqual(
    gone.deletedPartitions.map(({ topic: { id }, partition: p }) => [id, p.partitionId]),
    [
      ['A', 0],
      ['A', 1],
    ],
  );
  assert.equal(image.partitionCount, 0);
});

test('naming a leader raises the leader epoch, any change the partition epoch (KIP-497)', () => {
  const image = new MetadataImage(clusterId);
  apply(image, topic('a', 'A'), partition('A', 0));
  const before = image.partition('a', 0)!;
  apply(image, partitionChange('A', { isr: [1] }));
  assert.equal(image.partition('a', 0)?.leaderEpoch, 3);
  assert.equal(image.partition('a', 0)?.partitionEpoch, 6);
  apply(image, partitionChange('A', { leader: 1 }));
  assert.equal(image.partition('a', 0)?.leaderEpoch, 4);
  assert.equal(image.partition('a', 0)?.partitionEpoch, 7);
  assert.deepEqual(before.isr, [1, 2], 'an image that was handed out does not change');
});

test('what came and went within a delta is not reported', () => {
  const image = new MetadataImage(clusterId);
  const changes = apply(
    image,
    topic('a', 'A'),
    partition('A', 0),
    { type: 'ConfigRecord', resourceType: 2, resourceName: 'a', name: 'k', value: 'v' },
    { type: 'RemoveTopicRecord', topicId: 'A' },
  );
  assert.deepEqual(changes.createdPartitions, []);
  assert.deepEqual(changes.deletedPartitions, []);
  assert.deepEqual(changes.createdTopics, []);
  assert.deepEqual(changes.deletedTopics, []);
  assert.deepEqual(changes.changedTopicConfigs, []);
});

test('a name deleted and created again in one delta is two topics', () => {
  const image = new MetadataImage(clusterId);
  apply(image, topic('a', 'A'), partition('A', 0));
  const changes = apply(
    image,
    { type: 'RemoveTopicRecord', topicId: 'A' },
    topic('a', 'B'),
    partition('B', 0),
  );
  assert.deepEqual(
    changes.deletedPartitions.map(({ topic: { id } }) => id),
    ['A'],
  );
  assert.deepEqual(
    changes.createdPartitions.map(({ topic: { id } }) => id),
    ['B'],
  );
});

test('configs: changed names are those of topics that stood before', () => {
  const image = new MetadataImage(clusterId);
  const set = (name: string, value: string | null): MetadataRecord => ({
    type: 'ConfigRecord',
    resourceType: 2,
    resourceName: 'a',
    name,
    value,
  });
  const created = apply(image, topic('a', 'A'), partition('A', 0), set('k', '1'));
  assert.deepEqual(created.changedTopicConfigs, []);
  assert.deepEqual(apply(image, set('k', '2'), set('l', '3')).changedTopicConfigs, ['a']);
  assert.deepEqual(
    [...image.topicConfigs('a')],
    [
      ['k', '2'],
      ['l', '3'],
    ],
  );
  apply(image, set('k', null), set('l', null));
  assert.equal(image.topicConfigs('a').size, 0);
});

test('the epoch of the features is the offset of their last change, through a snapshot too', () => {
  const image = new MetadataImage(clusterId);
  apply(
    image,
    { type: 'FeatureLevelRecord', name: 'metadata.version', featureLevel: 33 },
    { type: 'NoOpRecord' },
  );
  apply(image, { type: 'NoOpRecord' });
  assert.equal(image.featuresEpoch, 0);
  const copy = new MetadataImage(clusterId);
  assert.equal(copy.apply(image.snapshot()).featuresChanged, true);
  assert.equal(copy.featuresEpoch, 0);
  assert.equal(copy.offset, 2);
});

test('deltas out of order are refused', () => {
  const image = new MetadataImage(clusterId);
  apply(image, { type: 'NoOpRecord' });
  const repeated = { firstOffset: 0, lastOffset: 0, epoch: 1, leaderId: 1, records: [] };
  assert.throws(() => image.apply({ snapshot: false, ...repeated }), /does not follow/);
  assert.throws(() => image.apply(image.snapshot()), /does not follow/);
});

test.run();
