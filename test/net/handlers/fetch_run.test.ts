import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type { FetchRequestInput, FetchResponse } from '../../../net/protocol/messages.gen.ts';
import { WorldConnection } from '../data_path/client.ts';
import {
  batchOf,
  batchOfBytes,
  fetch,
  fetched,
  fetchedOne,
  produce,
  valuesIn,
} from '../data_path/requests.ts';
import type { ShardWorld } from '../data_path/shard_world.ts';
import { put, withClient } from '../data_path/world_client.ts';

const test = suite('fetch run: sessions, waiting, files');

/** A client with a session over some partitions of `t`, that keeps count of the epoch. */
class Session {
  readonly #world: ShardWorld;
  readonly #client: WorldConnection;
  readonly #version: number;
  id = 0;
  epoch = 0;

  constructor(world: ShardWorld, version = 12) {
    this.#world = world;
    this.#client = new WorldConnection(world);
    this.#version = version;
  }

  fetch(
    wanted: readonly { partition: number; offset?: number; maxBytes?: number }[],
    rest: Partial<FetchRequestInput> = {},
  ): FetchResponse {
    const all = wanted.map((one) => ({ topic: 't', ...one }));
    const response = this.#client.call(
      'Fetch',
      this.#version,
      fetch(this.#world, this.#version, all, {
        sessionId: this.id,
        sessionEpoch: this.epoch,
        maxWaitMs: 0,
        ...rest,
      }),
    );
    if (response.errorCode === ErrorCode.NONE) {
      this.id = response.sessionId;
      this.epoch += 1;
    }
    return response;
  }
}

const partitionsIn = (response: FetchResponse): number[] =>
  fetched(response).map(({ partitionIndex }) => partitionIndex);

for (const version of [7, 12, 13, 18])
  test(`trap 5, v${version}: an incremental request without partitions fetches those of the session`, async () => {
    const { world } = await withClient();
    const session = new Session(world, version);
    const full = session.fetch([{ partition: 0 }, { partition: 1 }]);
    assert.notEqual(full.sessionId, 0);
    assert.deepEqual(partitionsIn(full), [0, 1], 'the first answer names all');
    put(world, 't', 1, batchOf(['a']));
    const news = session.fetch([]);
    assert.equal(news.sessionId, full.sessionId);
    assert.deepEqual(partitionsIn(news), [1]);
    assert.deepEqual(valuesIn(fetchedOne(news).records), ['0 a']);
    assert.deepEqual(partitionsIn(session.fetch([{ partition: 1, offset: 1 }])), []);
  });

test('trap 5: a session waits like any other fetch, and for all its partitions', async () => {
  const { world, client } = await withClient();
  const session = new Session(world);
  session.fetch([{ partition: 0 }, { partition: 2 }]);
  const request = fetch(world, 12, [], { sessionId: session.id, sessionEpoch: 1, maxWaitMs: 500 });
  const sent = client.send('Fetch', 12, request);
  assert(!sent.isAnswered, 'naming no partition is not an empty fetch');
  put(world, 't', 1, batchOf(['other']));
  assert(!sent.isAnswered);
  put(world, 't', 2, batchOf(['a']));
  assert.deepEqual(partitionsIn(sent.response()), [2]);
});

test('trap 5: an unchanged partition is left out; a risen high watermark is news without records', async () => {
  const { world } = await withClient();
  put(world, 't', 0, batchOfBytes(500));
  put(world, 't', 1, batchOfBytes(500));
  const session = new Session(world);
  session.fetch([
    { partition: 0, offset: 1 },
    { partition: 1, offset: 1 },
  ]);
  assert.deepEqual(partitionsIn(session.fetch([])), []);
  put(world, 't', 0, batchOfBytes(500));
  put(world, 't', 1, batchOfBytes(500));
  const limited = session.fetch([], { maxBytes: 500 });
  assert.deepEqual(partitionsIn(limited), [0, 1]);
  const [first, second] = fetched(limited);
  assert.deepEqual(
    [first, second].map((one) => one?.records?.byteLength),
    [500, 0],
  );
  assert.equal(second?.highWatermark, 2n);
});

