/** Writes that may wait for others to share their flush with. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { newAppendResult } from '../../../engine/log/append_result.ts';
import { PartitionLog } from '../../../engine/log/partition_log.ts';
import { SegmentCache } from '../../../engine/log/segment_cache.ts';
import { LogWorld, logDir, makeBatch, topicId } from '../../sim/log_world.ts';
import { SeededRandom } from '../../sim/seeded_random.ts';

const test = suite('flush_group.linger');

function lingering(lingerMs = 10, config: { durability?: 'os' | 'fsync' } = {}): LogWorld {
  const world = new LogWorld(config).open();
  world.settle();
  world.flushed.length = 0;
  world.isUrgent = () => false;
  world.lingerMs = lingerMs;
  return world;
}

function anotherLog(world: LogWorld): PartitionLog {
  const { disk, clock, random, config } = world;
  const log = PartitionLog.open({
    disk,
    clock,
    random,
    cache: new SegmentCache(4),
    dir: `${logDir}/orders-7`,
    topic: 'orders',
    partition: 7,
    topicId,
    config,
    recoveryPoint: 0,
    logStartOffset: 0,
    cleanShutdown: false,
    afterPowerLoss: false,
    dropCache: false,
    setAsideDamage: true,
  });
  world.group.adopt(log);
  return log;
}

function put(world: LogWorld, log: PartitionLog, lingerMs: number): void {
  const bytes = makeBatch({});
  const info = world.validate(bytes);
  const { appender } = log;
  const code = appender.append(bytes, 0, bytes.length, info, 0, world.wallMs, newAppendResult());
  assert.equal(code, ErrorCode.NONE);
  world.group.markDirty(log, false, lingerMs);
}

test('what may wait is written and flushed together when the first of it has waited long enough', () => {
  const world = lingering();
  const flushes = world.group.flushCount;
  world.put();
  world.endTurn();
  world.monotonicMs += 6;
  world.put();
  world.settle();
  assert.equal(world.log.writtenOffset, 0);
  assert.deepEqual(
    world.delayed.map(({ ms }) => ms),
    [10],
  );
  world.delayed[0]?.run();
  assert.equal(world.log.writtenOffset, 2);
  world.settle();
  assert.deepEqual(world.flushed, [2]);
  assert.equal(world.group.flushCount - flushes, 1);
});

test('what may wait less ends the wait of what came before', () => {
  const world = lingering();
  world.put();
  world.monotonicMs += 1;
  world.lingerMs = 3;
  world.put();
  assert.deepEqual(
    world.delayed.map(({ ms }) => ms),
    [10, 3],
  );
  world.delayed[1]?.run();
  world.settle();
  assert.deepEqual(world.flushed, [2]);
});

test('a write that cannot wait takes what waits along, and the timer does nothing then', () => {
  const world = lingering();
  world.put();
  world.isUrgent = () => true;
  world.put();
  world.settle();
  assert.deepEqual(world.flushed, [2]);
  const flushes = world.group.flushCount;
  world.delayed[0]?.run();
  world.settle();
  assert.equal(world.group.flushCount, flushes);
});

test('the next wait begins anew after a write', () => {
  const world = lingering();
  world.put();
  world.delayed[0]?.run();
  world.settle();
  world.put();
  assert.deepEqual(
    world.delayed.map(({ ms }) => ms),
    [10, 10],
  );
});

test('the end of a flush that is under way writes what waits', () => {
  const world = lingering(0);
  world.put();
  world.endTurn();
  assert(world.disk.waitingFlushes > 0);
  world.lingerMs = 10;
  world.put();
  world.delayed[0]?.run();
  assert.equal(world.log.writtenOffset, 1);
  world.settle();
  assert.deepEqual(world.flushed, [1, 2]);
});

test('several logs that have waited share one flush of the file system', () => {
  const world = lingering();
  const other = anotherLog(world);
  world.settle();
  const before = world.disk.calls.get('flushFileSystem') ?? 0;
  world.put();
  put(world, other, 10);
  world.delayed[0]?.run();
  world.settle();
  assert.equal((world.disk.calls.get('flushFileSystem') ?? 0) - before, 1);
  assert.equal(world.log.flushedOffset, 1);
  assert.equal(other.flushedOffset, 1);
});

test('with durability os nothing waits: there is no flush to share', () => {
  const world = lingering(10, { durability: 'os' });
  world.put();
  world.endTurn();
  assert.equal(world.log.writtenOffset, 1);
  assert.deepEqual(world.delayed, []);
});

test('closing writes and flushes what waits', () => {
  const world = lingering();
  world.put();
  const { log } = world;
  let closed = false;
  world.group.close((error) => {
    assert.equal(error, null);
    closed = true;
  });
  world.settle();
  assert(closed);
  assert.equal(log.flushedOffset, 1);
});

test('whatever the order of writes, turns, flushes and timers, nothing waits without a timer', () => {
  for (let seed = 1; seed <= 200; seed += 1) {
    const random = new SeededRandom(seed);
    const world = lingering();
    const other = anotherLog(world);
    world.settle();
    /** On the world's clock. */
    let timers: { readonly run: () => void; readonly atMs: number }[] = [];
    const arm = (): void => {
      for (const { run, ms } of world.delayed.splice(0))
        timers.push({ run, atMs: world.monotonicMs + ms });
    };
    const fire = (): void => {
      const due = timers.filter(({ atMs }) => atMs <= world.monotonicMs);
      timers = timers.filter(({ atMs }) => atMs > world.monotonicMs);
      for (const { run } of due) run();
    };
    const act = [
      () => {
        world.isUrgent = () => random.chance(0.2);
        world.lingerMs = random.chance(0.3) ? 0 : 1 + random.below(20);
        world.put();
      },
      () => put(world, other, random.chance(0.3) ? 0 : 1 + random.below(20)),
      () => world.endTurn(),
      () => world.disk.endFlushes(),
      () => {
        world.monotonicMs += random.below(8);
        fire();
      },
    ];
    for (let step = 0; step < 200; step += 1) {
      act[random.below(act.length)]?.();
      arm();
    }
    world.settle();
    arm();
    world.monotonicMs += 20;
    fire();
    world.settle();
    for (const log of [world.log, other])
      assert.equal(log.flushedOffset, log.logEndOffset, `seed ${seed}`);
  }
});

test.run();
