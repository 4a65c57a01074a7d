import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { LogDirectories } from '../../net/log_directories.ts';
import { LevelLogger } from '../../net/logger.ts';
import type { LogDirData } from '../../net/shard_messages.ts';
import { MetadataImage } from '../../replication/metadata/image.ts';
import { clusterId, uuids } from '../replication/metadata/fixtures.ts';
import { SimDisk } from '../sim/disk.ts';
import { SeededRandom } from '../sim/seeded_random.ts';
import { configOf } from './data_path/shard_world.ts';

const test = suite('log directories');

const newId = uuids(3);
/** Topic ids that partitions' directories have, by their names. */
const ownIds = new Map<string, string>();

class Bench {
  readonly disk: SimDisk = new SimDisk({ seed: 1 });
  readonly lines: string[] = [];
  readonly image: MetadataImage = new MetadataImage(clusterId);
  boot = 1;
  #nextOffset = 0;

  open(dirs = '/data/a,/data/b'): LogDirectories {
    return LogDirectories.open({
      config: configOf([`log.dirs=${dirs}`]),
      disk: this.disk,
      random: new SeededRandom(this.boot),
      bootId: `boot-${this.boot}`,
      logger: new LevelLogger(
        { format: 'text', level: 'info' },
        (level, message, fields) =>
          this.lines.push(`${level} ${message} ${JSON.stringify(fields)}`),
        () => 0,
      ),
    });
  }

  /** A topic in the metadata. */
  topic(name: string, partitions = 1): string {
    const topicId = newId();
    const created = Array.from({ length: partitions }, (_, partitionId) => ({
      type: 'PartitionRecord' as const,
      partitionId,
      topicId,
      replicas: [1],
      isr: [1],
      removingReplicas: [],
      addingReplicas: [],
      leader: 1,
      leaderRecoveryState: 0,
      leaderEpoch: 0,
      partitionEpoch: 0,
      directories: [],
      eligibleLeaderReplicas: [],
      lastKnownElr: [],
    }));
    const records = [{ type: 'TopicRecord' as const, name, topicId }, ...created];
    const firstOffset = this.#nextOffset;
    const lastOffset = firstOffset + records.length - 1;
    this.#nextOffset = lastOffset + 1;
    this.image.apply({ snapshot: false, epoch: 1, leaderId: 1, firstOffset, lastOffset, records });
    return topicId;
  }

  /** A partition's directory as a log leaves it. */
  partition(path: string, topicId: string): void {
    ownIds.set(path.slice(path.lastIndexOf('/') + 1), topicId);
    this.disk.mkdir(path);
    this.disk.writeFile(
      `${path}/partition.metadata`,
      Buffer.from(`version: 0\ntopic_id: ${topicId}`),
    );
  }

  async written(directories: LogDirectories): Promise<void> {
    const done = directories.written();
    for (let turn = 0; turn < 20; turn += 1) {
      this.disk.endFlushes();
      await new Promise((resolve) => setImmediate(resolve));
    }
    await done;
  }
}

const mark = (topic: string, partition: number, recoveryPoint: number, logStartOffset = 0) => ({
  topic,
  topicId: ownIds.get(`${topic}-${partition}`) ?? '',
  partition,
  recoveryPoint,
  logStartOffset,
  highWatermark: recoveryPoint,
});

function dirData(directories: LogDirectories, path: string): LogDirData {
  const data = directories.data().find((one) => one.path === path);
  assert(data !== undefined);
  return data;
}

test('all directories are of one cluster and have ids of their own', () => {
  const bench = new Bench();
  const directories = bench.open('/data/a,/data/b,/data/c');
  assert.equal(new Set(directories.directoryIds).size, 3);
  const { clusterId: first } = directories;
  directories.close();
  assert.equal(bench.open('/data/a,/data/b,/data/c').clusterId, first);
});

test('a second broker on any of the directories is told who is there', () => {
  const bench = new Bench();
  bench.open();
  assert.throws(() => bench.open('/data/c,/data/b'), /\/data\/b is in use/);
  assert.equal(bench.open('/data/c').directoryIds.length, 1, 'and leaves nothing locked');
});

test('what threads report is on the disk after `written`, and comes back with the next start', async () => {
  const bench = new Bench();
  const directories = bench.open();
  for (const path of ['/data/a/t-0', '/data/b/t-1']) bench.partition(path, newId());
  directories.report([
    { path: '/data/a', partitions: [mark('t', 0, 10, 3)] },
    { path: '/data/b', partitions: [mark('t', 1, 20)] },
  ]);
  directories.report([{ path: '/data/a', partitions: [mark('t', 0, 11, 4)] }]);
  await bench.written(directories);
  bench.disk.crash();
  const again = bench.open();
  const found = dirData(again, '/data/a').partitions.get('t-0');
  assert.deepEqual(
    [found?.recoveryPoint, found?.logStartOffset, found?.highWatermark],
    [11, 4, 11],
  );
  assert.equal(dirData(again, '/data/b').partitions.get('t-1')?.recoveryPoint, 20);
});

