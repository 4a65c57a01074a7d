import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type { MetadataRecord } from '../../../replication/metadata/records.ts';
import { registration, TestController, uuids } from './fixtures.ts';
import { sessionTimeoutMs, TestCluster } from './test_cluster.ts';

const test = suite('brokers of a cluster');

const minIsrOf2 = { 'min.insync.replicas': '2' };

function kinds(records: readonly MetadataRecord[]): string[] {
  return records.map(({ type }) => type.replace('Record', ''));
}

test('a broker is fenced until a heartbeat tells that it has seen its registration', () => {
  const cluster = new TestCluster([]);
  const epoch = cluster.register(1);
  assert.equal(epoch, cluster.node.log.length - 1, 'the epoch is the offset of the registration');
  assert.equal(cluster.broker(1).fenced, true);
  assert.deepEqual(cluster.beat(1, { currentMetadataOffset: epoch - 1 }), {
    isCaughtUp: false,
    isFenced: true,
    shouldShutDown: false,
  });
  assert.equal(cluster.beat(1, { wantFence: true }).isFenced, true);
  assert.deepEqual(cluster.beat(1, { currentMetadataOffset: epoch }), {
    isCaughtUp: true,
    isFenced: false,
    shouldShutDown: false,
  });
  assert.equal(cluster.broker(1).fenced, false);
  assert.deepEqual(cluster.askBeat(1).records, [], 'a heartbeat without news costs no records');
});

test('heartbeats of strangers and of earlier runs are refused', () => {
  const cluster = new TestCluster([1]);
  const { epoch } = cluster.broker(1);
  const error = (id: number, brokerEpoch: number): number =>
    cluster.askBeat(id, { brokerEpoch }).reply.errorCode;
  assert.equal(error(2, epoch), ErrorCode.BROKER_ID_NOT_REGISTERED);
  assert.equal(error(1, epoch - 1), ErrorCode.STALE_BROKER_EPOCH);
});

test('a silent broker is fenced when its session ends, and its partitions go on elsewhere', () => {
  const cluster = new TestCluster([1, 2, 3]);
  cluster.create('t', [
    [1, 2, 3],
    [2, 1, 3],
  ]);
  for (const id of [1, 2, 3]) cluster.beat(id);
  cluster.node.advance(sessionTimeoutMs - 1);
  assert.equal(cluster.broker(1).fenced, false);
  for (const id of [2, 3]) cluster.beat(id);
  const records = cluster.node.advance(1);
  assert.equal(cluster.broker(1).fenced, true);
  assert.deepEqual(kinds(records), [
    'PartitionChange',
    'PartitionChange',
    'BrokerRegistrationChange',
  ]);
  assert.equal(cluster.state('t', 0), '2 [2,3]');
  assert.equal(cluster.partition('t', 0).leaderEpoch, 1);
  assert.equal(cluster.state('t', 1), '2 [2,3]');
  assert.equal(cluster.partition('t', 1).leaderEpoch, 0, 'the leader that stays keeps its epoch');
  cluster.node.advance(sessionTimeoutMs);
  assert.equal(cluster.broker(2).fenced, true);
});

test('a broker that answers no more is fenced at once, and comes back with a heartbeat', () => {
  const cluster = new TestCluster([1, 2]);
  cluster.create('t', [[1, 2]]);
  assert.equal(cluster.lose(1).length, 2);
  assert.equal(cluster.state('t'), '2 [2]');
  assert.deepEqual(cluster.lose(1), [], 'once is enough');
  assert.deepEqual(cluster.lose(9), [], 'strangers cannot be fenced');
  assert.equal(cluster.beat(1).isFenced, false);
  assert.equal(cluster.state('t'), '2 [2]', 'the ISR is the leader’s to grow');
});

test('two processes cannot be one broker; the same one may ask twice', () => {
  const cluster = new TestCluster([1]);
  const first = cluster.broker(1);
  const other = registration(1, { incarnationId: uuids(77)() });
  const ask = () => cluster.node.ask<'registerBroker'>(other).reply;
  assert.equal(ask().errorCode, ErrorCode.DUPLICATE_BROKER_REGISTRATION);
  assert.equal(cluster.register(1, { incarnationId: first.incarnationId }), first.epoch);
  assert.equal(cluster.broker(1).fenced, false, 'and stays what it is');
  cluster.node.advance(sessionTimeoutMs);
  const { result } = ask();
  assert(result !== null && result.brokerEpoch > first.epoch);
  const late = cluster.askBeat(1, { brokerEpoch: first.epoch }).reply;
  assert.equal(late.errorCode, ErrorCode.STALE_BROKER_EPOCH);
});

