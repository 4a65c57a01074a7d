/** What the broker's log says of replicas that nobody leads because they are damaged. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { LevelLogger } from '../../net/logger.ts';
import { reportUndecided } from '../../net/recovery_report.ts';
import { TestCluster } from '../replication/metadata/test_cluster.ts';

const test = suite('reports of damage');

test('name each partition that waits for people, and no other', () => {
  const cluster = new TestCluster([1, 2]);
  for (const name of ['lost', 'led']) cluster.create(name, [[1, 2]]);
  cluster.create('alone', [[1]]);
  const damagedReplicas = ['lost', 'led', 'alone'].map((name) => ({
    topicId: cluster.node.controller.image.topic(name)!.id,
    partitions: [0],
  }));
  // 2 has all of `led`, and is down.
  cluster.isr('lost', [1]);
  cluster.lose(1);
  cluster.lose(2);
  cluster.start(1, { damagedReplicas });
  assert.equal(cluster.state('led'), '-1 [] (2)');
  const lines: string[] = [];
  const logger = new LevelLogger(
    { format: 'text', level: 'info' },
    (level, message, fields) => lines.push(`${level} ${JSON.stringify(fields)} ${message}`),
    () => 0,
  );
  reportUndecided(cluster.node.controller.image, damagedReplicas, logger);
  assert.equal(lines.length, 1);
  assert.match(lines[0]!, /^error .*"lost-0".*last one in sync.*kafka-leader-election/);
});

test.run();
