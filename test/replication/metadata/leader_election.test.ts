import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import {
  ElectionType,
  type ElectLeadersResult,
} from '../../../replication/metadata/controller_api.ts';
import { sessionTimeoutMs, TestCluster } from './test_cluster.ts';

const test = suite('elections');

const unclean = { 'unclean.leader.election.enable': 'true' };

function elect(
  cluster: TestCluster,
  electionType: number,
  partitions: readonly number[] | null,
  name = 't',
): ElectLeadersResult {
  return cluster.node.result<'electLeaders'>({
    type: 'electLeaders',
    electionType,
    topics: partitions === null ? null : [{ name, partitions }],
  });
}

function errors({ topics }: ElectLeadersResult): number[] {
  return topics.flatMap(({ partitions }) => partitions.map(({ errorCode }) => errorCode));
}

/** Leadership has moved from 1 to 2, and 1 is back: in sync with partition 0, not with 1. Partition 2 is led by 2. */
function moved(): TestCluster {
  const cluster = new TestCluster([1, 2]);
  cluster.create('t', [
    [1, 2],
    [1, 2],
    [2, 1],
  ]);
  cluster.lose(1);
  cluster.startWhole(1);
  cluster.isr('t', [2, 1]);
  return cluster;
}

test('the preferred leader takes over where it is in sync', () => {
  const cluster = moved();
  const result = elect(cluster, ElectionType.preferred, [0, 1, 2, 3]);
  assert.deepEqual(errors(result), [
    ErrorCode.NONE,
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    ErrorCode.ELECTION_NOT_NEEDED,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
  ]);
  const [first, ...others] = result.topics[0]!.partitions;
  assert.equal(first?.errorMessage, null);
  assert(others.every(({ errorMessage }) => typeof errorMessage === 'string'));
  assert.equal(cluster.state('t', 0), '1 [2,1]');
  assert.equal(cluster.partition('t', 0).leaderEpoch, 2);
  assert.equal(cluster.state('t', 1), '2 [2]');
});

test('of all partitions only those are told that need a leader', () => {
  const cluster = moved();
  const { topics } = elect(cluster, ElectionType.preferred, null);
  assert.deepEqual(
    topics[0]?.partitions.map(({ partitionIndex, errorCode }) => [partitionIndex, errorCode]),
    [
      [0, ErrorCode.NONE],
      [1, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE],
    ],
  );
  assert.deepEqual(elect(cluster, ElectionType.unclean, null).topics, []);
});

test('unknown topics and unknown kinds of elections are refused', () => {
  const cluster = moved();
  assert.deepEqual(errors(elect(cluster, ElectionType.preferred, [0], 'other')), [
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
  ]);
  const { reply } = cluster.node.ask<'electLeaders'>({
    type: 'electLeaders',
    electionType: 2,
    topics: null,
  });
  assert.equal(reply.errorCode, ErrorCode.INVALID_REQUEST);
});

test('an unclean election happens when it is asked for, and only then', () => {
  const cluster = new TestCluster([1, 2, 3]);
  cluster.create('t', [[1, 2, 3]]);
  cluster.isr('t', [1]);
  assert.deepEqual(errors(elect(cluster, ElectionType.unclean, [0])), [
    ErrorCode.ELECTION_NOT_NEEDED,
  ]);
  cluster.lose(1);
  assert.equal(cluster.state('t'), '-1 [] (1)');
  elect(cluster, ElectionType.preferred, null);
  assert.equal(cluster.state('t'), '-1 [] (1)');
  assert.deepEqual(errors(elect(cluster, ElectionType.unclean, null)), [ErrorCode.NONE]);
  assert.equal(cluster.state('t'), '2 [2]');
  assert.equal(cluster.partition('t').leaderRecoveryState, 1);
  cluster.startWhole(1);
  assert.equal(cluster.state('t'), '2 [2]', 'the old leader has to follow now');
});

test('without a living replica even an unclean election finds nobody', () => {
  const cluster = new TestCluster([1, 2, 3]);
  cluster.create('t', [[1, 2]]);
  cluster.lose(1);
  cluster.lose(2);
  assert.deepEqual(errors(elect(cluster, ElectionType.unclean, [0])), [
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
  ]);
  assert.equal(cluster.state('t'), '-1 [] (2)');
});

test('a topic may allow unclean elections, and the cluster may; the topic has the last word', () => {
  const cluster = new TestCluster([1, 2]);
  cluster.create('yes', [[1, 2]], unclean);
  cluster.create('no', [[1, 2]], { 'unclean.leader.election.enable': 'false' });
  cluster.create('default', [[1, 2]]);
  const names = ['yes', 'no', 'default'];
  for (const name of names) cluster.isr(name, [1]);
  cluster.lose(1);
  assert.deepEqual(
    names.map((name) => cluster.state(name)),
    ['2 [2]', '-1 [] (1)', '-1 [] (1)'],
  );
  const alter = (resourceType: number, resourceName: string) =>
    cluster.node.result<'alterConfigs'>({
      type: 'alterConfigs',
      validateOnly: false,
      resources: [
        {
          resourceType,
          resourceName,
          replacesAll: false,
          changes: [{ name: 'unclean.leader.election.enable', value: 'true', operation: 0 }],
        },
      ],
    });
  alter(4, '');
  assert.deepEqual(
    names.map((name) => cluster.state(name)),
    ['2 [2]', '-1 [] (1)', '2 [2]'],
  );
  alter(2, 'no');
  assert.equal(cluster.state('no'), '2 [2]');
});

