/** KIP-1142, and of KIP-714 what v0 tells. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { WorldConnection } from '../data_path/client.ts';
import { ShardWorld } from '../data_path/shard_world.ts';

const test = suite('74 list config resources');

async function ask(version: number, ...resourceTypes: number[]): Promise<unknown[]> {
  const world = await ShardWorld.start({
    topics: [
      ['a', 1],
      ['b', 1],
    ],
  });
  const request = version === 0 ? {} : { resourceTypes };
  const answer = new WorldConnection(world).call('ListConfigResources', version, request);
  if (answer.errorCode !== ErrorCode.NONE) return [answer.errorCode];
  return answer.configResources.map(({ resourceType, resourceName }) => [
    resourceType,
    resourceName,
  ]);
}

const topics = [
  [2, 'a'],
  [2, 'b'],
];

test('the kinds asked for, or all that have settings', async () => {
  assert.deepEqual(await ask(1, 2), topics);
  assert.deepEqual(await ask(1, 4), [[4, '1']]);
  assert.deepEqual(await ask(1), [...topics, [4, '1'], [8, '1']]);
  assert.deepEqual(await ask(1, 16, 32), []);
});

test('v0 asks for client metrics, which there are none of', async () => {
  assert.deepEqual(await ask(0), []);
});

test('a kind that nobody knows is refused', async () => {
  assert.deepEqual(await ask(1, 2, 77), [ErrorCode.UNSUPPORTED_VERSION]);
});

test.run();
