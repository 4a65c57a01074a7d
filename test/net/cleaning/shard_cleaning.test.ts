/** A shard's cleaning over a simulated log, with the cleaner's side in the same thread. */
import assert from 'node:assert/strict';
import { setImmediate } from 'node:timers/promises';
import { MessageChannel } from 'node:worker_threads';
import { suite } from 'uvu';
import type { FlushGroup } from '../../../engine/log/flush_group.ts';
import type { LogConfig } from '../../../engine/log/log_config.ts';
import { type Disk, DiskError } from '../../../engine/ports.ts';
import { IoThrottle } from '../../../net/cleaning/io_throttle.ts';
import { JobRunner } from '../../../net/cleaning/job_runner.ts';
import { ShardCleaning } from '../../../net/cleaning/shard_cleaning.ts';
import { LevelLogger } from '../../../net/logger.ts';
import { PartitionLeader } from '../../../replication/partition/leader.ts';
import type { FaultyDisk } from '../../sim/cleaning.ts';
import { recordsIn } from '../../sim/compacted_model.ts';
import { LogWorld, partitionDir, startMs, topicId } from '../../sim/log_world.ts';

const test = suite('shard_cleaning');

const cleaner = {
  enable: true,
  threads: 1,
  dedupeBufferSize: 1 << 20,
  ioBufferSize: 8192,
  ioBufferLoadFactor: 0.9,
  ioMaxBytesPerSecond: Number.MAX_VALUE,
  backoffMs: 1_000,
};

class Bench {
  readonly world: LogWorld;
  readonly leader: PartitionLeader;
  readonly cleaning: ShardCleaning;
  readonly offers: number[] = [];
  readonly cleaned: number[] = [];
  readonly broken: DiskError[] = [];
  readonly lines: string[] = [];

  constructor(config: Partial<LogConfig> = {}, enable = true) {
    const policy = { compact: true, delete: false };
    const world = new LogWorld({ segmentBytes: 300, cleanupPolicy: policy, ...config }).open();
    this.world = world;
    this.put(13);
    this.leader = new PartitionLeader({
      topic: 'orders',
      topicId,
      partition: 0,
      log: world.log,
      flushGroup: world.group as FlushGroup,
      state: { replicas: [1], isr: [1], leaderEpoch: 0, partitionEpoch: 0 },
      minInsyncReplicas: 1,
      highWatermark: 0,
      brokers: { nodeId: 1, lagTimeMaxMs: 30_000, eligibleEpoch: () => -1 },
      propose: () => {},
      onHighWatermark: () => {},
      onWritten: () => {},
      nowMs: 0,
    });
    this.cleaning = new ShardCleaning({
      config: () => ({ ...cleaner, enable }),
      clock: world.clock,
      logger: new LevelLogger(
        { level: 'debug', format: 'text' },
        (_level, message) => this.lines.push(message),
        () => 0,
      ),
      replicas: () => [this.leader],
      offer: (need) => this.offers.push(need),
      onCleaned: ({ log }) => this.cleaned.push(log.cleaning.cleanedOffset),
      onBroken: (_log, error) => this.broken.push(error),
      defer: (run) => run(),
    });
  }

  put(count: number): void {
    const { world } = this;
    for (let number = 0; number < count; number += 1) {
      const value = new Uint8Array(20);
      world.put({ records: [{ key: Uint8Array.of(1), value, timestamp: BigInt(startMs) }] });
    }
    world.settle();
  }

  /** The cleaner's thread takes a job, if there is one, and brings it to its end. */
  async serve(
    disk = this.world.disk as FaultyDisk['disk'],
    meanwhile = (): void => {},
  ): Promise<void> {
    const { port1, port2 } = new MessageChannel();
    const runner = new JobRunner(port1, {
      disk,
      clock: this.world.clock,
      random: this.world.random,
      budget: { mapBytes: 1 << 20, mapLoadFactor: 0.9, ioBytes: 8192 },
      throttle: new IoThrottle(Number.MAX_VALUE),
    });
    const closed = new Promise((resolve) => port2.once('close', resolve));
    this.cleaning.serve(port2);
    meanwhile();
    await runner.ended;
    await closed;
    await setImmediate();
  }

  /** A second and more goes by. */
  tick(): void {
    this.world.monotonicMs += 1_500;
    this.cleaning.tick();
  }

  get offsets(): number[] {
    return recordsIn(this.world.readAll()).map(({ offset }) => offset);
  }
}

test('a dirty log is offered, cleaned, and reported; then there is nothing more to do', async () => {
  const bench = new Bench();
  bench.tick();
  assert.deepEqual(bench.offers, [1]);
  await bench.serve();
  assert.deepEqual(bench.cleaned, [12]);
  assert.deepEqual(bench.offsets, [11, 12]);
  bench.tick();
  assert.deepEqual(bench.offers, [1]);
  bench.put(10);
  bench.leader.logFlushed(bench.world.log.flushedOffset);
  bench.tick();
  assert.equal(bench.offers.length, 2);
});

test('nothing is offered when the cleaner is off, or the topic is not compacted', () => {
  const off = new Bench({}, false);
  off.tick();
  const other = new Bench({ cleanupPolicy: { compact: false, delete: true } });
  other.tick();
  assert.deepEqual([...off.offers, ...other.offers], []);
});

