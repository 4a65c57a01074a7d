import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { uuidZero } from '../../../replication/metadata/records.ts';
import { uuids } from '../../replication/metadata/fixtures.ts';
import { loneState } from '../../replication/partition/states.ts';
import {
  batchOf,
  batchOfBytes,
  fetch,
  fetched,
  fetchedOne,
  produce,
  valuesIn,
  type Wanted,
} from '../data_path/requests.ts';
import { put, withClient } from '../data_path/world_client.ts';

const test = suite('01 fetch');

const versions = Array.from({ length: 15 }, (_, at) => 4 + at);

for (const version of versions)
  test(`v${version}: records, offsets and the fields of the version`, async () => {
    const { world, client } = await withClient();
    put(world, 't', 1, batchOf(['a', 'b']), batchOf(['c']));
    const response = client.call(
      'Fetch',
      version,
      fetch(world, version, [{ topic: 't', partition: 1, offset: 1 }]),
    );
    assert.equal(response.errorCode, ErrorCode.NONE);
    assert.equal(response.sessionId, 0);
    const [topic] = response.responses;
    assert.equal(topic?.topic, version < 13 ? 't' : '');
    assert.equal(topic?.topicId, version < 13 ? uuidZero : world.idOf('t'));
    const one = fetchedOne(response);
    assert.deepEqual([one.partitionIndex, one.errorCode], [1, ErrorCode.NONE]);
    assert.deepEqual([one.highWatermark, one.lastStableOffset], [3n, 3n]);
    assert.equal(one.logStartOffset, version >= 5 ? 0n : -1n);
    assert.equal(one.abortedTransactions, null);
    assert.equal(one.preferredReadReplica, -1);
    assert.deepEqual(valuesIn(one.records), ['0 a', '1 b', '2 c'], 'whole batches');
  });

test('trap 6: an offset inside of a batch gets the whole batch', async () => {
  const { world, client } = await withClient();
  put(world, 't', 0, batchOf(['a', 'b', 'c']), batchOf(['d']));
  const one = fetchedOne(
    client.call('Fetch', 12, fetch(world, 12, [{ topic: 't', offset: 2, maxBytes: 1 }])),
  );
  assert.deepEqual(valuesIn(one.records), ['0 a', '1 b', '2 c']);
});

test('trap 6: the first batch of all comes whatever the limits, and only that one', async () => {
  const { world, client } = await withClient();
  for (const partition of [0, 1])
    put(world, 't', partition, batchOfBytes(5_000), batchOfBytes(5_000));
  for (const limits of [{ maxBytes: 1 }, { maxBytes: 10_000 }]) {
    const wanted = [0, 1].map((partition) => ({ topic: 't', partition, maxBytes: 1 }));
    const answer = fetched(client.call('Fetch', 12, fetch(world, 12, wanted, limits)));
    assert.deepEqual(
      answer.map(({ records }) => (records as Uint8Array).length),
      [5_000, 0],
    );
  }
});

test('trap 6: max_bytes of the partition and of the answer are kept to the byte', async () => {
  const { world, client } = await withClient();
  for (const partition of [0, 1, 2])
    put(world, 't', partition, ...[1, 2, 3, 4].map(() => batchOfBytes(100)));
  const lengths = (partitionBytes: number, maxBytes: number): number[] => {
    const wanted = [0, 1, 2].map((partition) => ({
      topic: 't',
      partition,
      maxBytes: partitionBytes,
    }));
    return fetched(client.call('Fetch', 12, fetch(world, 12, wanted, { maxBytes }))).map(
      ({ records }) => (records as Uint8Array).length,
    );
  };
  assert.deepEqual(lengths(400, 1_200), [400, 400, 400]);
  assert.deepEqual(lengths(399, 1_200), [300, 300, 300]);
  assert.deepEqual(lengths(300, 700), [300, 300, 100]);
  assert.deepEqual(lengths(300, 699), [300, 300, 0]);
  assert.deepEqual(lengths(1_000, 800), [400, 400, 0]);
});

