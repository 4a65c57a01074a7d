import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type { OffsetForLeaderEpochResponseEpochEndOffset } from '../../../net/protocol/messages.gen.ts';
import { loneState } from '../../replication/partition/states.ts';
import { WorldConnection } from '../data_path/client.ts';
import { batchOf, produce } from '../data_path/requests.ts';
import { ShardWorld } from '../data_path/shard_world.ts';

const test = suite('23 offset for leader epoch');

function put(world: ShardWorld, ...values: string[]): void {
  const client = new WorldConnection(world);
  client.send('Produce', 9, produce(world, 9, 1, [{ topic: 't', records: batchOf(values) }]));
  world.settle();
}

function ask(
  world: ShardWorld,
  leaderEpoch: number,
  { version = 4, partition = 0, topic = 't', currentLeaderEpoch = -1 } = {},
): OffsetForLeaderEpochResponseEpochEndOffset {
  const response = new WorldConnection(world).call('OffsetForLeaderEpoch', version, {
    topics: [{ topic, partitions: [{ partition, leaderEpoch, currentLeaderEpoch }] }],
  });
  const one = response.topics[0]?.partitions[0];
  assert(one !== undefined);
  return one;
}

/** Epoch 0 wrote offsets 0 and 1, epoch 3 offset 2, epoch 5 nothing. */
async function withHistory(): Promise<ShardWorld> {
  const world = await ShardWorld.start({ topics: [['t', 1]] });
  put(world, 'a', 'b');
  world.leader('t').lead(loneState(3), 0);
  put(world, 'c');
  world.leader('t').lead(loneState(5), 0);
  return world;
}

for (const version of [2, 3, 4])
  test(`v${version}: where each epoch ends, or the one below it (KIP-101, KIP-279)`, async () => {
    const world = await withHistory();
    const end = (epoch: number): unknown[] => {
      const one = ask(world, epoch, { version });
      return [one.errorCode, one.leaderEpoch, one.endOffset];
    };
    assert.deepEqual(end(0), [ErrorCode.NONE, 0, 2n]);
    assert.deepEqual(end(1), [ErrorCode.NONE, 0, 2n]);
    assert.deepEqual(end(3), [ErrorCode.NONE, 3, 3n]);
    assert.deepEqual(end(4), [ErrorCode.NONE, 3, 3n]);
    assert.deepEqual(
      end(5),
      [ErrorCode.NONE, 5, 3n],
      'the epoch of the leader, without a record of its own',
    );
    assert.deepEqual(end(6), [ErrorCode.NONE, -1, -1n], 'no epoch of ours');
    assert.deepEqual(end(-1), [ErrorCode.NONE, -1, -1n]);
  });

test('the epoch that ListOffsets gives for the end is one that is known here, also after a kill', async () => {
  const world = await withHistory();
  world.kill();
  await world.open();
  world.leader('t').lead(loneState(6), 0);
  world.settle();
  const listed = new WorldConnection(world).call('ListOffsets', 9, {
    replicaId: -1,
    topics: [{ name: 't', partitions: [{ partitionIndex: 0, timestamp: -1n }] }],
  });
  const one = listed.topics[0]?.partitions[0];
  assert.equal(one?.leaderEpoch, 6);
  assert.equal(ask(world, 6).endOffset, one?.offset);
});

test('errors: fenced, unknown epoch, unknown topic, unknown partition, failed directory', async () => {
  const world = await withHistory();
  assert.equal(ask(world, 0, { currentLeaderEpoch: 4 }).errorCode, ErrorCode.FENCED_LEADER_EPOCH);
  assert.equal(ask(world, 0, { currentLeaderEpoch: 5 }).errorCode, ErrorCode.NONE);
  assert.equal(ask(world, 0, { currentLeaderEpoch: 6 }).errorCode, ErrorCode.UNKNOWN_LEADER_EPOCH);
  assert.equal(ask(world, 0, { topic: 'x' }).errorCode, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
  assert.equal(ask(world, 0, { partition: 1 }).errorCode, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
  world.leader('t').refuse(ErrorCode.KAFKA_STORAGE_ERROR);
  const failed = ask(world, 0);
  assert.deepEqual(
    [failed.errorCode, failed.leaderEpoch, failed.endOffset],
    [ErrorCode.KAFKA_STORAGE_ERROR, -1, -1n],
  );
});

test.run();