test('trap 5: forgotten partitions are not fetched, and forgetting strangers is no error', async () => {
  const { world } = await withClient();
  const session = new Session(world);
  session.fetch([{ partition: 0 }, { partition: 1 }]);
  put(world, 't', 0, batchOf(['a']));
  put(world, 't', 1, batchOf(['b']));
  const forgottenTopicsData = [{ topic: 't', partitions: [0, 7] }];
  assert.deepEqual(partitionsIn(session.fetch([], { forgottenTopicsData })), [1]);
});

test('trap 5: session epochs', async () => {
  const { world } = await withClient();
  const session = new Session(world);
  session.fetch([{ partition: 0 }]);
  const code = (rest: Partial<FetchRequestInput>): number => session.fetch([], rest).errorCode;
  assert.equal(code({ sessionEpoch: 5 }), ErrorCode.INVALID_FETCH_SESSION_EPOCH);
  assert.equal(code({ sessionId: 999 }), ErrorCode.FETCH_SESSION_ID_NOT_FOUND);
  assert.equal(code({}), ErrorCode.NONE, 'the wrong ones have changed nothing');
  const closed = session.fetch([{ partition: 0 }], { sessionEpoch: -1 });
  assert.equal(closed.sessionId, 0);
  assert.equal(world.services.fetchSessions.size, 0);
});

test('trap 5: an error is repeated in every answer, and its end is news', async () => {
  const { world } = await withClient();
  const session = new Session(world);
  session.fetch([{ partition: 0, offset: 50 }, { partition: 1 }]);
  for (let round = 0; round < 2; round += 1) {
    const one = fetchedOne(session.fetch([]));
    assert.deepEqual([one.partitionIndex, one.errorCode], [0, ErrorCode.OFFSET_OUT_OF_RANGE]);
  }
  const good = fetchedOne(session.fetch([{ partition: 0, offset: 0 }]));
  assert.deepEqual([good.partitionIndex, good.errorCode, good.highWatermark], [0, 0, 0n]);
});

test('a session by names and one by ids are not mixed', async () => {
  const { world, client } = await withClient();
  const session = new Session(world);
  session.fetch([{ partition: 0 }]);
  const request = fetch(world, 13, [], { sessionId: session.id, sessionEpoch: 1 });
  assert.equal(client.call('Fetch', 13, request).errorCode, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR);
});

test('fairness: with room for one partition only, all of a session get their turn', async () => {
  const { world } = await withClient();
  for (const partition of [0, 1, 2])
    put(world, 't', partition, ...[1, 2, 3].map(() => batchOfBytes(100)));
  const session = new Session(world);
  const offsets = [0, 0, 0];
  const order: number[] = [];
  for (let round = 0; round < 9; round += 1) {
    const wanted = offsets.map((offset, partition) => ({ partition, offset, maxBytes: 100 }));
    for (const one of fetched(session.fetch(wanted, { maxBytes: 100 }))) {
      if ((one.records as Uint8Array).length === 0) continue;
      order.push(one.partitionIndex);
      offsets[one.partitionIndex] = (offsets[one.partitionIndex] ?? 0) + 1;
    }
  }
  assert.deepEqual(order, [0, 1, 2, 0, 1, 2, 0, 1, 2]);
});

test('a deleted topic wakes the fetches that wait for it', async () => {
  for (const version of [12, 13]) {
    const { world, client } = await withClient();
    const sent = client.send(
      'Fetch',
      version,
      fetch(world, version, [{ topic: 't' }], { maxWaitMs: 60_000 }),
    );
    await world.deleteTopic('t');
    world.wake();
    assert.equal(
      fetchedOne(sent.response()).errorCode,
      version >= 13 ? ErrorCode.UNKNOWN_TOPIC_ID : ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    );
    assert.equal(world.services.purgatory.size, 0);
  }
});

test('a topic deleted and made again is another one for who fetches by id, and the new one by name', async () => {
  const { world, client } = await withClient();
  put(world, 't', 0, batchOf(['old']));
  const byId = fetch(world, 13, [{ topic: 't' }]);
  await world.deleteTopic('t');
  await world.createTopic('t');
  put(world, 't', 0, batchOf(['new']));
  assert.equal(fetchedOne(client.call('Fetch', 13, byId)).errorCode, ErrorCode.UNKNOWN_TOPIC_ID);
  const byName = client.call('Fetch', 12, fetch(world, 12, [{ topic: 't' }]));
  assert.deepEqual(valuesIn(fetchedOne(byName).records), ['0 new']);
});

