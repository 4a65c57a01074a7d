import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import { suite } from 'uvu';
import type { PartitionCheckpoint } from '../../../engine/log/checkpoint_table.ts';
import { LogDirectory } from '../../../engine/log/log_directory.ts';
import { LogDirectoryError } from '../../../engine/log/log_directory_options.ts';
import { NodeDisk, nodeRandom } from '../../../engine/node_ports.ts';
import { SimDisk } from '../../sim/disk.ts';
import { SeededRandom } from '../../sim/seeded_random.ts';

const test = suite('log_directory');

interface Overrides {
  readonly nodeId?: number;
  readonly clusterId?: string | null;
  readonly joinsLater?: boolean;
  readonly bootId?: string | null;
}

function open(disk: SimDisk, overrides: Overrides = {}): LogDirectory {
  return LogDirectory.open({
    disk,
    random: new SeededRandom(5),
    bootId: 'boot-1',
    path: '/data/logs',
    nodeId: 1,
    clusterId: null,
    ...overrides,
  });
}

const text = (disk: SimDisk, name: string): string =>
  new TextDecoder().decode(disk.bytesOf(`/data/logs/${name}`));

const checkpoint = (topic: string, partition: number, offset: number): PartitionCheckpoint => ({
  topic,
  partition,
  topicId: '',
  recoveryPoint: offset,
  highWatermark: offset + 1,
  logStartOffset: offset - 5,
});

function write(disk: SimDisk, directory: LogDirectory, list: PartitionCheckpoint[]): void {
  directory.writeCheckpoints(list, (error) => assert.equal(error, null));
  while (disk.waitingFlushes > 0) disk.endFlushes();
}

test('a directory of a cluster that has not formed has an id of its own, and joins later, for good', () => {
  const disk = new SimDisk({ seed: 1 });
  const forming = open(disk, { joinsLater: true });
  const { directoryId } = forming.meta;
  assert.deepEqual(forming.meta, { clusterId: '', nodeId: 1, directoryId });
  assert.doesNotMatch(text(disk, 'meta.properties'), /cluster\.id/);
  disk.crash();
  assert.throws(() => open(disk), /was made for a cluster and has not joined one/);
  disk.crash();
  const again = open(disk, { joinsLater: true });
  assert.equal(again.meta.directoryId, directoryId, 'others may know it already');
  again.adoptCluster('abc');
  disk.crash();
  const joined = { clusterId: 'abc', nodeId: 1, directoryId };
  assert.deepEqual(open(disk, { joinsLater: true }).meta, joined);
  disk.crash();
  assert.deepEqual(open(disk).meta, joined);
});

test('a directory beside the metadata joins the same cluster, and only that', () => {
  const disk = new SimDisk({ seed: 1 });
  open(disk, { joinsLater: true, clusterId: '' });
  disk.crash();
  const { meta } = open(disk, { joinsLater: true, clusterId: 'abc' });
  assert.equal(meta.clusterId, 'abc', 'a crash came between the two directories');
  disk.crash();
  assert.match(text(disk, 'meta.properties'), /^cluster\.id=abc$/m);
  assert.throws(
    () => open(disk, { joinsLater: true, clusterId: '' }),
    /belongs to cluster abc, and the metadata to none/,
  );
});

test('a new directory gets its parents, an identity and a lock', () => {
  const disk = new SimDisk({ seed: 1 });
  const { meta, cleanShutdown, partitions } = open(disk);
  assert.match(meta.clusterId, /^[A-Za-z0-9_-]{22}$/);
  assert.match(
    text(disk, 'meta.properties'),
    /^cluster\.id=.{22}\ndirectory\.id=.{22}\nnode\.id=1\nversion=1$/m,
  );
  assert.equal(cleanShutdown, false);
  assert.equal(partitions.size, 0);
  disk.crash();
  assert.deepEqual(open(disk).meta, meta, 'the identity is on stable storage');
});

test('Kafka’s meta.properties is understood, and gets a directory id if it has none', () => {
  const disk = new SimDisk({ seed: 1 });
  disk.mkdir('/data');
  disk.mkdir('/data/logs');
  const lines = ['#', '#Sun Nov 29 10:00:00 UTC 2026', 'node.id=1', 'version=1', 'cluster.id=abc'];
  disk.writeFile('/data/logs/meta.properties', new TextEncoder().encode(`${lines.join('\n')}\n`));
  const { meta } = open(disk);
  assert.equal(meta.clusterId, 'abc');
  disk.kill();
  assert.deepEqual(open(disk).meta, meta);
});

for (const [what, overrides, pattern] of [
  ['another node', { nodeId: 2 }, /belongs to node 1, but node\.id is 2/],
  ['another cluster', { clusterId: 'xyz' }, /belongs to cluster .{22}, not to xyz/],
] as const) {
  test(`a directory of ${what} is refused with what to do`, () => {
    const disk = new SimDisk({ seed: 1 });
    open(disk);
    disk.kill();
    assert.throws(
      () => open(disk, overrides),
      (error) => {
        assert(error instanceof LogDirectoryError);
        assert.match(error.message, pattern);
        return true;
      },
    );
  });
}

test('partitions without meta.properties are nobody’s', () => {
  const disk = new SimDisk({ seed: 1 });
  for (const path of ['/data', '/data/logs', '/data/logs/orders-0']) disk.mkdir(path);
  assert.throws(() => open(disk), /no meta\.properties/);
});