test('a broker that cannot read the cluster’s metadata is refused', () => {
  const cluster = new TestCluster([1]);
  const old = { name: 'metadata.version', minSupportedVersion: 7, maxSupportedVersion: 20 };
  for (const features of [[old], []]) {
    const { reply } = cluster.node.ask<'registerBroker'>(registration(2, { features }));
    assert.equal(reply.errorCode, ErrorCode.UNSUPPORTED_VERSION);
  }
  assert.equal(cluster.node.controller.image.broker(2), undefined);
});

test('a restarted broker is in no ISR until its leader takes it in anew', () => {
  const cluster = new TestCluster([1, 2, 3]);
  cluster.create('t', [[1, 2, 3]]);
  cluster.node.advance(sessionTimeoutMs - 1);
  for (const id of [1, 3]) cluster.beat(id);
  cluster.lose(2);
  cluster.startWhole(2);
  assert.equal(cluster.state('t'), '1 [1,3]');
  cluster.isr('t', [1, 3, 2]);
  assert.equal(cluster.state('t'), '1 [1,3,2]');
});

test('below min.insync.replicas those who leave the ISR stay eligible, and lead when nobody is left', () => {
  const cluster = new TestCluster([1, 2, 3]);
  cluster.create('t', [[1, 2, 3]], minIsrOf2);
  cluster.lose(3);
  assert.equal(cluster.state('t'), '1 [1,2]');
  cluster.lose(2);
  assert.equal(cluster.state('t'), '1 [1] (2)');
  cluster.lose(1);
  assert.equal(cluster.state('t'), '-1 [] (1,2)');
  assert.deepEqual(cluster.partition('t').lastKnownElr, [1]);
  cluster.startWhole(3);
  assert.equal(cluster.state('t'), '-1 [] (1,2)', 'who had left before lacks what was committed');
  cluster.startWhole(2);
  assert.equal(cluster.state('t'), '2 [2] (1)');
  assert.deepEqual(cluster.partition('t').lastKnownElr, []);
  assert.equal(cluster.partition('t').leaderRecoveryState, 0);
  cluster.startWhole(1);
  assert.equal(cluster.state('t'), '2 [2] (1)');
  cluster.isr('t', [2, 3]);
  assert.equal(cluster.state('t'), '2 [2,3]', 'the high watermark moves again without 1');
});

test('a broker that may have lost records is not eligible any more', () => {
  const cluster = new TestCluster([1, 2, 3]);
  cluster.create('t', [[1, 2, 3]], minIsrOf2);
  cluster.isr('t', [1]);
  assert.equal(cluster.state('t'), '1 [1] (2,3)');
  cluster.lose(2);
  cluster.start(2);
  assert.equal(cluster.state('t'), '1 [1] (3)');
  cluster.lose(1);
  cluster.lose(3);
  assert.equal(cluster.state('t'), '-1 [] (1,3)');
  cluster.start(3, { previousBrokerEpoch: cluster.broker(3).epoch - 1 });
  assert.equal(cluster.state('t'), '-1 [] (1)', 'an epoch of another run is no proof');
  cluster.startWhole(1);
  assert.equal(cluster.state('t'), '1 [1]');
});

test('when nobody has all, the last leader takes over and recovers', () => {
  const cluster = new TestCluster([1, 2]);
  cluster.create('t', [[1, 2]]);
  cluster.lose(2);
  cluster.lose(1);
  assert.equal(cluster.state('t'), '-1 [] (1)');
  cluster.start(2);
  assert.equal(cluster.state('t'), '-1 [] (1)');
  const { leaderEpoch } = cluster.partition('t');
  cluster.start(1);
  assert.equal(cluster.state('t'), '1 [1]');
  assert.equal(cluster.partition('t').leaderRecoveryState, 1);
  assert.equal(cluster.partition('t').leaderEpoch, leaderEpoch + 1);
  cluster.isr('t', [1, 2]);
  assert.equal(cluster.partition('t').leaderRecoveryState, 0);
});

test('a last leader with another disk does not take over by itself', () => {
  const cluster = new TestCluster([1, 2]);
  cluster.create('t', [[1, 2]]);
  cluster.lose(2);
  cluster.lose(1);
  const logDirs = [uuids(999)()];
  cluster.start(1, { logDirs, previousBrokerEpoch: cluster.broker(1).epoch });
  assert.equal(cluster.state('t'), '-1 []');
  const topics = [{ name: 't', partitions: [0] }];
  cluster.node.result<'electLeaders'>({ type: 'electLeaders', electionType: 1, topics });
  assert.equal(cluster.state('t'), '1 [1]');
  assert.equal(cluster.partition('t').directories[0], logDirs[0]);
  cluster.start(2, { logDirs });
  cluster.isr('t', [1, 2]);
  assert.equal(
    cluster.partition('t').directories[1],
    logDirs[0],
    'with the ISR the place is known',
  );
});