test('a failed directory wakes the fetches of its partitions', async () => {
  const { world, client } = await withClient();
  const sent = client.send('Fetch', 12, fetch(world, 12, [{ topic: 't' }], { maxWaitMs: 60_000 }));
  client.send(
    'Produce',
    9,
    produce(world, 9, -1, [{ topic: 't', partition: 1, records: batchOf(['a']) }]),
  );
  world.endTurn();
  world.disk.failingFlushes = 1;
  world.endFlushes();
  assert.equal(fetchedOne(sent.response()).errorCode, ErrorCode.KAFKA_STORAGE_ERROR);
});

test('a connection that dies while it waits leaves nothing behind', async () => {
  const { world, client } = await withClient();
  client.send('Fetch', 12, fetch(world, 12, [{ topic: 't' }], { maxWaitMs: 60_000 }));
  assert.equal(world.services.purgatory.size, 1);
  client.die();
  assert.equal(world.services.purgatory.size, 0);
  put(world, 't', 0, batchOf(['a']));
});

test('expired all at once, as at a stop, fetches answer with what there is', async () => {
  const { world, client } = await withClient();
  const sent = client.send(
    'Fetch',
    12,
    fetch(world, 12, [{ topic: 't' }], { maxWaitMs: 60_000, minBytes: 10_000 }),
  );
  put(world, 't', 0, batchOf(['a']));
  world.services.purgatory.expireAll();
  assert.deepEqual(valuesIn(fetchedOne(sent.response()).records), ['0 a']);
});

/** Descriptors of the disk that are open. */
const openFiles = ({ disk }: ShardWorld): number => disk.openFiles;

for (const end of ['sent', 'dead'] as const)
  test(`records of a deleted topic stay readable while they are on their way, until they are ${end}`, async () => {
    const { world, client } = await withClient();
    const before = openFiles(world);
    await world.createTopic('gone');
    put(world, 'gone', 0, batchOf(['a']));
    const sent = client.send('Fetch', 12, fetch(world, 12, [{ topic: 'gone' }]));
    await world.deleteTopic('gone');
    world.settle();
    assert(openFiles(world) > before);
    if (end === 'sent') assert.deepEqual(valuesIn(fetchedOne(sent.response()).records), ['0 a']);
    else client.die();
    assert.equal(openFiles(world), before);
  });

test('a fetch that waits holds no file', async () => {
  const { world, client } = await withClient();
  const before = openFiles(world);
  await world.createTopic('gone');
  put(world, 'gone', 0, batchOf(['a']));
  const wanted = [{ topic: 'gone' }, { topic: 't' }];
  const sent = client.send(
    'Fetch',
    12,
    fetch(world, 12, wanted, { minBytes: 10_000, maxWaitMs: 60_000 }),
  );
  put(world, 't', 0, batchOf(['b']));
  assert(!sent.isAnswered);
  await world.deleteTopic('gone');
  world.settle();
  assert.equal(openFiles(world), before);
  assert.equal(fetched(sent.response())[0]?.errorCode, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
  assert.equal(openFiles(world), before);
});

test('more old segments in one fetch than may stay open: every partition gets its own records', async () => {
  const count = 300;
  const settings = { 'segment.ms': '1000', 'message.timestamp.type': 'LogAppendTime' };
  const { world, client } = await withClient({ topics: [['many', count, settings]] });
  const partitions = Array.from({ length: count }, (_, partition) => partition);
  for (const round of ['old', 'young']) {
    const parts = partitions.map((partition) => ({
      topic: 'many',
      partition,
      records: batchOf([`p${partition} ${round}`]),
    }));
    client.send('Produce', 9, produce(world, 9, -1, parts));
    world.settle();
    world.advance(10_000);
  }
  assert.equal(world.leader('many', 7).log.segmentCount, 2);
  const wanted = partitions.map((partition) => ({ topic: 'many', partition, maxBytes: 1_000 }));
  const answer = fetched(client.call('Fetch', 12, fetch(world, 12, wanted)));
  for (const { partitionIndex, records } of answer)
    assert(
      valuesIn(records)[0]?.startsWith(`0 p${partitionIndex} `),
      `partition ${partitionIndex}`,
    );
});

test.run();
