import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { baseTimestampOf, maxTimestampOf } from '../../../engine/batch/header.ts';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { uuidZero } from '../../../replication/metadata/records.ts';
import { uuids } from '../../replication/metadata/fixtures.ts';
import { WorldConnection } from '../data_path/client.ts';
import { batchOf, fetch, fetchedOne, produce, produced } from '../data_path/requests.ts';
import { assertNoMemoryHeld, stored, withClient } from '../data_path/world_client.ts';
import { startMs } from '../data_path/world_clock.ts';

const test = suite('00 produce');

const oldest = 3;
const newest = 13;
const versions = Array.from({ length: newest - oldest + 1 }, (_, at) => oldest + at);

for (const version of versions) {
  test(`v${version}: an answer has offset, time and log start as far as the version has them`, async () => {
    const { world, client } = await withClient();
    for (const base of [0, 2]) {
      const batch = batchOf(['a', 'b']);
      const sent = client.send(
        'Produce',
        version,
        produce(world, version, -1, [{ topic: 't', records: batch }]),
      );
      world.settle();
      const response = sent.response();
      assert.equal(response.responses[0]?.name, version < 13 ? 't' : '');
      assert.equal(response.responses[0]?.topicId, version < 13 ? uuidZero : world.idOf('t'));
      const one = produced(response);
      assert.deepEqual([one.index, one.errorCode, one.baseOffset], [0, 0, BigInt(base)]);
      assert.equal(one.logAppendTimeMs, -1n);
      assert.equal(one.logStartOffset, version >= 5 ? 0n : -1n);
      assert.deepEqual([one.errorMessage, one.recordErrors], [null, []]);
    }
    assert.deepEqual(stored(world), ['0 a', '1 b', '2 a', '3 b']);
    assertNoMemoryHeld(world);
  });

  test(`v${version}: each partition has its own error, and its text from v8`, async () => {
    const { world, client } = await withClient({
      topics: [
        ['t', 1],
        ['compacted', 1, { 'cleanup.policy': 'compact' }],
      ],
    });
    const unknown =
      version >= 13
        ? { topicId: uuids(99)(), partitionData: [{ index: 0, records: batchOf(['x']) }] }
        : { name: 'nobody', partitionData: [{ index: 0, records: batchOf(['x']) }] };
    const keyless = batchOf([], {
      records: [{ timestamp: BigInt(startMs), value: Buffer.from('v') }],
    });
    const request = produce(world, version, -1, [
      { topic: 't', records: batchOf(['good']) },
      { topic: 't', partition: 7, records: batchOf(['x']) },
      { topic: 'compacted', records: keyless },
      { topic: 't', records: null },
    ]);
    const sent = client.send('Produce', version, {
      ...request,
      topicData: [...request.topicData, unknown],
    });
    world.settle();
    const answers = sent
      .response()
      .responses.map(({ partitionResponses }) => partitionResponses[0]);
    assert.deepEqual(
      answers.map((one) => one?.errorCode),
      [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_RECORD,
        version >= 13 ? ErrorCode.UNKNOWN_TOPIC_ID : ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
      ],
    );
    for (const one of answers.slice(1)) {
      assert.equal(one?.baseOffset, -1n);
      assert.equal(typeof one?.errorMessage, version >= 8 ? 'string' : 'object');
    }
    const [recordError] = answers[2]?.recordErrors ?? [];
    assert.equal(recordError?.batchIndex, version >= 8 ? 0 : undefined);
    assert.deepEqual(stored(world), ['0 good']);
    assertNoMemoryHeld(world);
  });
}

/** Produce v0-2, which has no schema any more. */
function oldProduce(version: number, acks: number): Buffer {
  const body = Buffer.alloc(200);
  let at = 0;
  const int16 = (value: number): void => {
    at = body.writeInt16BE(value, at);
  };
  const int32 = (value: number): void => {
    at = body.writeInt32BE(value, at);
  };
  int16(0);
  int16(version);
  int32(77);
  int16(-1);
  int16(acks);
  int32(1_000);
  int32(1);
  int16(1);
  at += body.write('t', at);
  int32(2);
  for (const partition of [4, 5]) {
    int32(partition);
    int32(10);
    at += 10;
  }
  return body.subarray(0, at);
}

