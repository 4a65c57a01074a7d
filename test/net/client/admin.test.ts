import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import type { Broker } from '../../../net/broker.ts';
import { type Admin, Client, MillraceError } from '../../../net/client/client.ts';
import { startLocalBroker } from '../../harness/local_broker.ts';

const test = suite('admin');
const dir = mkdtempSync(join(tmpdir(), 'millrace-admin-'));
let broker: Broker;
let client: Client;
let admin: Admin;

test.before(async () => {
  broker = await startLocalBroker(dir, {});
  client = new Client({ bootstrap: `127.0.0.1:${broker.address.port}`, timeoutMs: 20_000 });
  admin = client.admin();
});

test.after(async () => {
  await client.close();
  await broker.stop();
  rmSync(dir, { recursive: true, force: true });
});

/** The code of the error that a call ends with. */
async function codeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
  } catch (error) {
    assert(error instanceof MillraceError, String(error));
    return error.code;
  }
  return 'none';
}

async function write(topic: string, partition: number, count: number): Promise<void> {
  await using producer = client.producer({ compression: 'gzip' });
  await Promise.all(
    Array.from({ length: count }, (_, number) =>
      producer.send({ topic, partition, value: `v${number}`, timestampMs: 1_000 + number }),
    ),
  );
}

test('a topic that is there already is an error, unless that is no matter', async () => {
  const made = await admin.createTopic('twice', { partitions: 2 });
  assert.equal(await codeOf(admin.createTopic('twice', { partitions: 5 })), 'TOPIC_ALREADY_EXISTS');
  const again = await admin.createTopic('twice', { partitions: 5, ifNotExists: true });
  assert.deepEqual(again, made);
  const fresh = await admin.createTopic('once', { partitions: 3, ifNotExists: true });
  assert.deepEqual([fresh.partitions, fresh.replicationFactor], [3, 1]);
  for (const name of ['twice', 'once']) await admin.deleteTopic(name);
});

test('a topic is made as it was asked for, and known from then on', async () => {
  const made = await admin.createTopic('orders', {
    partitions: 2,
    replicationFactor: 1,
    configs: { 'retention.ms': '-1' },
  });
  assert.deepEqual([made.partitions, made.replicationFactor], [2, 1]);
  const described = await admin.describeTopic('orders');
  assert.equal(described.topicId, made.topicId);
  assert.deepEqual(
    described.partitions.map(({ partition, leaderId }) => [partition, leaderId]),
    [
      [0, 1],
      [1, 1],
    ],
  );
  assert.deepEqual(
    (await admin.listTopics()).map(({ name }) => name),
    ['orders'],
  );
});

test('defaults are the broker’s, and replicas can be placed', async () => {
  assert.equal((await admin.createTopic('plain')).partitions, 1);
  const placed = await admin.createTopic('placed', { assignments: [[1], [1], [1]] });
  assert.equal(placed.partitions, 3);
});

test('only asking changes nothing', async () => {
  await admin.createTopic('never', { validateOnly: true });
  await admin.addPartitions('plain', 4, { validateOnly: true });
  await admin.alterConfig(
    { type: 'topic', name: 'plain' },
    { set: { 'retention.ms': '5' } },
    { validateOnly: true },
  );
  assert.equal(await codeOf(admin.describeTopic('never')), 'UNKNOWN_TOPIC_OR_PARTITION');
  assert.equal((await admin.describeTopic('plain')).partitions.length, 1);
});

test('refusals have their codes', async () => {
  assert.equal(await codeOf(admin.createTopic('orders')), 'TOPIC_ALREADY_EXISTS');
  const many = admin.createTopic('many', { replicationFactor: 3 });
  assert.equal(await codeOf(many), 'INVALID_REPLICATION_FACTOR');
  assert.equal(await codeOf(admin.createTopic('no way')), 'INVALID_TOPIC_EXCEPTION');
  assert.equal(await codeOf(admin.deleteTopic('nope')), 'UNKNOWN_TOPIC_OR_PARTITION');
  assert.equal(await codeOf(admin.addPartitions('nope', 2)), 'UNKNOWN_TOPIC_OR_PARTITION');
  assert.equal(await codeOf(admin.addPartitions('orders', 1)), 'INVALID_PARTITIONS');
  assert.equal(await codeOf(admin.deleteRecords('orders', 0, 99)), 'OFFSET_OUT_OF_RANGE');
  assert.equal(await codeOf(admin.describeGroup('nobody')), 'GROUP_ID_NOT_FOUND');
  assert.equal(await codeOf(admin.deleteGroup('nobody')), 'GROUP_ID_NOT_FOUND');
  const broken = { type: 'broker', name: 'one' } as const;
  assert.equal(await codeOf(admin.describeConfig(broken)), 'INVALID_ARGUMENT');
  const nothing = admin.alterConfig({ type: 'topic', name: 'orders' }, {});
  assert.equal(await codeOf(nothing), 'INVALID_ARGUMENT');
});

