import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { DiskError } from '../../engine/ports.ts';
import { WorldConnection } from './data_path/client.ts';
import { batchOf, produce, produced } from './data_path/requests.ts';
import { ShardWorld, type WorldOptions } from './data_path/shard_world.ts';

const test = suite('shard partitions over several directories');

async function newWorld(options: WorldOptions = {}): Promise<ShardWorld> {
  const world = await ShardWorld.start(options);
  world.settle();
  // As on a real disk, where a directory is opened only when its flush gets its turn.
  const { disk } = world;
  const flushDirectory = disk.flushDirectory.bind(disk);
  disk.flushDirectory = (path, done) =>
    flushDirectory(path, (error) =>
      done(
        disk.status(path) === null ? new DiskError('ENOENT', `no such directory: ${path}`) : error,
      ),
    );
  return world;
}

const twoDirs: readonly string[] = ['/data/a', '/data/b'];

/** The log directory of a partition. */
function dirOf(world: ShardWorld, topic: string, partition = 0): string {
  return world.leader(topic, partition).log.dir.slice(0, '/data/a'.length);
}

/** Appends without waiting for anything. */
function append(world: ShardWorld, topic: string, partition = 0, acks = 1): () => number {
  const client = new WorldConnection(world);
  const sent = client.send(
    'Produce',
    9,
    produce(world, 9, acks, [{ topic, partition, records: batchOf(['v']) }]),
  );
  return () => produced(sent.response()).errorCode;
}

test('a new partition goes to the directory with the fewest logs', async () => {
  const world = await newWorld({ logDirs: twoDirs });
  await world.createTopic('one', 3);
  await world.createTopic('two', 3);
  const dirs = ['one', 'two'].flatMap((topic) =>
    [0, 1, 2].map((partition) => dirOf(world, topic, partition)),
  );
  assert.equal(dirs.filter((dir) => dir === '/data/a').length, 3);
});

test('after a restart a partition is opened where it lies', async () => {
  const world = await newWorld({ logDirs: twoDirs, topics: [['t', 4]] });
  const places = [0, 1, 2, 3].map((partition) => dirOf(world, 't', partition));
  append(world, 't', 2);
  world.settle();
  world.kill();
  await world.open();
  assert.deepEqual(
    [0, 1, 2, 3].map((partition) => dirOf(world, 't', partition)),
    places,
  );
  assert.equal(world.leader('t', 2).log.logEndOffset, 1);
});

for (const failed of twoDirs)
  test(`${failed} fails: its partitions refuse, the others serve, new ones go to the other directory`, async () => {
    const world = await newWorld({ logDirs: twoDirs, topics: [['t', 4]] });
    const bad = [0, 1, 2, 3].filter((partition) => dirOf(world, 't', partition) === failed);
    assert.equal(bad.length, 2);
    append(world, 't', bad[0]);
    world.endTurn();
    world.disk.failingFlushes = 1;
    world.settle();
    assert.deepEqual([world.failedDirs, world.allFailed], [[failed], []]);
    for (const partition of [0, 1, 2, 3]) {
      const code = append(world, 't', partition, -1);
      world.settle();
      assert.equal(
        code(),
        bad.includes(partition) ? ErrorCode.KAFKA_STORAGE_ERROR : ErrorCode.NONE,
      );
    }
    await world.createTopic('new', 4);
    for (const partition of [0, 1, 2, 3]) assert.notEqual(dirOf(world, 'new', partition), failed);
    const { clean, dirs } = await world.close();
    assert(!clean);
    assert.deepEqual(
      dirs.map(({ path }) => path),
      twoDirs.filter((path) => path !== failed),
    );
  });

test('the last directory fails: the shard says why it cannot go on', async () => {
  const world = await newWorld({ topics: [['t', 1]] });
  append(world, 't');
  world.endTurn();
  world.disk.failingFlushes = 1;
  world.settle();
  assert.match(world.allFailed[0] ?? '', /every log directory is offline.*injected/);
});

test('closed in order: all that was appended is flushed and named, and the next start finds it', async () => {
  const world = await newWorld({ logDirs: twoDirs, topics: [['t', 2]] });
  const codes = [0, 1].map((partition) => append(world, 't', partition, -1));
  const { clean, dirs } = await world.close();
  assert(clean);
  assert.deepEqual(
    codes.map((code) => code()),
    [0, 0],
    'what was on its way is answered',
  );
  const points = dirs.flatMap(({ partitions }) =>
    partitions.map(({ recoveryPoint }) => recoveryPoint),
  );
  assert.deepEqual(points, [1, 1]);
  world.powerCut();
  await world.open();
  assert.deepEqual(
    [0, 1].map((partition) => world.leader('t', partition).log.logEndOffset),
    [1, 1],
  );
});

