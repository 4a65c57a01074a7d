import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { encodeBatch } from '../../../engine/batch/encode.ts';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { WorldConnection } from '../data_path/client.ts';
import { fetch, fetchedOne, produce } from '../data_path/requests.ts';
import { ShardWorld } from '../data_path/shard_world.ts';
import { startMs } from '../data_path/world_clock.ts';

const test = suite('log retention');
const minute = 60_000;
const hour = 60 * minute;

const settings = ['log.retention.check.interval.ms=60000', 'log.retention.ms=600000'];

/** One batch of a record at a time of the world's, in a segment of its own. */
const oneEach = { 'segment.bytes': '1048576', 'segment.ms': '1', 'file.delete.delay.ms': '5000' };

async function newWorld(
  configs: Record<string, string> = {},
  more: readonly string[] = [],
): Promise<ShardWorld> {
  return ShardWorld.start({
    settings: [...settings, ...more],
    topics: [['t', 1, { ...oneEach, ...configs }]],
  });
}

function put(world: ShardWorld, ms: number = world.clock.ms): void {
  const value = Buffer.alloc(100);
  const records = encodeBatch({ records: [{ timestamp: BigInt(startMs + ms), value }] });
  const client = new WorldConnection(world);
  client.send('Produce', 9, produce(world, 9, -1, [{ topic: 't', records }]));
  world.settle();
}

/** Seconds pass, with the shard's tick at each. */
async function pass(world: ShardWorld, ms: number): Promise<void> {
  for (let gone = 0; gone < ms; gone += 10_000) {
    world.advance(10_000);
    world.retention.tick();
    await rest(world);
  }
}

async function rest(world: ShardWorld): Promise<void> {
  for (let turn = 0; turn < 12; turn += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    world.settle();
  }
}

const deletedFiles = (world: ShardWorld): string[] =>
  (world.disk.list('/data/a/t-0') ?? []).filter((name) => name.endsWith('.deleted'));

const warnings = (world: ShardWorld): string[] =>
  world.lines.filter((line) => line.includes('has not read'));

/** Records at minutes 0 to 4, each in its segment. */
async function withFive(configs = {}, more: readonly string[] = []): Promise<ShardWorld> {
  const world = await newWorld(configs, more);
  for (let number = 0; number < 5; number += 1) {
    put(world);
    await pass(world, minute);
  }
  assert.equal(world.leader('t').log.segmentCount, 5);
  return world;
}

test('segments go as they get too old, the log start is written down, and files are removed later', async () => {
  const world = await withFive();
  const { log } = world.leader('t');
  await pass(world, 4 * minute);
  assert.equal(log.logStartOffset, 0);
  for (let waited = 0; log.logStartOffset === 0; waited += 1) {
    assert(waited < 20);
    world.advance(10_000);
    world.retention.tick();
    await rest(world);
  }
  assert.equal(log.logStartOffset, 1);
  const file = new TextDecoder().decode(world.disk.bytesOf('/data/a/log-start-offset-checkpoint'));
  assert.equal(file, '0\n1\nt 0 1\n');
  assert(deletedFiles(world).length >= 3);
  await pass(world, 10_000);
  assert.deepEqual(deletedFiles(world), []);
  await pass(world, hour);
  assert.equal(log.logStartOffset, 5);
  assert.equal(log.size, 0, 'the one that was written to goes as well, once nothing comes');
  put(world);
  assert.equal(log.logEndOffset, 6);
  assert(world.lines.some((line) => line.includes('retention deletes old records')));
});

test('by size, as soon as a check comes', async () => {
  const world = await withFive({ 'retention.ms': '-1' });
  const { log } = world.leader('t');
  log.updateConfig({ ...log.config, retentionBytes: (log.size / 5) * 2 });
  await pass(world, 2 * minute);
  assert.equal(log.logStartOffset, 3);
});

test('a wall clock that leaps an hour ahead and is put right deletes nothing that is younger', async () => {
  const world = await withFive();
  const { log } = world.leader('t');
  const wallMs = world.clock.wallMs.bind(world.clock);
  world.clock.wallMs = () => wallMs() + hour;
  await pass(world, 2 * minute);
  assert.equal(log.logStartOffset, 0);
  assert(world.lines.some((line) => line.includes('leapt ahead')));
  world.clock.wallMs = wallMs;
  await pass(world, 6 * minute);
  assert.equal(log.logStartOffset, 3);
});

