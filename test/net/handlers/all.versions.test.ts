/**
 * Every handler in every version that it serves, with requests that find something, requests that find nothing, and
 * requests that are full of odd values. An answer that the encoder cannot say closes its connection, so here no
 * connection may be closed, and every answer must decode to the last byte.
 */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { apiInfo } from '../../../net/protocol/apis.ts';
import { encodeRequestFrame } from '../../../net/protocol/frame.ts';
import type { ApiName } from '../../../net/protocol/messages.gen.ts';
import type { Handler } from '../../../net/server/registry.ts';
import { WorldConnection } from '../data_path/client.ts';
import { mixedWorld, requestsOf } from '../data_path/request_table.ts';
import type { ShardWorld } from '../data_path/shard_world.ts';
import { goldenValue, goldenVectors } from '../protocol/golden.ts';

const test = suite('every handler in every version');

function handlersOf(world: ShardWorld): { name: ApiName; handler: Handler }[] {
  return world.registry.served().map(({ apiKey }) => {
    const name = apiInfo(apiKey)?.name;
    const handler = world.registry.find(apiKey);
    assert(name !== undefined && handler !== null);
    return { name, handler };
  });
}

/** Sends, and checks that there is an answer that decodes. */
async function answered(
  world: ShardWorld,
  name: ApiName,
  version: number,
  request: object,
  which: string,
): Promise<void> {
  const client = new WorldConnection(world);
  try {
    const sent = client.send(name, version, request as never);
    for (let turn = 0; !sent.isAnswered && client.failure === null && turn < 200; turn += 1) {
      world.settle();
      world.advance(1);
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.equal(client.failure, null);
    assert(sent.isAnswered, 'no answer');
    sent.response();
  } catch (error) {
    const { message } = error as Error;
    throw new Error(`${name} v${version}, ${which}: ${message}`, { cause: error });
  }
}

test('all that is registered has requests here, and is answered', async () => {
  const world = await mixedWorld();
  for (const { name, handler } of handlersOf(world)) {
    const requests = requestsOf[name];
    assert(requests !== undefined, `${name} has no requests in request_table.ts`);
    for (let version = handler.minVersion; version <= handler.maxVersion; version += 1)
      for (const [at, request] of requests(world, version).entries())
        await answered(world, name, version, request, `request ${at}`);
  }
});

/** Kafka's own requests, every field set and none: what a handler makes of them matters less than that it answers. */
test('the requests of the golden vectors are answered', async () => {
  const world = await mixedWorld();
  let count = 0;
  for (const { name, handler } of handlersOf(world))
    for (const [version, sample, json] of goldenVectors(`${name}Request`)) {
      if (version < handler.minVersion || version > handler.maxVersion) continue;
      const request = { ...goldenValue(`${name}Request`, version, json) } as object;
      // What would wait, or go without an answer.
      if ('acks' in request) request.acks = -1;
      if ('timeoutMs' in request) request.timeoutMs = 10;
      if ('maxWaitMs' in request) request.maxWaitMs = 0;
      await answered(world, name, version, request, sample);
      count += 1;
    }
  assert(count > 200, `${count} requests`);
});

test('a name that cannot be said back closes its connection and nothing else', async () => {
  const world = await mixedWorld();
  // 20,000 bytes that are no UTF-8 are read as 20,000 replacement characters of three bytes each.
  const name = 'x'.repeat(20_000);
  const header = { correlationId: 1, clientId: null };
  const frames = [
    encodeRequestFrame<'Produce'>({ ...header, apiKey: 0, apiVersion: 8 }, 'ProduceRequest', {
      acks: 1,
      timeoutMs: 1,
      topicData: [{ name, partitionData: [{ index: 0, records: null }] }],
    }),
    encodeRequestFrame<'Fetch'>({ ...header, apiKey: 1, apiVersion: 11 }, 'FetchRequest', {
      maxWaitMs: 0,
      minBytes: 0,
      topics: [
        { topic: name, partitions: [{ partition: 0, fetchOffset: 0n, partitionMaxBytes: 1 }] },
      ],
    }),
    encodeRequestFrame<'ListOffsets'>(
      { ...header, apiKey: 2, apiVersion: 5 },
      'ListOffsetsRequest',
      {
        replicaId: -1,
        topics: [{ name, partitions: [{ partitionIndex: 0, timestamp: -1n }] }],
      },
    ),
    encodeRequestFrame<'Metadata'>({ ...header, apiKey: 3, apiVersion: 8 }, 'MetadataRequest', {
      topics: [{ name }],
    }),
    encodeRequestFrame<'CreateTopics'>(
      { ...header, apiKey: 19, apiVersion: 4 },
      'CreateTopicsRequest',
      {
        topics: [{ name, numPartitions: 1, replicationFactor: 1, assignments: [], configs: [] }],
      },
    ),
  ];
  for (const { bytes } of frames) {
    const client = new WorldConnection(world);
    client.dispatch(Buffer.from(bytes.subarray(4)).map((byte) => (byte === 0x78 ? 0xff : byte)));
    for (let turn = 0; client.failure === null && turn < 100; turn += 1)
      await new Promise((resolve) => setImmediate(resolve));
    assert.match(client.failure ?? '', /encoded/);
  }
  assert.deepEqual([world.memory.slabs.usedBytes, world.memory.budget.usedBytes], [0, 0]);
  await answered(world, 'Metadata', 1, { topics: null }, 'after all');
});

test.run();