test('a directory inside of another one: each has its own partitions', async () => {
  const world = await newWorld({ logDirs: ['/data/a', '/data/a/inner'], topics: [['t', 2]] });
  const places = [0, 1].map((partition) => world.leader('t', partition).log.dir);
  assert.deepEqual(places, ['/data/a/t-0', '/data/a/inner/t-1']);
  append(world, 't', 0);
  world.endTurn();
  world.disk.failingFlushes = 1;
  world.settle();
  assert.deepEqual(world.failedDirs, ['/data/a']);
  const code = append(world, 't', 1, -1);
  world.settle();
  assert.equal(code(), ErrorCode.NONE, 'the inner one has not failed');
  await world.deleteTopic('t');
  world.settle();
  assert.equal(world.deleted.at(-1)?.path, '/data/a/inner');
});

test('a partition that cannot be opened takes its directory offline, and no other', async () => {
  const world = await newWorld({ logDirs: twoDirs, topics: [['t', 1]] });
  const { disk } = world;
  const mkdir = disk.mkdir.bind(disk);
  disk.mkdir = (path) => {
    if (path.startsWith('/data/b/')) throw new DiskError('EIO', 'injected');
    return mkdir(path);
  };
  await world.createTopic('new');
  assert.deepEqual([world.failedDirs, world.allFailed], [['/data/b'], []]);
  const code = append(world, 't', 0, -1);
  await world.createTopic('next');
  assert.equal(dirOf(world, 'next'), '/data/a');
  world.settle();
  assert.equal(code(), ErrorCode.NONE);
});

test('a partition that is opened late in a directory that has failed meanwhile refuses', async () => {
  const world = await newWorld({ logDirs: twoDirs, topics: [['t', 2]] });
  world.kill();
  const { disk } = world;
  const list = disk.list.bind(disk);
  // One of the partitions finds no descriptor at the start.
  disk.list = (path) => {
    if (path === '/data/b/t-1') throw new DiskError('EMFILE', 'injected');
    return list(path);
  };
  await world.open();
  assert.equal(world.partitions.table.byName('t', 1), undefined);
  disk.list = list;
  await world.createTopic('u');
  await world.createTopic('v');
  const topic = ['u', 'v'].find((name) => dirOf(world, name) === '/data/b');
  assert(topic !== undefined);
  append(world, topic);
  world.endTurn();
  disk.failingFlushes = 1;
  world.settle();
  assert.deepEqual(world.failedDirs, ['/data/b']);
  world.partitions.tick();
  assert.equal(dirOf(world, 't', 1), '/data/b');
  assert.equal(world.leader('t', 1).refusal, ErrorCode.KAFKA_STORAGE_ERROR);
});

test('a directory that cannot be renamed at a deletion goes offline, and the topic is gone all the same', async () => {
  const world = await newWorld({ logDirs: twoDirs, topics: [['t', 2]] });
  const { disk } = world;
  const openFiles = disk.openFiles;
  const rename = disk.rename.bind(disk);
  disk.rename = (from, to) => {
    if (from === '/data/b/t-1') throw new DiskError('EIO', 'injected');
    rename(from, to);
  };
  await world.deleteTopic('t');
  assert.deepEqual([world.failedDirs, world.allFailed], [['/data/b'], []]);
  assert.equal(world.partitions.table.size, 0);
  assert.deepEqual(
    world.deleted.map(({ partition }) => partition),
    [0],
  );
  assert(disk.openFiles < openFiles);
});

test('a partition that was never opened is deleted: a topic of its name does not inherit its offsets', async () => {
  const world = await newWorld({ topics: [['t', 1]] });
  append(world, 't');
  world.settle();
  world.kill();
  const { disk } = world;
  disk.writeFile('/data/a/log-start-offset-checkpoint', Buffer.from('0\n1\nt 0 1\n'));
  const list = disk.list.bind(disk);
  disk.list = (path) => {
    if (path === '/data/a/t-0') throw new DiskError('EMFILE', 'injected');
    return list(path);
  };
  await world.open();
  await world.deleteTopic('t');
  disk.list = list;
  await world.createTopic('t');
  const { log } = world.leader('t');
  assert.deepEqual([log.logStartOffset, log.logEndOffset, log.topicId], [0, 0, world.idOf('t')]);
});

test.run();