test('a partition that no thread has opened yet keeps its line: its log is not read from the start next time', async () => {
  const bench = new Bench();
  const directories = bench.open();
  for (const name of ['t-0', 't-1']) bench.partition(`/data/a/${name}`, newId());
  directories.report([{ path: '/data/a', partitions: [mark('t', 0, 10), mark('t', 1, 20, 5)] }]);
  await bench.written(directories);
  bench.disk.kill();
  const second = bench.open();
  second.report([{ path: '/data/a', partitions: [mark('t', 0, 12)] }]);
  await bench.written(second);
  bench.disk.kill();
  const third = dirData(bench.open(), '/data/a').partitions;
  assert.deepEqual([third.get('t-0')?.recoveryPoint, third.get('t-1')?.recoveryPoint], [12, 20]);
  assert.equal(third.get('t-1')?.logStartOffset, 5);
});

test('a deleted partition loses its line and its files', async () => {
  const bench = new Bench();
  const directories = bench.open();
  bench.partition('/data/a/t-0.0123456789abcdef0123456789abcdef-delete', newId());
  directories.report([{ path: '/data/a', partitions: [mark('t', 0, 10), mark('u', 0, 1)] }]);
  const renamed = '/data/a/t-0.0123456789abcdef0123456789abcdef-delete';
  directories.removePartition({
    path: '/data/a',
    topic: 't',
    topicId: mark('t', 0, 0).topicId,
    partition: 0,
    renamed,
  });
  await bench.written(directories);
  assert.equal(bench.disk.status(renamed), null);
  const text = Buffer.from(
    bench.disk.bytesOf('/data/a/recovery-point-offset-checkpoint'),
  ).toString();
  assert.equal(text, '0\n1\nu 0 1\n');
});

test('tidy: leftovers of deleted partitions go, what belongs to no topic is set aside, the rest stays', async () => {
  const bench = new Bench();
  bench.open().close();
  const known = bench.topic('known', 2);
  bench.partition('/data/a/known-0', known);
  bench.partition('/data/b/known-1', known);
  bench.partition('/data/a/known-2', known);
  bench.partition(`/data/b/${'u'.repeat(247)}-0`, newId());
  bench.partition('/data/a/known-1', newId());
  bench.partition('/data/a/old-0.0123456789abcdef0123456789abcdef-delete', newId());
  const directories = bench.open();
  directories.tidy(bench.image);
  const names = (path: string): string[] =>
    (bench.disk.list(path) ?? []).filter((name) => name.includes('-0') || /-[12]/.test(name));
  assert.deepEqual(
    names('/data/a').filter((name) => !name.includes('stray')),
    ['known-0'],
  );
  assert.deepEqual(
    names('/data/b').filter((name) => !name.includes('stray')),
    ['known-1'],
  );
  const strays = [...names('/data/a'), ...names('/data/b')].filter((name) =>
    name.endsWith('-stray'),
  );
  assert.equal(strays.length, 3, strays.join(' '));
  for (const name of strays) assert(name.length <= 255, `no file system takes ${name}`);
  assert.deepEqual([...dirData(directories, '/data/a').partitions.keys()], ['known-0']);
  assert.equal(bench.lines.filter((line) => line.includes('set aside')).length, 3);
  directories.report([{ path: '/data/a', partitions: [mark('known', 0, 1)] }]);
  await bench.written(directories);
  const text = Buffer.from(
    bench.disk.bytesOf('/data/a/recovery-point-offset-checkpoint'),
  ).toString();
  assert.equal(
    text,
    '0\n1\nknown 0 1\n',
    'a topic made later must not inherit the line of a stray',
  );
});

test('clean only when all are, and only once', () => {
  const bench = new Bench();
  const directories = bench.open();
  assert(!directories.cleanShutdown);
  directories.markClean(77);
  directories.close();
  const second = bench.open();
  assert(second.cleanShutdown);
  assert.equal(second.metadata.cleanBrokerEpoch, 77);
  second.close();
  assert(!bench.open().cleanShutdown, 'the mark is gone as soon as the directory is open');
});

test('a new directory beside old ones: the whole was not closed clean, each one for itself may have been', () => {
  const bench = new Bench();
  const directories = bench.open('/data/a');
  directories.markClean(1);
  directories.close();
  const second = bench.open('/data/a,/data/b');
  assert(!second.cleanShutdown);
  assert.equal(dirData(second, '/data/a').cleanShutdown, true);
  assert.equal(dirData(second, '/data/b').cleanShutdown, false);
});

test('checkpoints that cannot be written are a warning, and written later', async () => {
  const bench = new Bench();
  const directories = bench.open();
  bench.partition('/data/a/t-0', newId());
  bench.disk.writeError = 'ENOSPC';
  directories.report([{ path: '/data/a', partitions: [mark('t', 0, 10)] }]);
  await bench.written(directories);
  assert.match(bench.lines.join('\n'), /warn checkpoints could not be written/);
  bench.disk.writeError = null;
  directories.report([{ path: '/data/a', partitions: [mark('t', 0, 11)] }]);
  await bench.written(directories);
  bench.disk.kill();
  assert.equal(dirData(bench.open(), '/data/a').partitions.get('t-0')?.recoveryPoint, 11);
});

