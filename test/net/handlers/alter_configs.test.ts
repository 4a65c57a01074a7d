/** AlterConfigs and IncrementalAlterConfigs: what is refused, and that what is set counts at once and after a restart. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { WorldConnection } from '../data_path/client.ts';
import { batchOfBytes, produce, produced } from '../data_path/requests.ts';
import { ShardWorld } from '../data_path/shard_world.ts';

const test = suite('alter_configs');
const { NONE, INVALID_REQUEST, INVALID_CONFIG, INVALID_TOPIC_EXCEPTION } = ErrorCode;
const set = 0;
const remove = 1;

type Change = readonly [name: string, operation: number, value: string | null];
type Resource = readonly [type: number, name: string];

async function alterAll(
  world: ShardWorld,
  resources: readonly (readonly [Resource, readonly Change[]])[],
): Promise<(readonly [number, string | null])[]> {
  const client = new WorldConnection(world);
  const { responses } = await client.callLater('IncrementalAlterConfigs', 1, {
    resources: resources.map(([[resourceType, resourceName], changes]) => ({
      resourceType,
      resourceName,
      configs: changes.map(([name, configOperation, value]) => ({ name, configOperation, value })),
    })),
    validateOnly: false,
  });
  return responses.map(({ errorCode, errorMessage }) => [errorCode, errorMessage] as const);
}

async function alter(
  world: ShardWorld,
  resource: Resource,
  ...changes: readonly Change[]
): Promise<readonly [number, string | null]> {
  return (await alterAll(world, [[resource, changes]]))[0]!;
}

/** Whether a batch of 5,000 bytes is taken. */
function takes(world: ShardWorld, topic: string): boolean {
  const parts = [{ topic, records: batchOfBytes(5_000) }];
  const sent = new WorldConnection(world).send('Produce', 9, produce(world, 9, -1, parts));
  world.settle();
  const { errorCode } = produced(sent.response());
  if (errorCode !== NONE) assert.equal(errorCode, ErrorCode.MESSAGE_TOO_LARGE);
  return errorCode === NONE;
}

function describe(world: ShardWorld, resource: Resource, key: string): unknown[] {
  const [resourceType, resourceName] = resource;
  const { results } = new WorldConnection(world).call('DescribeConfigs', 4, {
    resources: [{ resourceType, resourceName, configurationKeys: [key] }],
    includeSynonyms: true,
  });
  const config = results[0]?.configs[0];
  return config === undefined ? [] : [config.value, config.configSource];
}

test('a setting of a topic counts at once, after a crash, and until it is deleted', async () => {
  const world = await ShardWorld.start({ topics: [['t', 1]] });
  const topic = [2, 't'] as const;
  assert(takes(world, 't'));
  assert.deepEqual(await alter(world, topic, ['max.message.bytes', set, '4000']), [NONE, null]);
  assert(!takes(world, 't'));
  world.kill();
  await world.open();
  assert(!takes(world, 't'));
  assert.deepEqual(describe(world, topic, 'max.message.bytes'), ['4000', 1]);
  await alter(world, topic, ['max.message.bytes', remove, null]);
  assert(takes(world, 't'));
});

test('settings of brokers count for topics without their own, this broker before all of them', async () => {
  const world = await ShardWorld.start({
    topics: [
      ['t', 1],
      ['own', 1, { 'max.message.bytes': '9000' }],
    ],
  });
  const [all, one] = [
    [4, ''],
    [4, '1'],
  ] as const;
  await alter(world, all, ['message.max.bytes', set, '4000']);
  assert(!takes(world, 't'));
  assert(takes(world, 'own'));
  await alter(world, one, ['message.max.bytes', set, '6000']);
  assert(takes(world, 't'));
  assert.deepEqual(describe(world, one, 'message.max.bytes'), ['6000', 2]);
  assert.deepEqual(describe(world, all, 'message.max.bytes'), ['4000', 3]);
  assert.deepEqual(describe(world, [2, 't'], 'max.message.bytes'), ['6000', 2]);
  await alter(world, one, ['message.max.bytes', remove, null]);
  assert(!takes(world, 't'));
  world.kill();
  await world.open();
  assert(!takes(world, 't'));
  await world.createTopic('later');
  assert(!takes(world, 'later'));
  await alter(world, all, ['message.max.bytes', remove, null]);
  assert(takes(world, 't'));
});

test('min.insync.replicas can be set for all topics, and means no more than there are replicas', async () => {
  const world = await ShardWorld.start({ topics: [['t', 1]] });
  await alter(world, [4, ''], ['min.insync.replicas', set, '2']);
  assert.equal(world.leader('t').minInsyncReplicas, 1);
  assert(takes(world, 't'));
});