test('a wall clock that is an hour behind for a while keeps records for longer', async () => {
  const world = await withFive();
  const { log } = world.leader('t');
  const wallMs = world.clock.wallMs.bind(world.clock);
  world.clock.wallMs = () => wallMs() - hour;
  await pass(world, 20 * minute);
  assert.equal(log.logStartOffset, 0);
  world.clock.wallMs = wallMs;
  await pass(world, 90 * minute);
  assert.equal(log.logStartOffset, 5);
});

test('a clock that was ahead at the start does not take what is written now', async () => {
  const world = await newWorld();
  put(world, -hour);
  await pass(world, 2 * minute);
  put(world, -hour);
  const { log } = world.leader('t');
  await pass(world, 9 * minute);
  assert(log.logStartOffset < log.logEndOffset);
  await pass(world, 3 * minute);
  assert.equal(log.logStartOffset, log.logEndOffset);
});

test('a fetch that waits below the new log start is told at once', async () => {
  const world = await newWorld();
  put(world);
  const client = new WorldConnection(world);
  const request = fetch(world, 12, [{ topic: 't', offset: 0 }], {
    minBytes: 100_000,
    maxWaitMs: 10 * hour,
  });
  const sent = client.send('Fetch', 12, request);
  assert(!sent.isAnswered);
  await pass(world, 13 * minute);
  assert(sent.isAnswered);
  assert.equal(fetchedOne(sent.response()).errorCode, ErrorCode.OFFSET_OUT_OF_RANGE);
});

test('after a kill nothing that was deleted is read again', async () => {
  const world = await withFive();
  await pass(world, 8 * minute);
  const { logStartOffset } = world.leader('t').log;
  assert(logStartOffset > 0);
  for (const how of ['kill', 'powerCut'] as const) {
    world[how]();
    await world.open();
    world.settle();
    assert.equal(world.leader('t').log.logStartOffset, logStartOffset);
    assert.deepEqual(deletedFiles(world), []);
  }
});

test('a full disk does not keep retention from making room', async () => {
  const world = await withFive();
  world.disk.writeError = 'ENOSPC';
  const { usedBytes } = world.disk;
  await pass(world, 8 * minute);
  assert(world.leader('t').log.logStartOffset > 0);
  assert(world.disk.usedBytes < usedBytes);
  const { logStartOffset } = world.leader('t').log;
  world.powerCut();
  world.disk.writeError = null;
  await world.open();
  world.settle();
  assert.equal(world.leader('t').log.logStartOffset, logStartOffset);
});

test('a group that is behind is warned of before, once for each segment, with numbers', async () => {
  const world = await withFive();
  const bytes = world.leader('t').log.size / 5;
  world.groupsBehind = [{ groupId: 'billing', committedOffset: 1, members: 2 }];
  await pass(world, 4.7 * minute);
  assert.equal(world.leader('t').log.logStartOffset, 0);
  assert.equal(
    warnings(world).length,
    1,
    'offset 0 it has read; of offset 1 people are told in time',
  );
  const [line = ''] = warnings(world);
  const { because, ...numbers } = JSON.parse(line.slice(line.indexOf('{'))) as Record<
    string,
    unknown
  >;
  assert.deepEqual(numbers, {
    group: 'billing',
    members: 2,
    partition: 't-0',
    committedOffset: 1,
    segment: 1,
    records: 1,
    bytes,
  });
  assert.equal(because, 'retention.ms');
  await pass(world, 20 * minute);
  assert.equal(warnings(world).length, 4);
});

test('log.retention.warn.ahead.ms=-1 keeps it quiet', async () => {
  const world = await withFive({}, ['log.retention.warn.ahead.ms=-1']);
  world.groupsBehind = [{ groupId: 'billing', committedOffset: 0, members: 0 }];
  await pass(world, 20 * minute);
  assert.equal(world.leader('t').log.logStartOffset, 5);
  assert.deepEqual(warnings(world), []);
});

test('a topic that is deleted while its records are being deleted is no trouble', async () => {
  const world = await withFive();
  world.advance(hour);
  world.retention.tick();
  await new Promise((resolve) => setImmediate(resolve));
  await world.deleteTopic('t');
  await rest(world);
  await pass(world, minute);
  assert.deepEqual(world.failedDirs, []);
});

test.run();