test('a topic that becomes compacted is cleaned from then on, and the other way round', async () => {
  const bench = new Bench({ cleanupPolicy: { compact: false, delete: true } });
  const { world, leader } = bench;
  leader.updateConfig({ ...world.config, cleanupPolicy: { compact: true, delete: true } }, 1);
  bench.tick();
  assert.equal(bench.offers.length, 1);
  await bench.serve(world.disk, () => {
    leader.updateConfig(world.config, 1);
    bench.tick();
  });
  assert.deepEqual(bench.cleaned, []);
  assert.equal(bench.offsets.length, 13);
  assert.deepEqual(
    world.disk.list(partitionDir)!.filter((name) => /swap|cleaned/.test(name)),
    [],
  );
});

test('a log that is about to go is let go of when its job has ended', async () => {
  const bench = new Bench();
  bench.tick();
  let isFree = false;
  await bench.serve(bench.world.disk, () => {
    bench.cleaning.release(bench.world.log, () => {
      isFree = true;
    });
    assert(!isFree, 'the job is under way');
  });
  assert(isFree);
  assert.deepEqual(bench.cleaned, []);
  let isFreeAtOnce = false;
  bench.cleaning.release(bench.world.log, () => {
    isFreeAtOnce = true;
  });
  assert(isFreeAtOnce);
});

test('a stop waits for the job, and no other begins', async () => {
  const bench = new Bench();
  bench.tick();
  let stopping: Promise<void> = Promise.resolve();
  await bench.serve(bench.world.disk, () => {
    stopping = bench.cleaning.stop();
  });
  await stopping;
  await bench.serve();
  bench.tick();
  assert.deepEqual(bench.cleaned, []);
  assert.equal(bench.offers.length, 1);
});

test('a damaged log is given up with an error, until its settings change', async () => {
  const bench = new Bench();
  const { disk } = bench.world;
  disk.corrupt(`${partitionDir}/00000000000000000003.log`, 70, Uint8Array.of(0xff));
  bench.tick();
  await bench.serve();
  assert.equal(bench.lines.filter((line) => /cannot be cleaned and grows/.test(line)).length, 1);
  bench.tick();
  assert.equal(bench.offers.length, 1);
  bench.leader.updateConfig({ ...bench.world.config }, 1);
  bench.tick();
  assert.equal(bench.offers.length, 2);
});

test('a disk that is full is tried again', async () => {
  const bench = new Bench();
  const { disk } = bench.world;
  disk.capacityBytes = disk.usedBytes;
  bench.tick();
  await bench.serve();
  assert(bench.lines.some((line) => /while the disk is full/.test(line)));
  disk.capacityBytes = Number.POSITIVE_INFINITY;
  bench.tick();
  await bench.serve();
  assert.deepEqual(bench.cleaned, [12]);
});

test('a flush that fails takes the directory offline', async () => {
  const bench = new Bench();
  bench.world.disk.failingFlushes = 1;
  bench.tick();
  await bench.serve();
  assert.equal(bench.broken.length, 1);
  assert(!bench.broken[0]!.isPassing);
});

/** Has no room for the new name of a segment's file, and says so once. */
function withoutRoomFor(disk: Disk, name: string, onRefused: () => void): Disk {
  let isRefused = false;
  return new Proxy(disk, {
    get: (target, key) => {
      const member: unknown = Reflect.get(target, key);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]): unknown => {
        if (key === 'rename' && !isRefused && String(args[1]).endsWith(name)) {
          isRefused = true;
          onRefused();
          throw new DiskError('ENOSPC', 'no room');
        }
        return member.apply(target, args);
      };
    },
  });
}

test('a segment that is in place gets its names whatever becomes of the settings, and no job takes its file', async () => {
  const bench = new Bench();
  const { world, leader } = bench;
  bench.tick();
  const disk = withoutRoomFor(world.disk, '03.log', () => {
    leader.updateConfig({ ...world.config, cleanupPolicy: { compact: false, delete: true } }, 1);
    bench.tick();
    leader.updateConfig({ ...world.config }, 1);
  });
  await bench.serve(disk);
  leader.updateConfig({ ...world.config }, 1);
  bench.tick();
  await bench.serve();
  world.kill();
  world.reopen();
  const names = world.disk.list(partitionDir)!;
  assert(names.includes('00000000000000000003.log'), 'what the job had put in place');
  assert.deepEqual(
    names.filter((name) => /swap|cleaned/.test(name)),
    [],
  );
});

test('a job that ended between a segment and its names is not followed by another', async () => {
  const bench = new Bench();
  const { world, leader } = bench;
  bench.tick();
  const disk = withoutRoomFor(world.disk, '03.log', () => {
    bench.cleaning.release(world.log, () => {});
  });
  await bench.serve(disk);
  const swap = `${partitionDir}/00000000000000000003.log.swap`;
  assert(world.disk.status(swap) !== null);
  leader.updateConfig({ ...world.config }, 1);
  bench.tick();
  assert.equal(bench.offers.length, 1);
  await bench.serve();
  assert(world.disk.status(swap) !== null);
});

test.run();
