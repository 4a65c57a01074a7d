import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { Controller } from '../../../replication/metadata/controller.ts';
import type { CreateTopicResult, NewTopic } from '../../../replication/metadata/controller_api.ts';
import { MetadataImage } from '../../../replication/metadata/image.ts';
import { uuidZero } from '../../../replication/metadata/records.ts';
import { clusterId, controllerOptions, newTopic, TestController, uuids } from './fixtures.ts';
import { History } from './history.ts';

const test = suite('controller');

function create(node: TestController, ...topics: NewTopic[]): readonly CreateTopicResult[] {
  return node.result<'createTopics'>({ type: 'createTopics', topics, validateOnly: false }).topics;
}

function createOne(node: TestController, topic: NewTopic): CreateTopicResult {
  return create(node, topic)[0]!;
}

function withBroker(overrides = {}): TestController {
  const node = new TestController(overrides);
  node.register(1);
  return node;
}

test('the first leader of all writes the features, a later one does not', () => {
  const node = new TestController();
  assert.deepEqual(node.log, [
    { type: 'FeatureLevelRecord', name: 'metadata.version', featureLevel: 33 },
  ]);
  assert.deepEqual(node.failOver(), []);
});

test('a registration is unfenced, with the offset of its record as the broker epoch', () => {
  const node = new TestController();
  const epoch = node.register(1);
  assert.equal(epoch, 1);
  assert.equal(node.log[1]?.type, 'RegisterBrokerRecord');
  const broker = node.controller.image.broker(1);
  assert.equal(broker?.fenced, false);
  assert.equal(broker?.epoch, 1);
});

test('a new topic gets an id, its partitions a leader of epoch 0 in the broker’s directory', () => {
  const node = withBroker();
  const result = createOne(
    node,
    newTopic('orders', {
      numPartitions: 3,
      replicationFactor: 1,
      configs: [{ name: 'retention.ms', value: '5' }],
    }),
  );
  assert.equal(result.errorCode, ErrorCode.NONE);
  assert.equal(result.numPartitions, 3);
  assert.equal(result.replicationFactor, 1);
  const { image } = node.controller;
  const topic = image.topic('orders');
  assert.equal(topic?.id, result.topicId);
  assert.equal(image.topicById(result.topicId), topic);
  assert.deepEqual(
    topic?.partitions.map(({ leader, leaderEpoch, isr, replicas, directories }) => ({
      leader,
      leaderEpoch,
      isr,
      replicas,
      directories,
    })),
    [0, 1, 2].map(() => ({
      leader: 1,
      leaderEpoch: 0,
      isr: [1],
      replicas: [1],
      directories: image.broker(1)?.logDirs,
    })),
  );
  assert.deepEqual([...image.topicConfigs('orders')], [['retention.ms', '5']]);
});

test('-1 means the defaults', () => {
  const node = withBroker({ defaultPartitions: 4 });
  assert.equal(createOne(node, newTopic('a')).numPartitions, 4);
});

const refusals: [string, Partial<NewTopic>, number][] = [
  ['no partitions', { numPartitions: 0 }, ErrorCode.INVALID_PARTITIONS],
  ['fewer than none', { numPartitions: -2 }, ErrorCode.INVALID_PARTITIONS],
  ['no replicas', { replicationFactor: 0 }, ErrorCode.INVALID_REPLICATION_FACTOR],
  ['more replicas than brokers', { replicationFactor: 2 }, ErrorCode.INVALID_REPLICATION_FACTOR],
  ['a bad config', { configs: [{ name: 'bad.key', value: '1' }] }, ErrorCode.INVALID_CONFIG],
  ['a null config', { configs: [{ name: 'k', value: null }] }, ErrorCode.INVALID_CONFIG],
  [
    'a huge config',
    { configs: [{ name: 'k', value: 'x'.repeat(32_768) }] },
    ErrorCode.INVALID_CONFIG,
  ],
  [
    'an assignment and a number of partitions',
    { numPartitions: 1, assignments: [{ partitionIndex: 0, brokerIds: [1] }] },
    ErrorCode.INVALID_REQUEST,
  ],
  [
    'an assignment and a replication factor',
    { replicationFactor: 1, assignments: [{ partitionIndex: 0, brokerIds: [1] }] },
    ErrorCode.INVALID_REQUEST,
  ],
  [
    'an unknown broker',
    { assignments: [{ partitionIndex: 0, brokerIds: [9] }] },
    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
  ],
  [
    'a gap in the partitions',
    { assignments: [{ partitionIndex: 1, brokerIds: [1] }] },
    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
  ],
  [
    'a partition twice',
    {
      assignments: [
        { partitionIndex: 0, brokerIds: [1] },
        { partitionIndex: 0, brokerIds: [1] },
      ],
    },
    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
  ],
  [
    'a broker twice',
    { assignments: [{ partitionIndex: 0, brokerIds: [1, 1] }] },
    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
  ],
  [
    'an empty replica list',
    { assignments: [{ partitionIndex: 0, brokerIds: [] }] },
    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
  ],
];

