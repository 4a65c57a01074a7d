import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { LevelLogger } from '../../../net/logger.ts';
import { LogRetention } from '../../../net/retention/log_retention.ts';
import { LogStarts } from '../../../net/retention/log_starts.ts';
import { LossWarnings } from '../../../net/retention/loss_warnings.ts';
import { ReplicaPair } from '../replicas/replica_pair.ts';

const test = suite('log retention of followers');

/** One round over what broker `id` has. */
async function check(pair: ReplicaPair, id: number): Promise<void> {
  const node = pair.node(id);
  const logger = new LevelLogger(
    { format: 'text', level: 'info' },
    () => {},
    () => 0,
  );
  const retention = new LogRetention({
    clock: pair.clock,
    disk: node.disk,
    logger,
    intervalMs: 1_000,
    replicas: () => node.partitions!.replicas,
    starts: new LogStarts(() => assert.fail('a follower decides nothing')),
    warnings: new LossWarnings({ groupsBehind: async () => [], logger, aheadMs: -1 }),
    defer: (run) => setImmediate(run),
  });
  const checked = retention.check();
  for (let turns = 0; turns < 20; turns += 1) {
    await pair.turn();
    pair.settle(id);
  }
  await checked;
}

test('segments go when the leader’s log start has passed them, and not for their age', async () => {
  const pair = new ReplicaPair({ 'segment.bytes': '150', 'retention.ms': '1' });
  for (let count = 0; count < 6; count += 1) pair.produce(1, `${count}`);
  pair.rest();
  const { log } = pair.node(2).follower!;
  assert.deepEqual([log.logEndOffset, log.segmentCount], [6, 3]);
  await check(pair, 2);
  assert.deepEqual([log.logStartOffset, log.segmentCount], [0, 3]);
  pair.node(1).leader?.advanceLogStart(4);
  pair.rest();
  await pair.turn();
  pair.rest();
  assert.equal(log.logStartOffset, 4);
  await check(pair, 2);
  assert.deepEqual([log.logStartOffset, log.segmentCount], [4, 1]);
  assert.deepEqual(pair.valuesOf(2), ['04', '05']);
});

test.run();
