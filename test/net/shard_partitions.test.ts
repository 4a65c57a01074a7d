import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { DiskError } from '../../engine/ports.ts';
import type { LogDirCheckpoint } from '../../net/shard_messages.ts';
import { WorldConnection } from './data_path/client.ts';
import { batchOf, produce, produced } from './data_path/requests.ts';
import { ShardWorld, type WorldOptions } from './data_path/shard_world.ts';

const test = suite('shard partitions');

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

function removeDeleted(world: ShardWorld): void {
  for (const { renamed } of world.deleted)
    world.disk.removeTree(renamed, (error) => assert.equal(error, null));
}

function assertHealthy(world: ShardWorld): void {
  assert.deepEqual([world.failedDirs, world.allFailed], [[], []]);
  assert.deepEqual(
    world.lines.filter((line) => line.startsWith('error')),
    [],
  );
}

test('a deleted topic is gone from the table, its directory renamed and reported', async () => {
  const world = await newWorld({ topics: [['t', 2]] });
  const code = append(world, 't', 0, -1);
  await world.deleteTopic('t');
  assert.equal(code(), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
  assert.equal(world.partitions.table.size, 0);
  assert.deepEqual(
    world.deleted.map(({ topic, partition, path }) => [topic, partition, path]),
    [
      ['t', 0, '/data/a'],
      ['t', 1, '/data/a'],
    ],
  );
  for (const { renamed } of world.deleted) assert(world.disk.status(renamed)?.isDirectory, renamed);
  assertHealthy(world);
});

test('a topic made again under an old name starts empty, whatever the checkpoints say of the old one', async () => {
  const world = await newWorld({ topics: [['t', 1]] });
  for (let count = 0; count < 3; count += 1) append(world, 't');
  world.settle();
  await world.deleteTopic('t');
  await world.createTopic('t');
  const { log } = world.leader('t');
  assert.deepEqual([log.logEndOffset, log.recoveryPoint, log.flushedOffset], [0, 0, 0]);
  assert.equal(log.topicId, world.idOf('t'));
});

test('a topic is deleted whose flush waits behind another one', async () => {
  const world = await newWorld({
    topics: [
      ['other', 1],
      ['t', 1],
    ],
  });
  const openFiles = world.disk.openFiles;
  append(world, 'other');
  world.endTurn();
  append(world, 't');
  world.endTurn();
  await world.deleteTopic('t');
  removeDeleted(world);
  world.settle();
  assertHealthy(world);
  assert(world.disk.openFiles < openFiles, 'its files are closed');
  const code = append(world, 'other', 0, -1);
  world.settle();
  assert.equal(code(), ErrorCode.NONE);
});

for (const isRemoved of [false, true])
  test(`a topic is deleted while its first flush is under way${isRemoved ? ', and removed at once' : ''}`, async () => {
    const world = await newWorld({ topics: [['other', 1]] });
    const openFiles = world.disk.openFiles;
    await world.createTopic('t', 2);
    append(world, 't');
    append(world, 't', 1);
    append(world, 'other');
    world.endTurn();
    await world.deleteTopic('t');
    if (isRemoved) removeDeleted(world);
    world.settle();
    assertHealthy(world);
    assert.equal(world.disk.openFiles, openFiles);
    const code = append(world, 'other', 0, -1);
    world.settle();
    assert.equal(code(), ErrorCode.NONE);
  });

/** A checkpoint that is stopped after a number of ended flushes, for something to happen in between. */
for (const steps of [0, 1, 2])
  test(`a topic is deleted after step ${steps} of a checkpoint`, async () => {
    const topics = Array.from({ length: 40 }, (_, at) => [`t${at}`, 1] as const);
    const world = await newWorld({ topics });
    for (const [topic] of topics) append(world, topic);
    world.settle();
    const done: LogDirCheckpoint[] = [];
    world.partitions.checkpoint((dir) => done.push(dir));
    for (let step = 0; step < steps; step += 1) {
      world.endTurn();
      if (step > 0) world.endFlushes();
    }
    await world.deleteTopic('t0');
    await world.deleteTopic('t39');
    removeDeleted(world);
    world.settle();
    assertHealthy(world);
    assert.equal(done.length, 1);
    assert.deepEqual([done[0]?.partitions.length, done[0]?.partitions[0]?.recoveryPoint], [38, 1]);
  });

test('a checkpoint names what is flushed, and nothing else', async () => {
  const world = await newWorld({ topics: [['t', 1]] });
  append(world, 't');
  world.settle();
  append(world, 't');
  world.endTurn();
  const done: LogDirCheckpoint[] = [];
  world.partitions.checkpoint((dir) => done.push(dir));
  world.settle();
  const [one] = done[0]?.partitions ?? [];
  assert.deepEqual([one?.topic, one?.partition, one?.recoveryPoint], ['t', 0, 1]);
});

test('a full disk puts a checkpoint off and harms nothing', async () => {
  const world = await newWorld({ topics: [['t', 1]] });
  append(world, 't');
  world.settle();
  world.disk.writeError = 'ENOSPC';
  const done: LogDirCheckpoint[] = [];
  world.partitions.checkpoint((dir) => done.push(dir));
  world.settle();
  assert.equal(done.length, 0);
  assertHealthy(world);
  world.disk.writeError = null;
  world.partitions.checkpoint((dir) => done.push(dir));
  world.settle();
  assert.equal(done[0]?.partitions[0]?.recoveryPoint, 1);
});

test('closed while a checkpoint and a flush are under way', async () => {
  const world = await newWorld({
    topics: [
      ['t', 1],
      ['u', 1],
    ],
  });
  append(world, 't');
  world.settle();
  const openFiles = world.disk.openFiles;
  assert(openFiles > 0);
  append(world, 'u');
  world.endTurn();
  world.partitions.checkpoint(() => {});
  append(world, 't');
  const { clean, dirs } = await world.close();
  assert(clean);
  assert.deepEqual(
    dirs[0]?.partitions.map(({ recoveryPoint }) => recoveryPoint),
    [2, 1],
  );
  assert.equal(world.disk.openFiles, 0);
});

test('producers are forgotten after producer.id.expiration.ms without a batch, by the broker’s clock', async () => {
  const world = await newWorld({
    settings: ['producer.id.expiration.ms=60000', 'producer.id.expiration.check.interval.ms=1000'],
    topics: [['t', 1]],
  });
  const client = new WorldConnection(world);
  // The records say that they are from 1970.
  const records = batchOf([], {
    records: [{ timestamp: 1n, value: Buffer.from('v') }],
    producerId: 4,
    producerEpoch: 0,
    baseSequence: 0,
  });
  client.send('Produce', 9, produce(world, 9, -1, [{ topic: 't', records }]));
  world.settle();
  const { producers } = world.leader('t').log;
  world.advance(59_000);
  world.partitions.tick();
  assert.equal(producers.size, 1);
  world.advance(1_000);
  world.partitions.tick();
  assert.equal(producers.size, 0);
});

test('a partition that found no room is opened when there is some, and forgotten when it is deleted before', async () => {
  const world = await newWorld({ topics: [['t', 1]] });
  world.disk.capacityBytes = 0;
  await world.createTopic('late');
  await world.createTopic('never');
  assert.equal(world.partitions.table.byName('late', 0), undefined);
  world.partitions.tick();
  await world.deleteTopic('never');
  world.disk.capacityBytes = Number.POSITIVE_INFINITY;
  world.partitions.tick();
  assert.equal(world.leader('late').log.logEndOffset, 0);
  assert.equal(world.partitions.table.size, 2);
});

test('os: flush.ms flushes in the end, without anybody waiting for it', async () => {
  const world = await newWorld({
    settings: ['log.durability=os'],
    topics: [['t', 1, { 'flush.ms': '5000' }]],
  });
  const code = append(world, 't', 0, -1);
  world.endTurn();
  assert.equal(code(), ErrorCode.NONE);
  const flushes = (): number => world.disk.calls.get('flush') ?? 0;
  const before = flushes();
  world.advance(4_999);
  world.partitions.tick();
  world.settle();
  assert.equal(flushes(), before);
  world.advance(1);
  world.partitions.tick();
  world.settle();
  assert(flushes() > before);
  assert.equal(world.leader('t').log.flushedOffset, 1);
});

test.run();
