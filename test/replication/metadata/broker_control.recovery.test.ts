/** Who is in sync, eligible or elected when brokers come back from a failure of all of them, or with damaged logs. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { sessionTimeoutMs, TestCluster } from './test_cluster.ts';

const test = suite('brokers that come back');
const minIsrOf2 = { 'min.insync.replicas': '2' };

test('after a failure of all, who comes back whole stays in sync until another member is known to live', () => {
  const cluster = new TestCluster([1, 2, 3]);
  cluster.create('t', [[1, 2, 3]]);
  cluster.node.failOver();
  cluster.register(3, { previousBrokerEpoch: cluster.broker(3).epoch });
  assert.equal(cluster.state('t'), '1 [1,2,3]');
  cluster.register(2, { previousBrokerEpoch: cluster.broker(2).epoch });
  assert.equal(cluster.state('t'), '1 [1,2,3]');
  cluster.node.failOver();
  assert.equal(cluster.state('t'), '1 [1,2,3]', 'also for a controller that finds them fenced');
  cluster.beat(2);
  assert.equal(cluster.state('t'), '1 [1,2]', 'it lives, and 3 does not yet');
  cluster.node.advance(sessionTimeoutMs - 1);
  cluster.beat(2);
  cluster.node.advance(1);
  assert.equal(cluster.state('t'), '2 [2]', 'the leader never came');
  assert.equal(cluster.partition('t').leaderRecoveryState, 0);
});

test('a leader that lives has whoever restarts out of the ISR as soon as it is heard of', () => {
  const cluster = new TestCluster([1, 2]);
  cluster.create('t', [[1, 2]]);
  cluster.node.failOver();
  cluster.register(2, { previousBrokerEpoch: cluster.broker(2).epoch });
  assert.equal(cluster.state('t'), '1 [1,2]');
  cluster.beat(1);
  assert.equal(cluster.state('t'), '1 [1]');
  cluster.beat(2);
  assert.equal(cluster.state('t'), '1 [1]', 'the ISR is the leader’s to grow');
});

test('who leads and restarts after a failure of all does not lead on in its old epoch', () => {
  const cluster = new TestCluster([1, 2]);
  cluster.create('t', [[1, 2]]);
  cluster.create('alone', [[1]]);
  const before = cluster.partition('t').leaderEpoch;
  cluster.node.failOver();
  cluster.register(1, { previousBrokerEpoch: cluster.broker(1).epoch });
  assert.equal(cluster.state('t'), '2 [1,2]');
  assert.equal(cluster.partition('t').leaderEpoch, before + 1);
  assert.equal(cluster.state('alone'), '-1 [1]');
  cluster.beat(1);
  assert.equal(cluster.state('alone'), '1 [1]');
  assert.equal(cluster.partition('alone').leaderRecoveryState, 0);
});

test('those who fall silent together are all eligible', () => {
  const cluster = new TestCluster([1, 2, 3]);
  cluster.create('t', [[1, 2, 3]]);
  cluster.node.failOver();
  cluster.node.advance(sessionTimeoutMs);
  assert.equal(cluster.state('t'), '-1 [] (1,2,3)');
  cluster.startWhole(3);
  assert.equal(cluster.state('t'), '3 [3]');
});

test('a damaged replica that was the last in sync leads only where there is no other one', () => {
  const cluster = new TestCluster([1, 2]);
  cluster.create('t', [[1, 2]]);
  cluster.create('alone', [[1]]);
  cluster.create('whole', [[1, 2]]);
  cluster.lose(2);
  const damagedOf = (name: string) => ({
    topicId: cluster.node.controller.image.topic(name)!.id,
    partitions: [0],
  });
  const damagedReplicas = [damagedOf('t'), damagedOf('alone')];
  cluster.lose(1);
  cluster.start(1, { damagedReplicas });
  assert.equal(cluster.state('t'), '-1 []');
  assert.deepEqual(cluster.partition('t').lastKnownElr, []);
  assert.equal(cluster.state('alone'), '1 [1]', 'there never will be another one');
  assert.equal(cluster.state('whole'), '1 [1]', 'it was the last leader, and may have all');
  cluster.startWhole(2);
  assert.equal(cluster.state('t'), '-1 []', 'it lacks what the last leader had');
  const topics = [{ name: 't', partitions: [0] }];
  cluster.node.result<'electLeaders'>({ type: 'electLeaders', electionType: 1, topics });
  assert.equal(cluster.state('t'), '1 [1]', 'people have chosen');
});

test('a damaged replica that was eligible waits for another one that is', () => {
  const cluster = new TestCluster([1, 2, 3]);
  cluster.create('t', [[1, 2, 3]], minIsrOf2);
  cluster.lose(2);
  cluster.lose(3);
  cluster.lose(1);
  const { id: topicId } = cluster.node.controller.image.topic('t')!;
  cluster.start(1, { damagedReplicas: [{ topicId, partitions: [0] }] });
  assert.equal(cluster.state('t'), '-1 [] (3)');
  cluster.startWhole(3);
  assert.equal(cluster.state('t'), '3 [3]');
});

test.run();
