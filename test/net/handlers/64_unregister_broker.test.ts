import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { WorldConnection } from '../data_path/client.ts';
import { ShardWorld } from '../data_path/shard_world.ts';

const test = suite('64 unregister broker');

test('who is not there cannot be forgotten, and the only broker is needed', async () => {
  const world = await ShardWorld.start({ topics: [['t', 1]] });
  const unregister = (brokerId: number) =>
    new WorldConnection(world).callLater('UnregisterBroker', 0, { brokerId });
  const unknown = await unregister(9);
  assert.equal(unknown.errorCode, ErrorCode.BROKER_ID_NOT_REGISTERED);
  assert.match(unknown.errorMessage ?? '', /9/);
  assert.equal((await unregister(1)).errorCode, ErrorCode.INVALID_REQUEST);
  assert.equal(world.image.partition('t', 0)?.leader, 1);
});

test.run();