for (const [what, overrides, errorCode] of refusals)
  test(`refused, with nothing written: ${what}`, () => {
    const node = withBroker();
    const before = node.log.length;
    const result = createOne(node, newTopic('a', overrides));
    assert.equal(result.errorCode, errorCode);
    assert.equal(typeof result.errorMessage, 'string');
    assert.equal(result.topicId, uuidZero);
    assert.equal(result.numPartitions, -1);
    assert.equal(node.log.length, before);
    assert.equal(node.controller.image.topics.size, 0);
  });

for (const name of ['', '.', '..', 'a/b', 'a b', 'é', 'x'.repeat(250)])
  test(`the name '${name.slice(0, 9)}' is invalid`, () => {
    const result = createOne(withBroker(), newTopic(name));
    assert.equal(result.errorCode, ErrorCode.INVALID_TOPIC_EXCEPTION);
  });

for (const name of ['a', '...', '-', '_', 'A.b_c-9', 'x'.repeat(249), '__consumer_offsets'])
  test(`the name '${name.slice(0, 9)}' is valid`, () => {
    assert.equal(createOne(withBroker(), newTopic(name)).errorCode, ErrorCode.NONE);
  });

test('nobody creates the cluster’s own log', () => {
  const result = createOne(withBroker(), newTopic('__cluster_metadata'));
  assert.equal(result.errorCode, ErrorCode.TOPIC_AUTHORIZATION_FAILED);
});

test('names that differ in . and _ only collide, also within a request, until one is deleted', () => {
  const node = withBroker();
  const [first, second] = create(node, newTopic('a.b'), newTopic('a_b'));
  assert.equal(first?.errorCode, ErrorCode.NONE);
  assert.equal(second?.errorCode, ErrorCode.INVALID_TOPIC_EXCEPTION);
  assert.match(second?.errorMessage ?? '', /collides with existing topic: a\.b/);
  assert.equal(createOne(node, newTopic('a-b')).errorCode, ErrorCode.NONE);
  node.result<'deleteTopics'>({ type: 'deleteTopics', topics: [{ name: 'a.b', topicId: null }] });
  assert.equal(createOne(node, newTopic('a_b')).errorCode, ErrorCode.NONE);
});

test('an existing name is reported as such, before anything else about it', () => {
  const node = withBroker();
  createOne(node, newTopic('a'));
  const again = createOne(node, newTopic('a', { configs: [{ name: 'bad.key', value: '1' }] }));
  assert.equal(again.errorCode, ErrorCode.TOPIC_ALREADY_EXISTS);
});

test('a name that a request holds twice is refused once, the others are created', () => {
  const results = create(withBroker(), newTopic('a'), newTopic('b'), newTopic('a'));
  assert.deepEqual(
    results.map(({ name, errorCode }) => [name, errorCode]),
    [
      ['a', ErrorCode.INVALID_REQUEST],
      ['b', ErrorCode.NONE],
    ],
  );
});

test('validate-only checks all and changes nothing', () => {
  const node = withBroker();
  const before = node.log.length;
  const { topics } = node.result<'createTopics'>({
    type: 'createTopics',
    topics: [newTopic('a', { numPartitions: 2 }), newTopic('b', { numPartitions: 0 })],
    validateOnly: true,
  });
  assert.deepEqual(
    topics.map(({ errorCode, numPartitions, topicId }) => [errorCode, numPartitions, topicId]),
    [
      [ErrorCode.NONE, 2, uuidZero],
      [ErrorCode.INVALID_PARTITIONS, -1, uuidZero],
    ],
  );
  assert.equal(node.log.length, before);
  assert.equal(createOne(node, newTopic('a')).errorCode, ErrorCode.NONE);
});

test('a request for too many partitions is refused as a whole', () => {
  const node = withBroker();
  const { reply, records } = node.ask<'createTopics'>({
    type: 'createTopics',
    topics: [newTopic('a', { numPartitions: 2_147_483_647 }), newTopic('b')],
    validateOnly: false,
  });
  assert.equal(reply.errorCode, ErrorCode.POLICY_VIOLATION);
  assert.deepEqual(records, []);
});

