import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type { CreatePartitionsResponse } from '../../../net/protocol/messages.gen.ts';
import { WorldConnection } from '../data_path/client.ts';
import { batchOf, produce, produced } from '../data_path/requests.ts';
import { ShardWorld } from '../data_path/shard_world.ts';

const test = suite('37 create partitions');

function grow(
  world: ShardWorld,
  name: string,
  count: number,
  validateOnly = false,
): Promise<CreatePartitionsResponse> {
  const topics = [{ name, count, assignments: null }];
  const request = { topics, timeoutMs: 1_000, validateOnly };
  return new WorldConnection(world).callLater('CreatePartitions', 3, request);
}

test('the answer comes when the new partitions take records', async () => {
  const world = await ShardWorld.start({ topics: [['t', 1]] });
  const { results } = await grow(world, 't', 3);
  assert.deepEqual(results, [{ name: 't', errorCode: ErrorCode.NONE, errorMessage: null }]);
  const client = new WorldConnection(world);
  for (const partition of [1, 2]) {
    const parts = [{ topic: 't', partition, records: batchOf(['v']) }];
    const sent = client.send('Produce', 9, produce(world, 9, -1, parts));
    world.settle();
    assert.equal(produced(sent.response()).errorCode, ErrorCode.NONE);
  }
});

test('they are there after a crash', async () => {
  const world = await ShardWorld.start({ topics: [['t', 1]] });
  await grow(world, 't', 4);
  world.kill();
  await world.open();
  assert.equal(world.image.topic('t')?.partitions.length, 4);
  assert.equal(world.leader('t', 3).partition, 3);
});

test('errors are told for each topic, and nothing changes when only asked', async () => {
  const world = await ShardWorld.start({ topics: [['t', 2]] });
  const { INVALID_PARTITIONS, UNKNOWN_TOPIC_OR_PARTITION, NONE } = ErrorCode;
  assert.equal((await grow(world, 't', 2)).results[0]?.errorCode, INVALID_PARTITIONS);
  assert.equal((await grow(world, 'x', 2)).results[0]?.errorCode, UNKNOWN_TOPIC_OR_PARTITION);
  assert.equal((await grow(world, 't', 5, true)).results[0]?.errorCode, NONE);
  assert.equal(world.image.topic('t')?.partitions.length, 2);
});

test.run();