test('a second broker in this process or another is told who has the directory', () => {
  const path = fs.mkdtempSync(`${os.tmpdir()}/millrace-lock-`);
  try {
    const options = { random: nodeRandom, bootId: null, path, nodeId: 1, clusterId: null };
    const first = LogDirectory.open({ ...options, disk: new NodeDisk() });
    assert.throws(
      () => LogDirectory.open({ ...options, disk: new NodeDisk() }),
      new RegExp(`in use by process ${process.pid}`),
    );
    first.close();
    LogDirectory.open({ ...options, disk: new NodeDisk() }).close();
  } finally {
    fs.rmSync(path, { recursive: true });
  }
});

test('checkpoints are Kafka’s files and come back by partition', () => {
  const disk = new SimDisk({ seed: 1 });
  const directory = open(disk);
  for (const name of ['a-b.c-0', 'orders-12']) disk.mkdir(`/data/logs/${name}`);
  write(disk, directory, [
    checkpoint('a-b.c', 0, 7),
    checkpoint('orders', 12, 5),
    checkpoint('gone', 1, 9),
  ]);
  assert.equal(
    text(disk, 'recovery-point-offset-checkpoint'),
    '0\n3\na-b.c 0 7\norders 12 5\ngone 1 9\n',
  );
  assert.equal(
    text(disk, 'replication-offset-checkpoint'),
    '0\n3\na-b.c 0 8\norders 12 6\ngone 1 10\n',
  );
  assert.equal(text(disk, 'log-start-offset-checkpoint'), '0\n2\na-b.c 0 2\ngone 1 4\n');
  disk.kill();
  const again = open(disk);
  assert.deepEqual(
    [...again.partitions.keys()].sort((a, b) => a.localeCompare(b)),
    ['a-b.c-0', 'orders-12'],
  );
  assert.deepEqual(again.marksOf('a-b.c', 0), {
    recoveryPoint: 7,
    highWatermark: 8,
    logStartOffset: 2,
  });
  assert.deepEqual(again.marksOf('other', 0), {
    recoveryPoint: 0,
    highWatermark: 0,
    logStartOffset: 0,
  });
});

test('an unreadable checkpoint counts as empty, with a warning', () => {
  const disk = new SimDisk({ seed: 1 });
  const directory = open(disk);
  disk.mkdir('/data/logs/orders-0');
  write(disk, directory, [checkpoint('orders', 0, 7)]);
  for (const damage of [
    '0\n2\norders 0 7\n',
    '1\n1\norders 0 7\n',
    '0\n1\norders 0 x\n',
    '0\n1\norders 0 7',
  ]) {
    disk.kill();
    disk.writeFile('/data/logs/recovery-point-offset-checkpoint', new TextEncoder().encode(damage));
    const again = open(disk);
    assert.equal(again.warnings.length, 1, JSON.stringify(damage));
    assert.equal(again.marksOf('orders', 0).recoveryPoint, 0);
    assert.equal(again.marksOf('orders', 0).highWatermark, 8);
  }
});

test('the clean-shutdown marker holds for one start', () => {
  const disk = new SimDisk({ seed: 1 });
  open(disk).markClean(42);
  assert.equal(text(disk, '.kafka_cleanshutdown'), '{"version":0,"brokerEpoch":42}');
  disk.crash();
  const second = open(disk);
  assert.equal(second.cleanShutdown, true);
  assert.equal(second.cleanBrokerEpoch, 42);
  disk.crash();
  assert.equal(open(disk).cleanShutdown, false, 'its removal is on stable storage');
});

test('a power cut is told from a kill by the machine’s run, once there was a checkpoint in it', () => {
  const disk = new SimDisk({ seed: 1 });
  assert.equal(open(disk).afterPowerLoss, true, 'not known is as good as yes');
  disk.kill();
  const second = open(disk);
  assert.equal(second.afterPowerLoss, true, 'recovery may have been cut short');
  write(disk, second, []);
  disk.kill();
  assert.equal(open(disk).afterPowerLoss, false);
  disk.kill();
  assert.equal(open(disk, { bootId: 'boot-2' }).afterPowerLoss, true);
  disk.kill();
  assert.equal(open(disk, { bootId: null }).afterPowerLoss, true);
});

test('a failed flush is remembered until it is cleared', () => {
  const disk = new SimDisk({ seed: 1 });
  open(disk).noteFlushFailure();
  disk.kill();
  const second = open(disk);
  assert.equal(second.flushFailed, true);
  second.clearFlushFailure();
  disk.kill();
  assert.equal(open(disk).flushFailed, false);
  open(new SimDisk({ seed: 2 }));
});

test('what deleted partitions left is listed and removed, and nothing else is', () => {
  const disk = new SimDisk({ seed: 1 });
  open(disk);
  const deleted = `orders-0.${'0123456789abcdef'.repeat(2)}-delete`;
  for (const name of [deleted, 'orders-1', 'lost+found', 'x-y-stray'])
    disk.mkdir(`/data/logs/${name}`);
  disk.writeFile(
    '/data/logs/orders-1/partition.metadata',
    new TextEncoder().encode('version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ'),
  );
  disk.kill();
  const directory = open(disk);
  assert.deepEqual(directory.deleted, [deleted]);
  assert.deepEqual([...directory.partitions.keys()], ['orders-1']);
  assert.equal(directory.partitions.get('orders-1')?.topicId, 'AAAAAAAAAAAAAAAAAAAAAQ');
  directory.removeDeleted('orders-1', () => {});
  directory.removeDeleted(deleted, (error) => assert.equal(error, null));
  const names = disk.list('/data/logs') ?? [];
  assert(names.includes('orders-1'));
  assert(!names.includes(deleted));
});

test.run();
