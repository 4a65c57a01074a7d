import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { WorldConnection } from '../data_path/client.ts';
import { batchOf, fetch, fetchedOne, produce } from '../data_path/requests.ts';
import { ShardWorld } from '../data_path/shard_world.ts';

const test = suite('21 delete records');

type Answer = readonly [errorCode: number, lowWatermark: bigint];

async function withRecords(
  count: number,
  configs: Record<string, string> = {},
): Promise<ShardWorld> {
  const world = await ShardWorld.start({ topics: [['t', 1, configs]] });
  const records = batchOf(Array.from({ length: count }, (_, at) => `v${at}`));
  new WorldConnection(world).send('Produce', 9, produce(world, 9, -1, [{ topic: 't', records }]));
  world.settle();
  return world;
}

async function ask(
  world: ShardWorld,
  offset: number | bigint,
  { version = 2, topic = 't', partitionIndex = 0 } = {},
): Promise<Answer> {
  const response = await new WorldConnection(world).callLater('DeleteRecords', version, {
    topics: [{ name: topic, partitions: [{ partitionIndex, offset: BigInt(offset) }] }],
    timeoutMs: 1_000,
  });
  const one = response.topics[0]?.partitions[0];
  assert(one !== undefined);
  return [one.errorCode, one.lowWatermark];
}

for (const version of [0, 1, 2])
  test(`v${version}: the log begins there, and nothing below is read`, async () => {
    const world = await withRecords(5);
    assert.deepEqual(await ask(world, 3, { version }), [ErrorCode.NONE, 3n]);
    const client = new WorldConnection(world);
    const read = (offset: number) =>
      fetchedOne(client.call('Fetch', 12, fetch(world, 12, [{ topic: 't', offset }])));
    assert.equal(read(2).errorCode, ErrorCode.OFFSET_OUT_OF_RANGE);
    const { errorCode, logStartOffset, highWatermark } = read(3);
    assert.deepEqual([errorCode, logStartOffset, highWatermark], [ErrorCode.NONE, 3n, 5n]);
    const offsets = client.call('ListOffsets', 7, {
      replicaId: -1,
      isolationLevel: 0,
      topics: [
        { name: 't', partitions: [{ partitionIndex: 0, timestamp: -2n, currentLeaderEpoch: -1 }] },
      ],
    });
    assert.equal(offsets.topics[0]?.partitions[0]?.offset, 3n);
  });

test('−1 stands for the high watermark', async () => {
  const world = await withRecords(5);
  assert.deepEqual(await ask(world, -1), [ErrorCode.NONE, 5n]);
});

test('what is deleted already is no error: the answer is where the log begins', async () => {
  const world = await withRecords(5);
  await ask(world, 4);
  assert.deepEqual(await ask(world, 2), [ErrorCode.NONE, 4n]);
  assert.deepEqual(await ask(world, 0), [ErrorCode.NONE, 4n]);
});

test('past the high watermark or below −1: OFFSET_OUT_OF_RANGE', async () => {
  const world = await withRecords(5);
  for (const offset of [6n, -2n, 1n << 60n])
    assert.deepEqual(await ask(world, offset), [ErrorCode.OFFSET_OUT_OF_RANGE, -1n]);
});

test('a compacted topic refuses, one that deletes too does not', async () => {
  const compacted = await withRecords(5, { 'cleanup.policy': 'compact' });
  assert.deepEqual(await ask(compacted, 2), [ErrorCode.POLICY_VIOLATION, -1n]);
  const both = await withRecords(5, { 'cleanup.policy': 'compact,delete' });
  assert.deepEqual(await ask(both, 2), [ErrorCode.NONE, 2n]);
});

test('no such topic or partition, and a topic of the broker itself', async () => {
  const world = await withRecords(1);
  assert.deepEqual(await ask(world, 0, { topic: 'nobody' }), [
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    -1n,
  ]);
  assert.deepEqual(await ask(world, 0, { partitionIndex: 7 }), [
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    -1n,
  ]);
  assert.deepEqual(await ask(world, 0, { topic: '__consumer_offsets' }), [
    ErrorCode.INVALID_TOPIC_EXCEPTION,
    -1n,
  ]);
});

test('the answer comes when it is on stable storage: a power cut takes nothing back', async () => {
  const world = await withRecords(5);
  const sent = new WorldConnection(world).send('DeleteRecords', 2, {
    topics: [{ name: 't', partitions: [{ partitionIndex: 0, offset: 3n }] }],
    timeoutMs: 1_000,
  });
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  assert(!sent.isAnswered, 'nothing is flushed yet');
  assert.equal(world.leader('t').log.logStartOffset, 0);
  while (!sent.isAnswered) {
    world.endFlushes();
    await new Promise((resolve) => setImmediate(resolve));
  }
  world.powerCut();
  await world.open();
  world.settle();
  assert.equal(world.leader('t').log.logStartOffset, 3);
});

test('a disk that stalls is not waited for longer than the client says', async () => {
  const world = await withRecords(5);
  const sent = new WorldConnection(world).send('DeleteRecords', 2, {
    topics: [{ name: 't', partitions: [{ partitionIndex: 0, offset: 3n }] }],
    timeoutMs: 1_000,
  });
  await new Promise((resolve) => setImmediate(resolve));
  world.advance(1_001);
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(
    sent.response().topics[0]?.partitions[0]?.errorCode,
    ErrorCode.REQUEST_TIMED_OUT,
  );
});

test('a full disk is an error, and the log begins where it did', async () => {
  const world = await withRecords(5);
  world.disk.writeError = 'ENOSPC';
  assert.deepEqual(await ask(world, 3), [ErrorCode.KAFKA_STORAGE_ERROR, -1n]);
  assert.equal(world.leader('t').log.logStartOffset, 0);
  world.disk.writeError = null;
  assert.deepEqual(await ask(world, 2), [ErrorCode.NONE, 2n]);
  world.powerCut();
  await world.open();
  world.settle();
  assert.equal(world.leader('t').log.logStartOffset, 2);
});

test.run();
