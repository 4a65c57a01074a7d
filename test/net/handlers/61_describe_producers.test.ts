/** KIP-664: the state of a partition's producers. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type { DescribeProducersResponsePartitionResponse } from '../../../net/protocol/messages.gen.ts';
import { WorldConnection } from '../data_path/client.ts';
import { batchOf, produce } from '../data_path/requests.ts';
import { ShardWorld } from '../data_path/shard_world.ts';
import { startMs } from '../data_path/world_clock.ts';

const test = suite('61 describe producers');

async function ask(
  world: ShardWorld,
  name: string,
  ...partitionIndexes: number[]
): Promise<DescribeProducersResponsePartitionResponse[]> {
  const client = new WorldConnection(world);
  const topics = [{ name, partitionIndexes }];
  const answer = await client.callLater('DescribeProducers', 0, { topics });
  assert.equal(answer.topics[0]?.name, name);
  return answer.topics[0].partitions;
}

function write(world: ShardWorld, input: Parameters<typeof batchOf>[1]): void {
  const parts = [{ topic: 't', records: batchOf(['a', 'b'], input) }];
  new WorldConnection(world).send('Produce', 9, produce(world, 9, -1, parts));
  world.settle();
}

test('every idempotent producer with its epoch and its last sequence and time', async () => {
  const world = await ShardWorld.start({ topics: [['t', 2]] });
  write(world, { producerId: 7, producerEpoch: 0, baseSequence: 0 });
  write(world, { producerId: 7, producerEpoch: 0, baseSequence: 2 });
  write(world, { producerId: 8, producerEpoch: 3, baseSequence: 0 });
  write(world, {});
  const [first, second] = await ask(world, 't', 0, 1);
  const rest = { lastTimestamp: BigInt(startMs), coordinatorEpoch: -1, currentTxnStartOffset: -1n };
  assert.deepEqual(
    first?.activeProducers.map((one) => ({ ...one })),
    [
      { producerId: 7n, producerEpoch: 0, lastSequence: 3, ...rest },
      { producerId: 8n, producerEpoch: 3, lastSequence: 1, ...rest },
    ],
  );
  assert.deepEqual(second, {
    partitionIndex: 1,
    errorCode: ErrorCode.NONE,
    errorMessage: null,
    activeProducers: [],
  });
});

test('an open transaction is told by its first offset', async () => {
  const world = await ShardWorld.start({ topics: [['t', 1]] });
  write(world, {});
  world.leader('t').log.producers.record(
    {
      producerId: 9,
      producerEpoch: 1,
      baseSequence: 0,
      lastOffsetDelta: 0,
      isTransactional: true,
    },
    2,
    5n,
    0,
  );
  const [partition] = await ask(world, 't', 0);
  assert.equal(partition?.activeProducers[0]?.currentTxnStartOffset, 2n);
});

test('partitions that are not there, or not to be used, have an error', async () => {
  const world = await ShardWorld.start({ topics: [['t', 1]] });
  const { UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR } = ErrorCode;
  assert.equal((await ask(world, 't', 5))[0]?.errorCode, UNKNOWN_TOPIC_OR_PARTITION);
  assert.equal((await ask(world, 'nobody', 0))[0]?.errorCode, UNKNOWN_TOPIC_OR_PARTITION);
  world.leader('t').refuse(KAFKA_STORAGE_ERROR);
  assert.equal((await ask(world, 't', 0))[0]?.errorCode, KAFKA_STORAGE_ERROR);
});

test.run();