test('with fewer replicas demanded, those who may lag behind are eligible no more', () => {
  const cluster = new TestCluster([1, 2]);
  cluster.create('t', [[1, 2]], { 'min.insync.replicas': '2' });
  cluster.isr('t', [1]);
  assert.equal(cluster.state('t'), '1 [1] (2)');
  cluster.node.result<'alterConfigs'>({
    type: 'alterConfigs',
    validateOnly: false,
    resources: [
      {
        resourceType: 2,
        resourceName: 't',
        replacesAll: false,
        changes: [{ name: 'min.insync.replicas', value: '1', operation: 0 }],
      },
    ],
  });
  assert.equal(cluster.state('t'), '1 [1]');
  cluster.lose(1);
  assert.equal(cluster.state('t'), '-1 [] (1)');
});

test('the cluster has one min.insync.replicas, which is there from the start and stays', () => {
  const cluster = new TestCluster([1, 2], { minInsyncReplicas: 2 });
  const name = 'min.insync.replicas';
  const text = () => cluster.node.controller.image.configs(4, '').get(name);
  assert.equal(text(), '2');
  const alter = (resourceName: string, operation: number, value: string | null, changes = [name]) =>
    cluster.node.result<'alterConfigs'>({
      type: 'alterConfigs',
      validateOnly: false,
      resources: [
        {
          resourceType: 4,
          resourceName,
          replacesAll: changes.length === 0,
          changes: changes.map((key) => ({ name: key, value, operation })),
        },
      ],
    }).resources[0]?.errorCode;
  assert.equal(alter('', 1, null), ErrorCode.INVALID_CONFIG, 'no removal');
  assert.equal(alter('', 0, null, []), ErrorCode.INVALID_CONFIG, 'nor by leaving it out');
  assert.equal(alter('1', 0, '1'), ErrorCode.INVALID_CONFIG, 'nor a broker of its own mind');
  assert.equal(alter('1', 1, null), ErrorCode.NONE);
  cluster.create('t', [[1, 2]]);
  cluster.isr('t', [1]);
  assert.equal(cluster.state('t'), '1 [1] (2)');
  assert.equal(alter('', 0, '1'), ErrorCode.NONE);
  assert.equal(cluster.state('t'), '1 [1]');
  assert.deepEqual(cluster.node.failOver(), []);
  assert.equal(text(), '1');
});

test('more replicas are never demanded than a partition has', () => {
  const cluster = new TestCluster([1, 2]);
  cluster.create('t', [[1, 2]], { 'min.insync.replicas': '3' });
  cluster.isr('t', [1]);
  cluster.isr('t', [1, 2]);
  assert.equal(cluster.state('t'), '1 [1,2]');
});

test('leadership goes back to preferred leaders now and then, if that is wanted', () => {
  const intervalMs = 3_000;
  for (const leaderBalanceIntervalMs of [intervalMs, null]) {
    const cluster = new TestCluster([1, 2], { leaderBalanceIntervalMs });
    cluster.create('t', [[1, 2]]);
    cluster.lose(1);
    cluster.startWhole(1);
    cluster.node.advance(intervalMs);
    assert.equal(cluster.state('t'), '2 [2]', 'not before it is in sync');
    cluster.isr('t', [2, 1]);
    cluster.node.advance(intervalMs - 1);
    assert.equal(cluster.state('t'), '2 [2,1]');
    assert(intervalMs * 2 < sessionTimeoutMs);
    cluster.node.advance(1);
    assert.equal(cluster.state('t'), leaderBalanceIntervalMs === null ? '2 [2,1]' : '1 [2,1]');
  }
});

test('of very many leaders some move at a time', () => {
  const cluster = new TestCluster([1, 2], { leaderBalanceIntervalMs: 3_000 });
  const assignments = Array.from({ length: 1_500 }, () => [1, 2]);
  cluster.create('t', assignments);
  cluster.lose(1);
  cluster.startWhole(1);
  assignments.forEach((_, partitionIndex) => {
    cluster.isr('t', [2, 1], { partitionIndex });
  });
  const { controller } = cluster.node;
  const moves = [0, 0].map(() =>
    cluster.node.take(controller.step({ type: 'tick', nowMs: 3_000 })),
  );
  assert.deepEqual(
    moves.map((records) => records.length),
    [1_000, 500],
  );
});

test.run();