test("trap 6: the broker's fetch.max.bytes bounds what a client may ask for", async () => {
  const { world, client } = await withClient({ settings: ['fetch.max.bytes=1024'] });
  for (const partition of [0, 1, 2]) put(world, 't', partition, batchOfBytes(500));
  const wanted = [0, 1, 2].map((partition) => ({ topic: 't', partition }));
  const answer = fetched(
    client.call('Fetch', 12, fetch(world, 12, wanted, { maxBytes: 1_000_000, minBytes: 100_000 })),
  );
  assert.deepEqual(
    answer.map(({ records }) => (records as Uint8Array).length),
    [500, 500, 0],
  );
});

test('trap 6: min_bytes waits for exactly so many bytes', async () => {
  const { world, client } = await withClient();
  const sent = client.send(
    'Fetch',
    12,
    fetch(world, 12, [{ topic: 't' }, { topic: 't', partition: 1 }], { minBytes: 300 }),
  );
  put(world, 't', 0, batchOfBytes(100));
  put(world, 't', 1, batchOfBytes(199));
  assert(!sent.isAnswered, '299 of 300 bytes');
  put(world, 't', 1, batchOfBytes(100));
  assert(sent.isAnswered, '399 of 300 bytes');
  assert.deepEqual(
    fetched(sent.response()).map(({ records }) => (records as Uint8Array).length),
    [100, 299],
  );
});

test('trap 6: max_wait ends the wait to the millisecond, with what there is', async () => {
  const { world, client } = await withClient();
  const none = client.send('Fetch', 12, fetch(world, 12, [{ topic: 't' }], { maxWaitMs: 100 }));
  const some = client.send(
    'Fetch',
    12,
    fetch(world, 12, [{ topic: 't' }], { maxWaitMs: 200, minBytes: 1_000 }),
  );
  world.advance(99);
  assert.deepEqual([none.isAnswered, some.isAnswered], [false, false]);
  world.advance(1);
  assert.deepEqual([none.isAnswered, some.isAnswered], [true, false]);
  put(world, 't', 0, batchOf(['a']));
  world.advance(99);
  assert(!some.isAnswered);
  world.advance(1);
  assert.deepEqual(valuesIn(fetchedOne(some.response()).records), ['0 a']);
  assert.equal((fetchedOne(none.response()).records as Uint8Array).length, 0);
  assert.equal(world.services.purgatory.size, 0);
});

test('max_wait of 2^31-1 ms is a wait; of zero or less it is none', async () => {
  const { world, client } = await withClient();
  world.clock.ms = 0.3;
  for (const maxWaitMs of [0, -1])
    client.call('Fetch', 12, fetch(world, 12, [{ topic: 't' }], { maxWaitMs }));
  const sent = client.send(
    'Fetch',
    12,
    fetch(world, 12, [{ topic: 't' }], { maxWaitMs: 0x7fffffff }),
  );
  world.advance(1);
  assert(!sent.isAnswered);
  put(world, 't', 0, batchOf(['a']));
  assert(sent.isAnswered);
});

test('min_bytes of zero, or a request without partitions, does not wait', async () => {
  const { world, client } = await withClient();
  client.call('Fetch', 12, fetch(world, 12, [{ topic: 't' }], { minBytes: 0 }));
  assert.deepEqual(client.call('Fetch', 12, fetch(world, 12, [])).responses, []);
});

test('min_bytes above max_bytes asks for no more than max_bytes', async () => {
  const { world, client } = await withClient();
  put(world, 't', 0, ...[1, 2, 3].map(() => batchOfBytes(100)));
  const sent = client.send(
    'Fetch',
    12,
    fetch(world, 12, [{ topic: 't' }], { minBytes: 1_000, maxBytes: 200 }),
  );
  assert(sent.isAnswered);
});

