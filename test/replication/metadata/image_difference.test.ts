/** An image that is behind, brought in line with a snapshot. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { MetadataImage } from '../../../replication/metadata/image.ts';
import { deltaTo } from '../../../replication/metadata/image_difference.ts';
import {
  ConfigResourceType,
  type MetadataBatch,
  type MetadataRecord,
} from '../../../replication/metadata/records.ts';
import { splitMix } from '../../harness/split_mix.ts';
import { clusterId, newTopic, uuids } from './fixtures.ts';
import { TestCluster } from './test_cluster.ts';

const test = suite('difference of images');

/** The state of a cluster after each of its batches. */
function statesOf(seed: number): MetadataImage[] {
  const random = splitMix(seed);
  const cluster = new TestCluster([1, 2, 3]);
  const { controller } = cluster.node;
  const states = [controller.image.copy()];
  const name = (): string => `t${random(4)}`;
  const incarnation = uuids(seed);
  for (let step = 0; step < 60; step += 1) {
    const draw = random(10);
    if (draw < 4)
      cluster.node.result<'createTopics'>({
        type: 'createTopics',
        topics: [
          newTopic(name(), {
            numPartitions: 1 + random(3),
            replicationFactor: 1 + random(3),
            configs: random(2) === 0 ? [] : [{ name: 'k', value: `${random(3)}` }],
          }),
        ],
        validateOnly: false,
      });
    else if (draw < 6)
      cluster.node.result<'deleteTopics'>({
        type: 'deleteTopics',
        topics: [{ name: name(), topicId: null }],
      });
    else if (draw < 8) cluster.lose(1 + random(3));
    else if (draw < 9) {
      const id = 1 + random(3);
      if (controller.image.broker(id)?.fenced !== false)
        cluster.start(id, { incarnationId: incarnation(), logDirs: [incarnation()] });
    } else
      cluster.node.ask<'allocateProducerIds'>({
        type: 'allocateProducerIds',
        brokerId: 1,
        brokerEpoch: controller.image.broker(1)?.epoch ?? -1,
      });
    states.push(controller.image.copy());
  }
  return states;
}

/** But for when a feature was last changed, which snapshots do not tell. */
function textOf(image: MetadataImage): string {
  const { records, ...rest } = image.snapshot();
  const texts = records
    .map((record) => JSON.stringify(record))
    .sort((one, other) => one.localeCompare(other));
  return JSON.stringify([texts, { ...rest, featuresEpoch: -1 }]);
}

test('applied, it makes one state of a cluster into any later one', () => {
  for (let seed = 1; seed <= 20; seed += 1) {
    const states = statesOf(seed);
    const random = splitMix(seed);
    for (let times = 0; times < 30; times += 1) {
      const to = states[random(states.length)]!;
      const from = states[random(states.length)]!.copy();
      if (from.offset >= to.offset) continue;
      const delta = deltaTo(from, structuredClone(to.snapshot()));
      assert.equal(delta.snapshot, false);
      const { createdTopics } = from.apply(delta);
      assert.equal(textOf(from), textOf(to), `seed ${seed}`);
      assert(createdTopics.every(({ id }) => to.topicById(id) !== undefined));
    }
  }
});

test('an image without anything takes the snapshot as it is', () => {
  const to = statesOf(3).at(-1)!;
  const snapshot = to.snapshot();
  const empty = new MetadataImage(clusterId);
  assert.equal(deltaTo(empty, snapshot), snapshot);
});

test('a topic that was made anew under its name has its own overrides', () => {
  const [first, second] = [uuids(1)(), uuids(2)()];
  const topic = (topicId: string, value: string): MetadataRecord[] => [
    { type: 'TopicRecord', name: 't', topicId },
    {
      type: 'ConfigRecord',
      resourceType: ConfigResourceType.topic,
      resourceName: 't',
      name: 'k',
      value,
    },
  ];
  const at = { snapshot: false, epoch: 1, leaderId: 1 } as const;
  const before: MetadataBatch = {
    ...at,
    firstOffset: 0,
    lastOffset: 1,
    records: topic(first, 'x'),
  };
  const after: MetadataBatch = {
    ...at,
    firstOffset: 0,
    lastOffset: 9,
    records: topic(second, 'x'),
  };
  const image = new MetadataImage(clusterId);
  image.apply(before);
  const to = new MetadataImage(clusterId);
  to.apply(after);
  const delta = deltaTo(image, to.snapshot());
  image.apply(delta);
  assert.equal(image.topic('t')?.id, second);
  assert.equal(image.topicConfigs('t').get('k'), 'x');
});

test.run();
