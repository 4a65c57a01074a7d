import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { WorldConnection } from '../data_path/client.ts';
import { ShardWorld } from '../data_path/shard_world.ts';

const test = suite('10 find coordinator');

async function world(): Promise<{ shard: ShardWorld; client: WorldConnection }> {
  const shard = await ShardWorld.start({ settings: ['offsets.topic.num.partitions=3'] });
  return { shard, client: new WorldConnection(shard) };
}

for (let version = 0; version <= 3; version += 1)
  test(`v${version}: the first who asks has the topic made, and is told the broker`, async () => {
    const { shard, client } = await world();
    const [endpoint] = shard.config.advertisedListeners;
    const answer = await client.callLater('FindCoordinator', version, { key: 'g' });
    assert.deepEqual([answer.errorCode, answer.nodeId], [0, 1]);
    assert(endpoint !== undefined && answer.host !== '' && answer.port >= 0);
    assert.equal(shard.image.topic('__consumer_offsets')?.partitions.length, 3);
  });

for (let version = 4; version <= 6; version += 1)
  test(`v${version}: several keys at once`, async () => {
    const { client } = await world();
    const coordinatorKeys = ['a', 'b', ''];
    const { coordinators } = await client.callLater('FindCoordinator', version, {
      coordinatorKeys,
    });
    assert.deepEqual(
      coordinators.map(({ key, nodeId, errorCode }) => [key, nodeId, errorCode]),
      coordinatorKeys.map((key) => [key, 1, 0]),
    );
  });

test('coordinators of other kinds are refused, and make no topic', async () => {
  const { shard, client } = await world();
  for (const keyType of [1, 2, 9]) {
    const old = await client.callLater('FindCoordinator', 3, { key: 'x', keyType });
    assert.deepEqual([old.errorCode, old.nodeId], [ErrorCode.INVALID_REQUEST, -1]);
    assert((old.errorMessage ?? '').length > 0);
    const { coordinators } = await client.callLater('FindCoordinator', 6, {
      coordinatorKeys: ['x'],
      keyType,
    });
    assert.equal(coordinators[0]?.errorCode, ErrorCode.INVALID_REQUEST);
  }
  assert.equal(shard.image.topic('__consumer_offsets'), undefined);
});

test('when the topic cannot be made, the coordinator is not available', async () => {
  const shard = await ShardWorld.start({ settings: ['offsets.topic.replication.factor=5'] });
  const client = new WorldConnection(shard);
  const answer = await client.callLater('FindCoordinator', 3, { key: 'g' });
  assert.deepEqual(
    [answer.errorCode, answer.nodeId, answer.host, answer.port],
    [ErrorCode.COORDINATOR_NOT_AVAILABLE, -1, '', -1],
  );
});

test.run();
