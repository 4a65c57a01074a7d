import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type { DescribeLogDirsResponse } from '../../../net/protocol/messages.gen.ts';
import { WorldConnection } from '../data_path/client.ts';
import { batchOfBytes, produce } from '../data_path/requests.ts';
import { ShardWorld } from '../data_path/shard_world.ts';

const test = suite('35 describe log dirs');

function ask(
  world: ShardWorld,
  topics: { topic: string; partitions: number[] }[] | null = null,
): Promise<DescribeLogDirsResponse> {
  return new WorldConnection(world).callLater('DescribeLogDirs', 5, { topics });
}

/** Sizes by partition, over all directories. */
function sizes({ results }: DescribeLogDirsResponse): Record<string, number> {
  const found: Record<string, number> = {};
  for (const { topics } of results)
    for (const { name, partitions } of topics)
      for (const { partitionIndex, partitionSize, offsetLag, isFutureKey } of partitions) {
        assert.deepEqual([offsetLag, isFutureKey], [0n, false]);
        found[`${name}-${partitionIndex}`] = Number(partitionSize);
      }
  return found;
}

async function filledWorld(logDirs?: string[]): Promise<ShardWorld> {
  const topics = [
    ['a', 2],
    ['b', 1],
  ] as const;
  const world = await ShardWorld.start(logDirs === undefined ? { topics } : { topics, logDirs });
  const parts = [{ topic: 'a', partition: 1, records: batchOfBytes(300) }];
  new WorldConnection(world).send('Produce', 9, produce(world, 9, -1, parts));
  world.settle();
  return world;
}

test('every partition with the bytes of its log', async () => {
  const answer = await ask(await filledWorld());
  assert.deepEqual(sizes(answer), { 'a-0': 0, 'a-1': 300, 'b-0': 0 });
  assert.equal(answer.errorCode, ErrorCode.NONE);
});

test('only the partitions asked for; a topic that is not there is no error', async () => {
  const world = await filledWorld();
  const asked = [
    { topic: 'a', partitions: [1, 7] },
    { topic: 'nobody', partitions: [0] },
  ];
  assert.deepEqual(sizes(await ask(world, asked)), { 'a-1': 300 });
  const none = await ask(world, []);
  assert.deepEqual([none.results.length, sizes(none)], [1, {}]);
});

test('every directory is told, and one that failed with an error and nothing else', async () => {
  const world = await filledWorld(['/data/a', '/data/b']);
  const before = await ask(world);
  assert.deepEqual(
    before.results.map(({ logDir, errorCode }) => [logDir, errorCode]),
    [
      ['/data/a', ErrorCode.NONE],
      ['/data/b', ErrorCode.NONE],
    ],
  );
  assert.equal(Object.keys(sizes(before)).length, 3);
  world.partitions.failDirectory('/data/b', 'test');
  const { results } = await ask(world);
  assert.deepEqual(
    results.map(({ logDir, errorCode }) => [logDir, errorCode]),
    [
      ['/data/a', ErrorCode.NONE],
      ['/data/b', ErrorCode.KAFKA_STORAGE_ERROR],
    ],
  );
  assert.deepEqual(results[1]?.topics, []);
});

test.run();