test('partitions are added, and topics deleted', async () => {
  await admin.addPartitions('plain', 3);
  assert.equal((await admin.describeTopic('plain')).partitions.length, 3);
  await admin.deleteTopic('plain');
  assert.equal(await codeOf(admin.describeTopic('plain')), 'UNKNOWN_TOPIC_OR_PARTITION');
});

test('settings are changed, and say where they come from', async () => {
  const resource = { type: 'topic', name: 'orders' } as const;
  const sourceOf = async (name: string): Promise<string | undefined> =>
    (await admin.describeConfig(resource)).find((one) => one.name === name)?.source;
  assert.equal(await sourceOf('retention.ms'), 'topic');
  await admin.alterConfig(resource, {
    unset: ['retention.ms'],
    append: { 'cleanup.policy': 'compact' },
  });
  assert.equal(await sourceOf('retention.ms'), 'default');
  const policy = (await admin.describeConfig(resource)).find(
    ({ name }) => name === 'cleanup.policy',
  );
  assert.equal(policy?.value, 'delete,compact');
  await admin.alterConfig(resource, { subtract: { 'cleanup.policy': 'compact' } });
  const ofBroker = await admin.describeConfig({ type: 'broker', name: '1' });
  assert(ofBroker.some(({ name, source }) => name === 'log.dirs' && source === 'file'));
});

test('offsets are found by place and by time, records deleted, and their times told', async () => {
  await write('orders', 1, 10);
  const both = [
    { topic: 'orders', partition: 1 },
    { topic: 'orders', partition: 0 },
  ];
  const latest = await admin.listOffsets(both, 'latest');
  assert.deepEqual(
    latest.map(({ offset }) => offset),
    [10, 0],
  );
  const timed = await admin.listOffsets(both, 1_004);
  assert.deepEqual(
    timed.map(({ offset, timestampMs }) => [offset, timestampMs]),
    [
      [4, 1_004],
      [-1, -1],
    ],
  );
  assert.equal(await admin.deleteRecords('orders', 1, 3), 3);
  assert.equal((await admin.listOffsets(both, 'earliest'))[0]?.offset, 3);
  const times = await admin.timestampsAt([
    { topic: 'orders', partition: 1, offset: 7 },
    { topic: 'orders', partition: 1, offset: 10 },
  ]);
  assert.deepEqual(times, [1_007, -1]);
  assert.equal(await admin.deleteRecords('orders', 1, 'latest'), 10);
});

test('what groups have committed is set, read and deleted', async () => {
  const orders = { topic: 'orders', partition: 0 };
  await admin.alterGroupOffsets('billing', [{ ...orders, offset: 7, metadata: 'why' }]);
  assert.deepEqual(await admin.groupOffsets('billing'), [
    { ...orders, offset: 7, metadata: 'why' },
  ]);
  assert.deepEqual(
    (await admin.listGroups()).map(({ groupId, type, state }) => [groupId, type, state]),
    [['billing', 'classic', 'Empty']],
  );
  const group = await admin.describeGroup('billing');
  assert.deepEqual([group.type, group.state, group.members], ['classic', 'Empty', []]);
  await admin.deleteGroupOffsets('billing', [orders]);
  assert.deepEqual(await admin.groupOffsets('billing'), []);
  await admin.alterGroupOffsets('audit', [{ ...orders, offset: 1 }]);
  await admin.deleteGroup('audit');
  assert.equal(await codeOf(admin.describeGroup('audit')), 'GROUP_ID_NOT_FOUND');
});

test('members of groups of both protocols are described, and keep their offsets to themselves', async () => {
  for (const protocol of ['classic', 'consumer'] as const) {
    const groupId = `live-${protocol}`;
    await using consumer = client.consumer({ group: groupId, protocol, topics: ['orders'] });
    await consumer.ready();
    const group = await admin.describeGroup(groupId);
    assert.deepEqual([group.type, group.members.length], [protocol, 1]);
    const offsets = [{ topic: 'orders', partition: 0, offset: 0 }];
    const code = await codeOf(admin.alterGroupOffsets(groupId, offsets));
    assert(['UNKNOWN_MEMBER_ID', 'STALE_MEMBER_EPOCH', 'ILLEGAL_GENERATION'].includes(code), code);
    assert.equal(await codeOf(admin.deleteGroup(groupId)), 'NON_EMPTY_GROUP');
  }
});

test('the cluster, its log directories and its quorum', async () => {
  const cluster = await admin.describeCluster();
  assert.equal(cluster.controllerId, 1);
  assert.deepEqual(
    cluster.brokers.map(({ id, port }) => [id, port]),
    [[1, broker.address.port]],
  );
  const [log] = await admin.describeLogDirs();
  assert.deepEqual([log?.brokerId, log?.path, log?.errorCode], [1, dir, 0]);
  assert(log?.replicas.some(({ topic }) => topic === 'orders'));
  const quorum = await admin.describeQuorum();
  assert.deepEqual([quorum.leaderId, quorum.voters.map(({ lag }) => lag)], [1, [0]]);
});

test('a call ends when its signal does', async () => {
  const reason = new Error('enough');
  const call = admin.listTopics({ signal: AbortSignal.abort(reason) });
  await assert.rejects(call, reason);
});

test.run();