test('a controlled shutdown moves leadership first, and ends when the others know', () => {
  const cluster = new TestCluster([1, 2, 3]);
  cluster.create('t', [
    [1, 2],
    [2, 1],
  ]);
  cluster.create('alone', [[1]]);
  const before = cluster.node.log.length - 1;
  for (const id of [1, 2, 3]) cluster.beat(id, { currentMetadataOffset: before });
  const stop = { wantShutDown: true };
  assert.deepEqual(cluster.beat(1, stop), {
    isCaughtUp: true,
    isFenced: false,
    shouldShutDown: false,
  });
  assert.equal(cluster.broker(1).inControlledShutdown, true);
  assert.equal(cluster.state('t', 0), '2 [2]');
  assert.equal(cluster.state('t', 1), '2 [2]');
  assert.equal(cluster.state('alone'), '-1 [] (1)', 'nobody could take over');
  assert.equal(cluster.askIsr('t', [2, 1]).errorCode, ErrorCode.INELIGIBLE_REPLICA);
  cluster.beat(2);
  assert.equal(cluster.beat(1, stop).shouldShutDown, false, '3 may still send clients there');
  cluster.beat(3);
  assert.deepEqual(cluster.beat(1, stop), {
    isCaughtUp: true,
    isFenced: true,
    shouldShutDown: true,
  });
  assert.equal(cluster.broker(1).fenced, true);
  assert.equal(cluster.beat(1, stop).shouldShutDown, true, 'the answer was lost');
  cluster.startWhole(1);
  assert.equal(cluster.broker(1).inControlledShutdown, false);
  assert.equal(cluster.state('alone'), '1 [1]');
});

test('the last broker of all may stop at once', () => {
  const cluster = new TestCluster([1, 2]);
  cluster.create('t', [[1, 2]], minIsrOf2);
  cluster.lose(2);
  assert.equal(cluster.beat(1, { wantShutDown: true }).shouldShutDown, true);
  assert.equal(cluster.state('t'), '-1 [] (1,2)');
});

test('a new controller gives every broker its time, and ends what was begun', () => {
  const cluster = new TestCluster([1, 2, 3]);
  cluster.create('t', [[1, 2, 3]]);
  cluster.node.advance(sessionTimeoutMs - 1);
  assert.deepEqual(cluster.node.failOver(), []);
  cluster.node.advance(sessionTimeoutMs - 1);
  assert.equal(cluster.broker(1).fenced, false);

  const image = cluster.node.controller.image.copy();
  cluster.node.resign();
  const { epoch: brokerEpoch } = image.broker(1)!;
  const change = { brokerId: 1, brokerEpoch, fenced: 1, inControlledShutdown: 0, logDirs: [] };
  const record = { type: 'BrokerRegistrationChangeRecord', ...change } as const;
  const firstOffset = cluster.node.log.push(record) - 1;
  const at = { firstOffset, lastOffset: firstOffset, epoch: 2, leaderId: 2 };
  image.apply({ snapshot: false, records: [record], ...at });
  cluster.node.elect(image);
  assert.equal(cluster.state('t'), '2 [1,2,3]', 'nobody is known to live yet');
  cluster.beat(3);
  assert.equal(cluster.state('t'), '2 [2,3]');
});

test('silence that a new controller has seen counts, and that of nobody else', () => {
  const silentMs = 2_000;
  const leftMs = sessionTimeoutMs - silentMs;
  for (const comesBack of [false, true]) {
    const cluster = new TestCluster([1, 2, 3]);
    cluster.create('t', [[1, 2, 3]]);
    cluster.node.advance(silentMs);
    cluster.node.failOver({ nodeId: 1, sinceMs: cluster.node.nowMs - silentMs });
    cluster.node.advance(leftMs - 1);
    assert.equal(cluster.state('t'), '1 [1,2,3]');
    if (comesBack) cluster.beat(1);
    cluster.node.advance(1);
    assert.equal(cluster.broker(1).fenced, !comesBack);
    assert.equal(cluster.state('t'), comesBack ? '1 [1,2,3]' : '2 [2,3]');
    assert.equal(cluster.broker(2).fenced || cluster.broker(3).fenced, false);
  }
});

test('a broker whose session is over when the controller begins is fenced at once', () => {
  const cluster = new TestCluster([1, 2, 3]);
  cluster.create('t', [[1, 2, 3]]);
  cluster.node.advance(sessionTimeoutMs - 1);
  for (const id of [1, 2, 3]) cluster.beat(id);
  cluster.node.advance(sessionTimeoutMs - 1);
  cluster.node.failOver({ nodeId: 1, sinceMs: cluster.node.nowMs - sessionTimeoutMs });
  cluster.node.advance(0);
  assert.equal(cluster.state('t'), '2 [2,3]');
});

