import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type { InitProducerIdRequestInput } from '../../../net/protocol/messages.gen.ts';
import { WorldConnection } from '../data_path/client.ts';
import { batchOf, produce, produced } from '../data_path/requests.ts';
import { ShardWorld } from '../data_path/shard_world.ts';

const test = suite('22 init producer id');

const noTransaction: InitProducerIdRequestInput = {
  transactionalId: null,
  transactionTimeoutMs: 1_000,
};

for (let version = 0; version <= 5; version += 1)
  test(`v${version}: a new id with epoch 0, different each time`, async () => {
    const world = await ShardWorld.start();
    const client = new WorldConnection(world);
    const first = await client.callLater('InitProducerId', version, noTransaction);
    const second = await client.callLater('InitProducerId', version, noTransaction);
    for (const { errorCode, producerEpoch } of [first, second])
      assert.deepEqual([errorCode, producerEpoch], [ErrorCode.NONE, 0]);
    assert.notEqual(first.producerId, second.producerId);
  });

test('the id is good for a batch', async () => {
  const world = await ShardWorld.start({ topics: [['t', 1]] });
  const client = new WorldConnection(world);
  const { producerId, producerEpoch } = await client.callLater('InitProducerId', 5, noTransaction);
  const records = batchOf(['v'], { producerId, producerEpoch, baseSequence: 0 });
  const sent = client.send('Produce', 9, produce(world, 9, -1, [{ topic: 't', records }]));
  world.settle();
  assert.equal(produced(sent.response()).errorCode, ErrorCode.NONE);
});

test('ids are never given again: many at a time, over several blocks, and after a restart', async () => {
  const world = await ShardWorld.start();
  const given = new Set<bigint>();
  for (let life = 0; life < 2; life += 1) {
    const clients = Array.from({ length: 1_200 }, () => new WorldConnection(world));
    const sent = clients.map((client) => client.send('InitProducerId', 4, noTransaction));
    for (let turn = 0; turn < 50 && !sent.every((one) => one.isAnswered); turn += 1)
      await new Promise((resolve) => setImmediate(resolve));
    for (const one of sent) given.add(one.response().producerId);
    world.kill();
    await world.open();
  }
  assert.equal(given.size, 2_400);
});

test('a producer that recovers names its old id and gets a new one (KIP-360)', async () => {
  const world = await ShardWorld.start();
  const client = new WorldConnection(world);
  const old = await client.callLater('InitProducerId', 3, noTransaction);
  const { producerId, producerEpoch } = old;
  const again = await client.callLater('InitProducerId', 3, {
    ...noTransaction,
    producerId,
    producerEpoch,
  });
  assert.equal(again.errorCode, ErrorCode.NONE);
  assert.notEqual(again.producerId, producerId);
});

test('an id without an epoch, an epoch without an id, an empty transactional id', async () => {
  const world = await ShardWorld.start();
  const client = new WorldConnection(world);
  const code = async (request: Partial<InitProducerIdRequestInput>): Promise<number> =>
    (await client.callLater('InitProducerId', 3, { ...noTransaction, ...request })).errorCode;
  assert.equal(await code({ producerId: 5n }), ErrorCode.INVALID_REQUEST);
  assert.equal(await code({ producerEpoch: 5 }), ErrorCode.INVALID_REQUEST);
  assert.equal(await code({ transactionalId: '' }), ErrorCode.INVALID_REQUEST);
});

test('transactional ids are refused for good, not to be tried again and again', async () => {
  const world = await ShardWorld.start();
  const client = new WorldConnection(world);
  const answer = await client.callLater('InitProducerId', 4, {
    ...noTransaction,
    transactionalId: 'me',
  });
  assert.deepEqual(
    [answer.errorCode, answer.producerId, answer.producerEpoch],
    [ErrorCode.UNSUPPORTED_VERSION, -1n, -1],
  );
});

test.run();