test('bytes that are there but do not fit count towards min_bytes, as in Kafka', async () => {
  const { world, client } = await withClient();
  put(world, 't', 0, batchOfBytes(600), batchOfBytes(600));
  const wanted = { topic: 't', maxBytes: 1_000 };
  const sent = client.send('Fetch', 12, fetch(world, 12, [wanted], { minBytes: 1_000 }));
  assert(sent.isAnswered, 'one batch fits, the next does not: there is nothing to wait for');
  assert.equal((fetchedOne(sent.response()).records as Uint8Array).length, 600);
  const little = client.send(
    'Fetch',
    12,
    fetch(world, 12, [{ ...wanted, maxBytes: 700 }], { minBytes: 1_000 }),
  );
  assert(!little.isAnswered, 'the partition can give 700 at most: the rest must come from others');
});

test('the end of a segment is not waited at, although min_bytes is not reached', async () => {
  const { world, client } = await withClient({
    topics: [['t', 1, { 'segment.bytes': '1048576' }]],
  });
  put(world, 't', 0, batchOfBytes(700_000), batchOfBytes(700_000));
  assert.equal(world.leader('t').log.segmentCount, 2);
  const request = fetch(world, 12, [{ topic: 't', maxBytes: 2_000_000 }], {
    minBytes: 1_000_000,
    maxBytes: 2_000_000,
  });
  const sent = client.send('Fetch', 12, request);
  assert(sent.isAnswered);
  assert.equal((fetchedOne(sent.response()).records as Uint8Array).length, 700_000);
});

test('offsets: inside of the log and between high watermark and log end are good, all others out of range', async () => {
  const { world, client } = await withClient();
  put(world, 't', 0, batchOf(['a']));
  client.send('Produce', 9, produce(world, 9, 1, [{ topic: 't', records: batchOf(['b', 'c']) }]));
  world.endTurn();
  assert.deepEqual([world.leader('t').highWatermark, world.leader('t').log.logEndOffset], [1, 3]);
  const code = (offset: number | bigint): number =>
    fetchedOne(
      client.call('Fetch', 12, fetch(world, 12, [{ topic: 't', offset }], { maxWaitMs: 0 })),
    ).errorCode;
  for (const offset of [0, 1, 2, 3]) assert.equal(code(offset), ErrorCode.NONE, `${offset}`);
  for (const offset of [-1, -2, 4, (1n << 63n) - 1n, -(1n << 63n)])
    assert.equal(code(offset), ErrorCode.OFFSET_OUT_OF_RANGE, `${offset}`);
  const waiting = client.send('Fetch', 12, fetch(world, 12, [{ topic: 't', offset: 2 }]));
  assert(!waiting.isAnswered, 'past the high watermark: wait');
  world.settle();
  assert.deepEqual(valuesIn(fetchedOne(waiting.response()).records), ['1 b', '2 c']);
  const outside = fetchedOne(
    client.call('Fetch', 12, fetch(world, 12, [{ topic: 't', offset: 9 }])),
  );
  assert.deepEqual(
    [outside.highWatermark, outside.lastStableOffset, outside.logStartOffset],
    [-1n, -1n, -1n],
  );
});

test('nothing unflushed is given out, also when flushed batches lie before it', async () => {
  const { world, client } = await withClient();
  put(world, 't', 0, batchOf(['a']));
  client.send('Produce', 9, produce(world, 9, 1, [{ topic: 't', records: batchOf(['b']) }]));
  world.endTurn();
  const one = fetchedOne(client.call('Fetch', 12, fetch(world, 12, [{ topic: 't' }])));
  assert.deepEqual([valuesIn(one.records), one.highWatermark], [['0 a'], 1n]);
});

test('trap 7: read_committed has a list of aborted transactions, read_uncommitted has none', async () => {
  const { world, client } = await withClient();
  put(world, 't', 0, batchOf(['a']));
  const committed = fetch(world, 12, [{ topic: 't' }], { isolationLevel: 1 });
  assert.deepEqual(fetchedOne(client.call('Fetch', 12, committed)).abortedTransactions, []);
  assert.equal(
    fetchedOne(client.call('Fetch', 12, fetch(world, 12, [{ topic: 't' }]))).abortedTransactions,
    null,
  );
});