test('after a failure of all nobody waits for the sessions of processes that are gone', () => {
  const cluster = new TestCluster([1, 2]);
  cluster.create('t', [[1, 2]]);
  cluster.node.failOver();
  cluster.beat(2);
  const ask = (id: number) =>
    cluster.node.ask<'registerBroker'>(
      registration(id, {
        incarnationId: uuids(77)(),
        previousBrokerEpoch: cluster.broker(id).epoch,
      }),
    ).reply.errorCode;
  assert.equal(ask(1), ErrorCode.NONE);
  assert.equal(cluster.state('t'), '2 [2]');
  assert.equal(ask(2), ErrorCode.DUPLICATE_BROKER_REGISTRATION, 'this one has been heard of');
});

test('an unregistered broker is gone, and whoever comes with its number is another one', () => {
  const cluster = new TestCluster([1, 2, 3]);
  cluster.create('t', [[1, 2, 3]], minIsrOf2);
  cluster.isr('t', [1]);
  const unregister = (brokerId: number) =>
    cluster.node.ask<'unregisterBroker'>({ type: 'unregisterBroker', brokerId }).reply;
  const { epoch } = cluster.broker(3);
  assert.equal(unregister(3).errorCode, ErrorCode.NONE);
  assert.equal(unregister(3).errorCode, ErrorCode.BROKER_ID_NOT_REGISTERED);
  assert.equal(cluster.state('t'), '1 [1] (2)');
  const beat = cluster.askBeat(3, { brokerEpoch: epoch }).reply;
  assert.equal(beat.errorCode, ErrorCode.BROKER_ID_NOT_REGISTERED);
  assert.equal(unregister(1).errorCode, ErrorCode.NONE);
  assert.equal(cluster.state('t'), '2 [2]');
  cluster.start(1, { previousBrokerEpoch: epoch });
  assert.equal(cluster.state('t'), '2 [2]');
});

test('partitions leave a log directory that has failed', () => {
  const cluster = new TestCluster([2, 3]);
  const logDirs = [uuids(301)(), uuids(302)()];
  cluster.start(1, { logDirs: [logDirs[0]!] });
  cluster.create('t', [[1, 2]]);
  cluster.create('u', [[2, 1]]);
  cluster.beat(1, { offlineLogDirs: [logDirs[1]!] });
  assert.equal(cluster.state('t'), '1 [1,2]', 'another directory is no concern of theirs');
  cluster.beat(1, { offlineLogDirs: logDirs });
  assert.equal(cluster.state('t'), '2 [2]');
  assert.equal(cluster.state('u'), '2 [2]');
  assert.deepEqual(cluster.askBeat(1, { offlineLogDirs: logDirs }).records, []);
  cluster.lose(2);
  assert.equal(cluster.state('t'), '-1 [] (2)');
});

test('a node alone needs no heartbeats', () => {
  const node = new TestController();
  node.register(1);
  assert.equal(node.wakeAtMs, Number.POSITIVE_INFINITY);
  assert.deepEqual(node.advance(1e9), []);
  assert.deepEqual(
    node.take(node.controller.step({ type: 'brokerUnreachable', brokerId: 1, nowMs: 0 })),
    [],
  );
  assert.equal(node.controller.image.broker(1)?.fenced, false);
});

test('10,000 partitions fail over in batches that stay small, and only where they are concerned', () => {
  const cluster = new TestCluster([1, 2, 3, 4]);
  const { topics } = cluster.node.result<'createTopics'>({
    type: 'createTopics',
    topics: [
      {
        name: 't',
        numPartitions: 10_000,
        replicationFactor: 3,
        assignments: [],
        configs: [],
      },
    ],
    validateOnly: false,
  });
  assert.equal(topics[0]?.errorCode, ErrorCode.NONE);
  const { nowMs, controller } = cluster.node;
  const { partitions } = controller.image.topic('t')!;
  const led = partitions.filter(({ leader }) => leader === 1);
  const members = partitions.filter(({ isr }) => isr.includes(1));
  assert.equal(led.length, 2_500);
  const effects = controller.step({ type: 'brokerUnreachable', brokerId: 1, nowMs });
  const sizes = effects.map((effect) => (effect.type === 'append' ? effect.records.length : 0));
  assert(Math.max(...sizes) <= 5_000, `batches of ${sizes}`);
  assert.equal(
    sizes.reduce((sum, size) => sum + size),
    members.length + 1,
  );
  const first = effects[0];
  assert(first?.type === 'append');
  const moved = first.records.slice(0, 2_500);
  assert(moved.every((record) => record.type === 'PartitionChangeRecord' && record.leader > 1));
});

test.run();