for (const version of [0, 1, 2])
  test(`trap 2: v${version} is answered with UNSUPPORTED_VERSION in its own form`, async () => {
    const { client } = await withClient();
    const context = client.dispatch(oldProduce(version, 1));
    const bytes = Buffer.from(context.responseBytes as Uint8Array);
    assert.equal(bytes.readInt32BE(0), bytes.length - 4);
    assert.equal(bytes.readInt32BE(4), 77);
    assert.deepEqual(
      [bytes.readInt32BE(8), bytes.readInt16BE(12), bytes.toString('latin1', 14, 15)],
      [1, 1, 't'],
    );
    assert.equal(bytes.readInt32BE(15), 2);
    let at = 19;
    for (const partition of [4, 5]) {
      assert.equal(bytes.readInt32BE(at), partition);
      assert.equal(bytes.readInt16BE(at + 4), ErrorCode.UNSUPPORTED_VERSION);
      assert.equal(bytes.readBigInt64BE(at + 6), -1n);
      if (version >= 2) assert.equal(bytes.readBigInt64BE(at + 14), -1n);
      at += version >= 2 ? 22 : 14;
    }
    assert.equal(bytes.length, at + (version >= 1 ? 4 : 0));
    const silent = new WorldConnection((await withClient()).world);
    silent.dispatch(oldProduce(version, 0));
    assert.match(silent.failure ?? '', /not supported/);
  });

test('trap 2: message formats 0 and 1 are refused in words', async () => {
  const { world, client } = await withClient();
  for (const magic of [0, 1]) {
    const records = batchOf(['x']);
    records[16] = magic;
    const one = produced(
      client.call('Produce', 9, produce(world, 9, -1, [{ topic: 't', records }])),
    );
    assert.equal(one.errorCode, ErrorCode.INVALID_RECORD);
    assert.match(one.errorMessage ?? '', /format/);
  }
});

test('trap 4: the id that Metadata gives is the one that produces', async () => {
  const { world, client } = await withClient();
  const metadata = client.call('Metadata', 12, { topics: [{ name: 't' }] });
  const topicId = metadata.topics[0]?.topicId ?? '';
  assert.notEqual(topicId, uuidZero);
  const sent = client.send('Produce', 13, {
    acks: -1,
    timeoutMs: 1_000,
    topicData: [{ topicId, partitionData: [{ index: 1, records: batchOf(['v']) }] }],
  });
  world.settle();
  assert.equal(produced(sent.response()).errorCode, ErrorCode.NONE);
  assert.deepEqual(stored(world, 't', 1), ['0 v']);
});

test('trap 8: any of the last five batches sent again is a success with its first offset and time', async () => {
  const { world, client } = await withClient();
  const send = (at: number) => {
    const records = batchOf([`v${at}`, `w${at}`], {
      producerId: 5,
      producerEpoch: 1,
      baseSequence: at * 2,
    });
    return client.send('Produce', 8, produce(world, 8, -1, [{ topic: 't', records }]));
  };
  for (let at = 0; at < 6; at += 1) send(at);
  world.settle();
  for (let at = 1; at < 6; at += 1) {
    const one = produced(send(at).response());
    assert.deepEqual([one.errorCode, one.baseOffset], [ErrorCode.NONE, BigInt(at * 2)]);
    assert.equal(
      one.logAppendTimeMs,
      BigInt(startMs),
      'the max timestamp of the first one, as Kafka says it',
    );
  }
  const tooOld = produced(send(0).response());
  assert.equal(tooOld.errorCode, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER);
  assert.equal(stored(world).length, 12, 'each once');
});

test('trap 9: under LogAppendTime the answer and the records have the time of the append', async () => {
  const { world, client } = await withClient({
    topics: [['t', 1, { 'message.timestamp.type': 'LogAppendTime' }]],
  });
  world.advance(12_345);
  const records = batchOf(['a'], { producerId: 3, producerEpoch: 0, baseSequence: 0 });
  const again = Uint8Array.from(records);
  const sent = client.send('Produce', 7, produce(world, 7, -1, [{ topic: 't', records }]));
  world.settle();
  assert.equal(produced(sent.response()).logAppendTimeMs, BigInt(startMs + 12_345));
  world.advance(1_000);
  const repeated = client.call(
    'Produce',
    7,
    produce(world, 7, -1, [{ topic: 't', records: again }]),
  );
  assert.equal(produced(repeated).logAppendTimeMs, BigInt(startMs + 12_345), 'of the first one');
  const answer = client.call('Fetch', 11, fetch(world, 11, [{ topic: 't' }]));
  assert.equal(
    maxTimestampOf(fetchedOne(answer).records as Uint8Array, 0),
    BigInt(startMs + 12_345),
  );
});