test('a compacted topic demands keys from the moment on when it is one', async () => {
  const world = await ShardWorld.start({ topics: [['t', 1]] });
  assert.deepEqual(await alter(world, [2, 't'], ['cleanup.policy', 2, 'compact']), [NONE, null]);
  assert.deepEqual(describe(world, [2, 't'], 'cleanup.policy'), ['delete,compact', 1]);
  assert.equal(world.leader('t').batchRules.compacted, true);
});

test('AlterConfigs replaces everything, and validate only replaces nothing', async () => {
  const configs = { 'max.message.bytes': '4000', 'segment.ms': '5' };
  const world = await ShardWorld.start({ topics: [['t', 1, configs]] });
  const client = new WorldConnection(world);
  for (const validateOnly of [true, false]) {
    const { responses } = await client.callLater('AlterConfigs', 2, {
      resources: [
        {
          resourceType: 2,
          resourceName: 't',
          configs: [{ name: 'retention.ms', value: '7' }],
        },
      ],
      validateOnly,
    });
    assert.equal(responses[0]?.errorCode, NONE);
    const overrides = Object.fromEntries(world.image.topicConfigs('t'));
    assert.deepEqual(overrides, validateOnly ? configs : { 'retention.ms': '7' });
  }
});

test('what cannot be done is refused in words that say why', async () => {
  const world = await ShardWorld.start({ topics: [['t', 1]] });
  const change: Change = ['retention.ms', set, '5'];
  const cases: [Resource, readonly Change[], number, RegExp][] = [
    [
      [2, 't'],
      [change, ['retention.ms', remove, null]],
      INVALID_REQUEST,
      /^Error due to duplicate config keys$/,
    ],
    [
      [2, 't'],
      [['retention.ms', set, null]],
      INVALID_REQUEST,
      /^Null value not supported for : retention\.ms$/,
    ],
    [[2, 't'], [['retention.ms', 7, '1']], INVALID_REQUEST, /^Unknown operations type 7$/],
    [
      [2, 't'],
      [['retention.ms', 2, '1']],
      INVALID_CONFIG,
      /^Can't APPEND to key retention\.ms because its type is not LIST\.$/,
    ],
    [
      [2, 't'],
      [['retntion.ms', set, '1']],
      INVALID_CONFIG,
      /^Unknown topic config name: retntion\.ms\. Did you mean retention\.ms\?$/,
    ],
    [[2, ''], [change], INVALID_REQUEST, /^Default topic resources are not allowed\.$/],
    [[2, 'a/b'], [change], INVALID_TOPIC_EXCEPTION, /a\/b/],
    [
      [2, 'nobody'],
      [change],
      ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
      /^The topic 'nobody' does not exist\.$/,
    ],
    [[4, 'x'], [change], INVALID_REQUEST, /^Node id must be an integer, but it is: x$/],
    [[4, '2'], [change], INVALID_REQUEST, /^Unexpected broker id, expected 1, but received 2$/],
    [[4, '1'], [change], INVALID_REQUEST, /For a broker it is log\.retention\.ms/],
    [
      [4, '1'],
      [['num.partitions', set, '3']],
      INVALID_REQUEST,
      /Set it in the properties file and restart/,
    ],
    [[8, '1'], [['root', set, 'DEBUG']], INVALID_REQUEST, /no loggers/],
    [[16, 'm'], [change], INVALID_REQUEST, /Client metrics are not supported/],
    [[32, 'g'], [change], INVALID_REQUEST, /single groups are not supported/],
    [[99, 'g'], [change], INVALID_REQUEST, /^Unknown resource type 99$/],
  ];
  for (const [resource, changes, code, pattern] of cases) {
    const [errorCode, errorMessage] = await alter(world, resource, ...changes);
    assert.deepEqual([errorCode, resource], [code, resource]);
    assert.match(errorMessage ?? '', pattern);
  }
});

test('each resource has its own answer, in order, and may be there once', async () => {
  const world = await ShardWorld.start({ topics: [['t', 1]] });
  const answers = await alterAll(world, [
    [[4, 'x'], []],
    [[2, 't'], [['retention.ms', set, '5']]],
    [[2, 'nobody'], []],
    [[4, ''], [['log.retention.ms', set, '5']]],
    [[4, '1'], []],
    [[4, '1'], []],
  ]);
  const codes = answers.map(([code]) => code);
  const { UNKNOWN_TOPIC_OR_PARTITION } = ErrorCode;
  assert.deepEqual(codes, [
    INVALID_REQUEST,
    NONE,
    UNKNOWN_TOPIC_OR_PARTITION,
    NONE,
    INVALID_REQUEST,
    INVALID_REQUEST,
  ]);
  assert.equal(answers[5]?.[1], 'Each resource must appear at most once.');
});

test.run();
