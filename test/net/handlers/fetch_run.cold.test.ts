/** Fetches and look-ups that find what they need not in the page cache. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { WorldConnection } from '../data_path/client.ts';
import {
  batchOf,
  batchOfBytes,
  fetch,
  fetched,
  fetchedOne,
  produce,
  produced,
  valuesIn,
} from '../data_path/requests.ts';
import { ShardWorld } from '../data_path/shard_world.ts';

const test = suite('fetch run: from the disk');

const count = 30;

/** Segments of `c`, of some ten batches each, and `hot`: nothing of them is in the page cache. */
async function coldWorld(): Promise<{ world: ShardWorld; client: WorldConnection }> {
  const topics = [
    ['c', 2, { 'segment.bytes': '1048576' }],
    ['hot', 1],
  ] as const;
  const world = await ShardWorld.start({ topics });
  const client = new WorldConnection(world);
  for (const partition of [0, 1])
    for (let number = 0; number < count; number += 1)
      put(world, 'c', partition, batchOfBytes(100_000));
  put(world, 'hot', 0, batchOf(['before']));
  await world.restart();
  world.disk.pageCache.drop();
  return { world, client };
}

function put(world: ShardWorld, topic: string, partition: number, records: Uint8Array): void {
  const request = produce(world, 9, -1, [{ topic, partition, records }]);
  const sent = new WorldConnection(world).send('Produce', 9, request);
  world.settle();
  assert.equal(produced(sent.response()).errorCode, ErrorCode.NONE);
}

const wanted = (world: ShardWorld, offset: number, partitions = [0], maxWaitMs = 0) =>
  fetch(
    world,
    12,
    partitions.map((partition) => ({ topic: 'c', partition, offset, maxBytes: 250_000 })),
    { maxWaitMs },
  );

/** Ends what is read from the device until nothing more is asked for. */
function endAllFills({ disk: { pageCache } }: ShardWorld): number {
  let rounds = 0;
  for (; pageCache.fills.length > 0; rounds += 1) pageCache.endFills();
  return rounds;
}

test('a fetch waits for what its look-up misses, and others do not wait with it', async () => {
  const { world, client } = await coldWorld();
  const sent = client.send('Fetch', 12, wanted(world, 15));
  assert(!sent.isAnswered);
  assert.equal(world.disk.pageCache.fills.length, 1);
  put(world, 'hot', 0, batchOf(['meanwhile']));
  const other = new WorldConnection(world);
  const tail = other.call(
    'Fetch',
    12,
    fetch(world, 12, [{ topic: 'hot', offset: 2 }], { maxWaitMs: 0 }),
  );
  assert.equal(fetchedOne(tail).highWatermark, 2n);
  assert(!sent.isAnswered);
  assert(endAllFills(world) <= 8);
  const records = fetchedOne(sent.response()).records as Uint8Array;
  assert(valuesIn(records)[0]?.startsWith('15 '));
});

test('what several partitions miss is brought in for one look', async () => {
  const { world, client } = await coldWorld();
  const sent = client.send('Fetch', 12, wanted(world, 15, [0, 1]));
  endAllFills(world);
  const answers = fetched(sent.response());
  assert.deepEqual(
    answers.map(({ partitionIndex }) => partitionIndex),
    [0, 1],
  );
  for (const { records } of answers) assert(valuesIn(records)[0]?.startsWith('15 '));
});

test('the time to wait may be over meanwhile: the answer is there all the same', async () => {
  const { world, client } = await coldWorld();
  const sent = client.send('Fetch', 12, wanted(world, 15, [0], 100));
  world.advance(5_000);
  assert(!sent.isAnswered);
  endAllFills(world);
  assert(valuesIn(fetchedOne(sent.response()).records)[0]?.startsWith('15 '));
});

test('a connection that dies meanwhile leaves nothing behind', async () => {
  const { world, client } = await coldWorld();
  client.send('Fetch', 12, wanted(world, 15, [0, 1]));
  client.die();
  assert.equal(endAllFills(world), 1, 'it went on looking');
  await world.close();
  assert.equal(world.disk.openFiles, 0);
});

test('a topic that is deleted meanwhile is gone when the look is repeated', async () => {
  const { world, client } = await coldWorld();
  const sent = client.send('Fetch', 12, wanted(world, 15));
  await world.deleteTopic('c');
  world.settle();
  endAllFills(world);
  assert.equal(fetchedOne(sent.response()).errorCode, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
});

test('what is pushed out again and again is waited for in the end', async () => {
  const { world, client } = await coldWorld();
  const { pageCache } = world.disk;
  pageCache.isBroken = true;
  const sent = client.send('Fetch', 12, wanted(world, 15));
  assert(endAllFills(world) <= 10);
  assert(valuesIn(fetchedOne(sent.response()).records)[0]?.startsWith('15 '));
});

test('offsets by time are looked up likewise', async () => {
  const { world, client } = await coldWorld();
  const request = {
    replicaId: -1,
    topics: [{ name: 'c', partitions: [{ partitionIndex: 0, timestamp: 1n }] }],
  };
  const sent = client.send('ListOffsets', 7, request);
  assert(!sent.isAnswered);
  for (let round = 0; round < 30 && !sent.isAnswered; round += 1) {
    world.disk.pageCache.endFills();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const found = sent.response().topics[0]?.partitions[0];
  assert.equal(found?.errorCode, ErrorCode.NONE);
  assert.equal(found.offset, 0n);
});

test.run();