test('epochs: an old one is fenced, one from the future is unknown (KIP-320)', async () => {
  const { world, client } = await withClient();
  put(world, 't', 0, batchOf(['a']));
  world.leader('t').lead(loneState(3), 0);
  const code = (currentLeaderEpoch: number): number =>
    fetchedOne(client.call('Fetch', 9, fetch(world, 9, [{ topic: 't', currentLeaderEpoch }])))
      .errorCode;
  assert.deepEqual([-1, 2, 3, 4].map(code), [
    ErrorCode.NONE,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.NONE,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
  ]);
});

test('divergence: where the history of the client leaves ours (KIP-595)', async () => {
  const { world, client } = await withClient();
  put(world, 't', 0, batchOf(['a', 'b']));
  world.leader('t').lead(loneState(4), 0);
  put(world, 't', 0, batchOf(['c']));
  const look = (lastFetchedEpoch: number, offset: number) =>
    fetchedOne(
      client.call('Fetch', 12, fetch(world, 12, [{ topic: 't', lastFetchedEpoch, offset }])),
    );
  const same = look(4, 3 - 1);
  assert.deepEqual([same.errorCode, same.divergingEpoch], [0, { epoch: -1, endOffset: -1n }]);
  const unknownEpoch = look(2, 2);
  assert.deepEqual(unknownEpoch.divergingEpoch, { epoch: 0, endOffset: 2n });
  assert.equal((unknownEpoch.records as Uint8Array).length, 0);
  assert.deepEqual(
    look(0, 3).divergingEpoch,
    { epoch: 0, endOffset: 2n },
    'it has more of epoch 0',
  );
  assert.deepEqual(look(0, 2).divergingEpoch, { epoch: -1, endOffset: -1n });
  assert.equal(
    look(9, 2).errorCode,
    ErrorCode.OFFSET_OUT_OF_RANGE,
    'no epoch of ours is that young',
  );
});

test('unknown topics: by name, by id, and partitions that do not exist', async () => {
  const { world, client } = await withClient();
  const code = (version: number, topic: object): number =>
    fetchedOne(
      client.call('Fetch', version, {
        ...fetch(world, version, []),
        topics: [
          { ...topic, partitions: [{ partition: 0, fetchOffset: 0n, partitionMaxBytes: 1 }] },
        ],
      }),
    ).errorCode;
  assert.equal(code(12, { topic: 'nobody' }), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
  assert.equal(code(12, { topic: '' }), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
  assert.equal(code(13, { topicId: uuids(5)() }), ErrorCode.UNKNOWN_TOPIC_ID);
  assert.equal(code(13, { topicId: uuidZero }), ErrorCode.UNKNOWN_TOPIC_ID);
  for (const version of [12, 13])
    for (const partition of [3, -1])
      assert.equal(
        fetchedOne(
          client.call('Fetch', version, fetch(world, version, [{ topic: 't', partition }])),
        ).errorCode,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
      );
});

test('an error in one partition answers at once, with the records of the others', async () => {
  const { world, client } = await withClient();
  put(world, 't', 1, batchOf(['a']));
  const wanted: Wanted[] = [
    { topic: 't', offset: 99 },
    { topic: 't', partition: 1 },
  ];
  const answer = fetched(
    client.call('Fetch', 12, fetch(world, 12, wanted, { minBytes: 1_000_000 })),
  );
  assert.equal(answer[0]?.errorCode, ErrorCode.OFFSET_OUT_OF_RANGE);
  assert.deepEqual(valuesIn(answer[1]?.records), ['0 a']);
});

test('up to v5 a failed directory reads as NOT_LEADER_OR_FOLLOWER, since clients take the real error for fatal', async () => {
  const { world, client } = await withClient();
  world.leader('t').refuse(ErrorCode.KAFKA_STORAGE_ERROR);
  const code = (version: number): number =>
    fetchedOne(client.call('Fetch', version, fetch(world, version, [{ topic: 't' }]))).errorCode;
  assert.deepEqual(
    [code(5), code(6)],
    [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR],
  );
});

test.run();