test('trap 9: an unset max timestamp is worked out before the batch is stored', async () => {
  const { world, client } = await withClient();
  const timestamp = BigInt(startMs - 1_000);
  const records = batchOf([], {
    records: [0n, 7n, 3n].map((ms) => ({ timestamp: timestamp + ms, value: Buffer.from('v') })),
    maxTimestamp: -1n,
  });
  client.send('Produce', 9, produce(world, 9, -1, [{ topic: 't', records }]));
  world.settle();
  const answer = client.call('Fetch', 11, fetch(world, 11, [{ topic: 't' }]));
  assert.equal(maxTimestampOf(fetchedOne(answer).records as Uint8Array, 0), timestamp + 7n);
});

test('trap 13: acks=0 gets no answer, good or bad, and an error closes the connection', async () => {
  const { world, client } = await withClient();
  const good = client.send(
    'Produce',
    9,
    produce(world, 9, 0, [{ topic: 't', records: batchOf(['v']) }]),
  );
  world.endTurn();
  assert(good.isSilent);
  assert.equal(client.failure, null);
  const mixed = client.send(
    'Produce',
    9,
    produce(world, 9, 0, [
      { topic: 't', records: batchOf(['w']) },
      { topic: 'unknown', records: batchOf(['x']) },
    ]),
  );
  world.settle();
  assert.match(client.failure ?? '', /acks=0.*unknown-0/);
  assert(!mixed.isAnswered);
  assert.deepEqual(stored(world), ['0 v', '1 w']);
  assertNoMemoryHeld(world);
});

test('trap 13: acks=0 with a write that fails closes the connection', async () => {
  const { world, client } = await withClient();
  world.disk.writeError = 'ENOSPC';
  client.send('Produce', 9, produce(world, 9, 0, [{ topic: 't', records: batchOf(['v']) }]));
  assert.equal(client.failure, null);
  world.settle();
  assert.match(client.failure ?? '', /t-0/);
  assertNoMemoryHeld(world);
});

test('trap 15: a topic made by asking for its metadata takes records at once', async () => {
  const { world, client } = await withClient();
  const metadata = await client.callLater('Metadata', 9, { topics: [{ name: 'new.topic_name' }] });
  const code = metadata.topics[0]?.errorCode;
  const first: number[] = [
    ErrorCode.NONE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
  ];
  assert(code !== undefined && first.includes(code), `error ${code}`);
  const sent = client.send(
    'Produce',
    9,
    produce(world, 9, -1, [{ topic: 'new.topic_name', records: batchOf(['v']) }]),
  );
  world.settle();
  assert.equal(produced(sent.response()).errorCode, ErrorCode.NONE);
});

test('trap 16: timestamps beyond 2^53 come back bit by bit', async () => {
  const { world, client } = await withClient({
    topics: [['t', 1, { 'message.timestamp.after.max.ms': '9223372036854775807' }]],
  });
  const timestamp = 1_700_000_000_123_456_789n;
  const records = batchOf([], {
    records: [0n, 1n].map((ns) => ({ timestamp: timestamp + ns, value: Buffer.from('v') })),
  });
  const sent = client.send('Produce', 9, produce(world, 9, -1, [{ topic: 't', records }]));
  world.settle();
  assert.equal(produced(sent.response()).errorCode, ErrorCode.NONE);
  const bytes = fetchedOne(client.call('Fetch', 11, fetch(world, 11, [{ topic: 't' }])))
    .records as Uint8Array;
  assert.deepEqual(
    [baseTimestampOf(bytes, 0), maxTimestampOf(bytes, 0)],
    [timestamp, timestamp + 1n],
  );
  const listed = client.call('ListOffsets', 7, {
    replicaId: -1,
    topics: [{ name: 't', partitions: [{ partitionIndex: 0, timestamp: timestamp + 1n }] }],
  });
  const [found] = listed.topics[0]?.partitions ?? [];
  assert.deepEqual([found?.offset, found?.timestamp], [1n, timestamp + 1n]);
});

test.run();