test('topics are deleted by name and by id, with their configs', () => {
  const node = withBroker();
  const configs = [{ name: 'k', value: 'v' }];
  create(node, newTopic('a', { configs }), newTopic('b'));
  const { image } = node.controller;
  const idOfB = image.topic('b')!.id;
  const missing = uuids(999)();
  const { topics } = node.result<'deleteTopics'>({
    type: 'deleteTopics',
    topics: [
      { name: 'a', topicId: null },
      { name: null, topicId: idOfB },
      { name: 'c', topicId: null },
      { name: null, topicId: missing },
    ],
  });
  assert.deepEqual(
    topics.map(({ name, errorCode }) => [name, errorCode]),
    [
      ['a', ErrorCode.NONE],
      ['b', ErrorCode.NONE],
      ['c', ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
      [null, ErrorCode.UNKNOWN_TOPIC_ID],
    ],
  );
  assert.equal(image.topics.size, 0);
  assert.equal(image.topicConfigs('a').size, 0);
  const oldId = topics[0]!.topicId;
  assert.notEqual(createOne(node, newTopic('a')).topicId, oldId);
});

test('deletion can be switched off', () => {
  const node = withBroker({ deleteTopicEnable: false });
  createOne(node, newTopic('a'));
  const { topics } = node.result<'deleteTopics'>({
    type: 'deleteTopics',
    topics: [{ name: 'a', topicId: null }],
  });
  assert.equal(topics[0]?.errorCode, ErrorCode.TOPIC_DELETION_DISABLED);
});

test('blocks of producer ids never overlap, and only a registered broker gets one', () => {
  const node = withBroker();
  const brokerEpoch = node.controller.image.broker(1)!.epoch;
  const blocks = [0, 1, 2].map(() =>
    node.result<'allocateProducerIds'>({ type: 'allocateProducerIds', brokerId: 1, brokerEpoch }),
  );
  assert.deepEqual(
    blocks.map((block) => block.firstProducerId),
    [0, 1000, 2000],
  );
  assert.equal(node.controller.image.nextProducerId, 3000);
  const ask = (brokerId: number, epoch: number) =>
    node.ask<'allocateProducerIds'>({
      type: 'allocateProducerIds',
      brokerId,
      brokerEpoch: epoch,
    }).reply.errorCode;
  assert.equal(ask(2, brokerEpoch), ErrorCode.BROKER_ID_NOT_REGISTERED);
  assert.equal(ask(1, brokerEpoch + 1), ErrorCode.STALE_BROKER_EPOCH);
});

test('an unclean restart raises the leader epochs, a clean one writes only the registration', () => {
  const node = withBroker();
  createOne(node, newTopic('a', { numPartitions: 2 }));
  const epochs = () =>
    node.controller.image.topic('a')!.partitions.map((partition) => partition.leaderEpoch);
  const second = node.register(1);
  assert.deepEqual(epochs(), [1, 1]);
  const before = node.log.length;
  const third = node.register(1, { previousBrokerEpoch: second });
  assert.deepEqual(epochs(), [1, 1]);
  assert.equal(node.log.length, before + 2);
  assert(third > second);
  node.register(1, { previousBrokerEpoch: second });
  assert.deepEqual(epochs(), [2, 2], 'an epoch from an earlier start is no proof');
});

test('fenced brokers lead nothing: without a live one a topic cannot be placed', () => {
  const node = withBroker();
  const image = node.controller.image.copy();
  node.resign();
  const firstOffset = image.offset + 1;
  image.apply({
    snapshot: false,
    firstOffset,
    lastOffset: firstOffset,
    epoch: 1,
    leaderId: 1,
    records: [
      {
        type: 'BrokerRegistrationChangeRecord',
        brokerId: 1,
        brokerEpoch: image.broker(1)!.epoch,
        fenced: 1,
        inControlledShutdown: 0,
        logDirs: [],
      },
    ],
  });
  node.log.length = firstOffset + 1;
  node.elect(image);
  assert.equal(createOne(node, newTopic('a')).errorCode, ErrorCode.INVALID_REPLICATION_FACTOR);
});

test('a controller that does not lead says so and writes nothing', () => {
  const controller = new Controller(controllerOptions());
  const request = { type: 'createTopics', topics: [newTopic('a')], validateOnly: false } as const;
  const [effect, ...more] = controller.step({ type: 'request', requestId: 1, request, nowMs: 0 });
  assert.equal(more.length, 0);
  assert(effect?.type === 'reply');
  assert.equal(effect.reply.errorCode, ErrorCode.NOT_CONTROLLER);
});

test('what was not committed is gone after a resignation', () => {
  const node = withBroker();
  const committed = node.controller.image.copy();
  createOne(node, newTopic('a.b'));
  assert.equal(committed.topics.size, 0, 'a copy goes its own way');
  node.resign();
  node.log.length = committed.offset + 1;
  node.elect(committed);
  assert.equal(createOne(node, newTopic('a_b')).errorCode, ErrorCode.NONE);
});

test('the image of a snapshot equals the original', () => {
  const node = withBroker();
  create(node, newTopic('a', { configs: [{ name: 'k', value: 'v' }] }), newTopic('b'));
  const copy = new MetadataImage(clusterId);
  copy.apply(structuredClone(node.controller.image.snapshot()));
  assert.deepEqual(copy.snapshot(), node.controller.image.snapshot());
  assert.deepEqual(node.controller.image.copy().snapshot(), copy.snapshot());
});

test('ids and names stay unique and all images agree, for 200 seeds', () => {
  let creations = 0;
  let deletions = 0;
  let losses = 0;
  for (let seed = 1; seed <= 200; seed += 1) {
    const history = new History(seed);
    try {
      history.run(150);
    } catch (error) {
      throw new Error(`seed ${seed}`, { cause: error });
    }
    creations += history.creations;
    deletions += history.deletions;
    losses += history.losses;
  }
  assert(creations > 1_000 && deletions > 500 && losses > 100, 'the histories did too little');
});

test.run();