test('what the checkpoints say already is not written again, but once in each run and after a failure', async () => {
  const bench = new Bench();
  const topicId = bench.topic('t', 2);
  let directories = bench.open();
  for (const partition of [0, 1]) bench.partition(`/data/a/t-${partition}`, topicId);
  let written = 0;
  const { writeFile } = bench.disk;
  bench.disk.writeFile = (...file) => {
    if (file[0].includes('checkpoint')) written += 1;
    writeFile.apply(bench.disk, file);
  };
  const filesFor = async (...marks: ReturnType<typeof mark>[]): Promise<number> => {
    written = 0;
    directories.report([{ path: '/data/a', partitions: marks }]);
    await bench.written(directories);
    return written;
  };
  const all = [mark('t', 0, 10), mark('t', 1, 20)] as const;
  assert((await filesFor(...all)) > 0);
  assert.equal(await filesFor(...all), 0);
  assert((await filesFor(all[0], mark('t', 1, 21))) > 0);
  assert.equal(await filesFor(all[0], mark('t', 1, 21)), 0);
  directories.close();
  directories = bench.open();
  assert((await filesFor(all[0], mark('t', 1, 21))) > 0, 'this run has not written them');
  bench.disk.writeError = 'ENOSPC';
  await filesFor(all[0], mark('t', 1, 22));
  bench.disk.writeError = null;
  assert((await filesFor(all[0], mark('t', 1, 22))) > 0, 'they are not on the disk');
});

test('after a failed flush the next start reads that directory from the device', () => {
  const bench = new Bench();
  const directories = bench.open();
  directories.noteFlushFailure('/data/b');
  bench.disk.kill();
  const again = bench.open();
  assert.deepEqual(
    again.data().map(({ path, dropCache }) => [path, dropCache]),
    [
      ['/data/a', false],
      ['/data/b', true],
    ],
  );
});

test('another run of the machine counts as a power loss', async () => {
  const bench = new Bench();
  const losses = (directories: LogDirectories): boolean[] =>
    directories.data().map(({ afterPowerLoss }) => afterPowerLoss);
  const first = bench.open();
  first.report(['/data/a', '/data/b'].map((path) => ({ path, partitions: [] })));
  await bench.written(first);
  bench.disk.kill();
  assert.deepEqual(losses(bench.open()), [false, false]);
  bench.disk.crash();
  bench.boot += 1;
  assert.deepEqual(losses(bench.open()), [true, true]);
});

test('log starts are told of once they are on stable storage, whatever else is written meanwhile', async () => {
  const bench = new Bench();
  const directories = bench.open('/data/a');
  const told: string[] = [];
  const store = (partition: number, logStartOffset: number): void =>
    directories.storeLogStarts(
      '/data/a',
      [{ topic: 't', topicId: 'id', partition, logStartOffset }],
      (error) => told.push(`${partition} ${logStartOffset} ${error?.code ?? 'stored'}`),
    );
  const file = (): string =>
    new TextDecoder().decode(bench.disk.bytesOf('/data/a/log-start-offset-checkpoint'));
  store(0, 4);
  store(1, 5);
  const one = { ...mark('t', 0, 9), topicId: 'id' };
  directories.report([{ path: '/data/a', partitions: [{ ...one, logStartOffset: 0 }] }]);
  assert.deepEqual(told, []);
  await bench.written(directories);
  assert.deepEqual(told, ['0 4 stored', '1 5 stored']);
  assert.equal(file(), '0\n2\nt 0 4\nt 1 5\n');
  bench.disk.writeError = 'ENOSPC';
  store(0, 7);
  await bench.written(directories);
  bench.disk.writeError = null;
  directories.report([{ path: '/data/a', partitions: [{ ...one, logStartOffset: 4 }] }]);
  await bench.written(directories);
  assert.equal(told[2], '0 7 ENOSPC');
  assert.equal(file(), '0\n2\nt 0 4\nt 1 5\n');
});

test('a log start of a partition that goes away meanwhile leaves nothing behind', async () => {
  const bench = new Bench();
  const directories = bench.open('/data/a');
  const start = { topic: 't', topicId: 'id', partition: 0, logStartOffset: 4 };
  directories.storeLogStarts('/data/a', [start], () => {});
  const renamed = '/data/a/t-0.00000000000000000000000000000000-delete';
  bench.disk.mkdir(renamed);
  directories.removePartition({
    path: '/data/a',
    topic: 't',
    topicId: 'id',
    partition: 0,
    renamed,
  });
  directories.report([{ path: '/data/a', partitions: [] }]);
  await bench.written(directories);
  const file = bench.disk.bytesOf('/data/a/log-start-offset-checkpoint');
  assert.equal(new TextDecoder().decode(file), '0\n0\n');
});

test.run();
