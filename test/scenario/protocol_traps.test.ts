/**
 * What has cost other brokers bugs, tried over real sockets: each test is one rule of the protocol that clients rely
 * on and that is easily got wrong.
 *
 *   node test/scenario/protocol_traps.test.ts
 */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { crc32c } from '../../engine/batch/crc.ts';
import { encodeBatch } from '../../engine/batch/encode.ts';
import {
  batchCrcStart,
  batchOffset,
  Codec,
  writeInt32,
  writeInt64,
} from '../../engine/batch/header.ts';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { ApiKey } from '../../net/protocol/api_key.gen.ts';
import { codecFor } from '../../net/protocol/codec.ts';
import { errorName } from '../../net/protocol/errors.ts';
import { Reader } from '../../net/protocol/reader.ts';
import { BrokerProcess } from '../harness/broker_process.ts';
import { Client, type ProducePart, record } from '../harness/client.ts';
import { Connection } from '../harness/connection.ts';
import { frame } from '../harness/hostile_frames.ts';

const test = suite('protocol traps');

let broker: BrokerProcess;
let client: Client;
let topics = 0;

test.before(async () => {
  broker = await BrokerProcess.start();
});
test.after(async () => {
  await broker.dispose();
});
test.before.each(async () => {
  client = await Client.connect(broker);
});
test.after.each(() => client.close());

async function newTopic(
  configs: Record<string, string | number> = {},
  partitions = 1,
): Promise<string> {
  topics += 1;
  const name = `trap-${topics}`;
  await client.createTopic(name, partitions, configs);
  return name;
}

async function codeOf(part: ProducePart): Promise<string> {
  const [answer] = await client.produce([part]);
  return errorName(answer?.errorCode ?? -1);
}

test('1: ApiVersions answers have header 0 in every version', async () => {
  for (const version of [0, 1, 2, 3, 4]) {
    const body = version >= 3 ? [5, ...Buffer.from('test'), 2, 0x31, 0] : [];
    const bytes = await client.connection.exchangeRaw(frame('ApiVersions', version, body), 7);
    const reader = new Reader(bytes, 4);
    const answer = codecFor('ApiVersionsResponse', version).decode(reader);
    assert.equal(reader.remaining, 0, `v${version}`);
    assert.equal(answer.errorCode, ErrorCode.NONE);
    assert(answer.apiKeys.length > 10, `v${version}: ${answer.apiKeys.length} APIs`);
  }
});

test('1: an ApiVersions version of the future is answered in version 0, and the connection stays', async () => {
  const bytes = await client.connection.exchangeRaw(frame('ApiVersions', 99, [9, 9, 9]), 7);
  const reader = new Reader(bytes, 4);
  const answer = codecFor('ApiVersionsResponse', 0).decode(reader);
  assert.equal(reader.remaining, 0);
  assert.equal(answer.errorCode, ErrorCode.UNSUPPORTED_VERSION);
  const own = answer.apiKeys.find(({ apiKey }) => apiKey === ApiKey.ApiVersions);
  assert.equal(own?.minVersion, 0);
  assert((own?.maxVersion ?? 0) >= 4);
  await client.metadata();
});

test('2: Produce is advertised from 0 on, and 0 to 2 are refused with UNSUPPORTED_VERSION', async () => {
  const { apiKeys } = await client.request('ApiVersions', {
    clientSoftwareName: 'test',
    clientSoftwareVersion: '1',
  });
  const produce = apiKeys.find(({ apiKey }) => apiKey === ApiKey.Produce);
  assert.equal(produce?.minVersion, 0);
  // acks 1, timeout, one topic "t" with one partition 0 and no records
  const body = [0, 1, 0, 0, 0, 9, 0, 0, 0, 1, 0, 1, 0x74, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
  for (const version of [0, 1, 2]) {
    const bytes = Buffer.from(
      await client.connection.exchangeRaw(frame('Produce', version, body), 7),
    );
    // correlation id, one topic "t", one partition 0
    assert.equal(bytes.readInt32BE(4), 1);
    assert.equal(bytes.toString('utf8', 10, 11), 't');
    assert.equal(bytes.readInt16BE(19), ErrorCode.UNSUPPORTED_VERSION, `v${version}`);
    assert.equal(bytes.length, [29, 33, 41][version]);
  }
  await client.metadata();
});

test('2: message formats 0 and 1 are refused clearly, and nothing is stored', async () => {
  const topic = await newTopic();
  for (const magic of [0, 1]) {
    const batch = encodeBatch({ records: [record('old')] });
    batch[batchOffset.magic] = magic;
    const [answer] = await client.produce([{ topic, partition: 0, batch }]);
    assert.notEqual(answer?.errorCode, ErrorCode.NONE, `magic ${magic}`);
    assert.match(answer?.errorMessage ?? '', /magic|format/i);
  }
  assert.equal(await client.endOffset(topic, 0), 0);
});

test('8: any of the last five batches is a duplicate, with its first offset and time', async () => {
  const topic = await newTopic({ 'message.timestamp.type': 'LogAppendTime' });
  const identity = await client.initProducerId();
  const send = async (
    baseSequence: number,
  ): Promise<{ code: string; offset: number; time: bigint }> => {
    // From 1970: were producers forgotten by their clients' clocks, this one would be.
    const batch = encodeBatch({
      ...identity,
      baseSequence,
      records: [record(`${baseSequence}`, 1n)],
    });
    const [answer] = await client.produce([{ topic, partition: 0, batch }]);
    assert(answer !== undefined);
    return {
      code: errorName(answer.errorCode),
      offset: Number(answer.baseOffset),
      time: answer.logAppendTimeMs,
    };
  };
  const first = [];
  for (let sequence = 0; sequence < 8; sequence += 1) first.push(await send(sequence));
  for (let sequence = 3; sequence < 8; sequence += 1)
    assert.deepEqual(await send(sequence), first[sequence], `sequence ${sequence} came again`);
  const older = await send(1);
  assert(
    ['DUPLICATE_SEQUENCE_NUMBER', 'OUT_OF_ORDER_SEQUENCE_NUMBER'].includes(older.code),
    older.code,
  );
  assert.equal((await send(9)).code, 'OUT_OF_ORDER_SEQUENCE_NUMBER');
  assert.equal(await client.endOffset(topic, 0), 8);
});

test('9: the largest timestamp of a batch is computed where the client left it unset', async () => {
  const topic = await newTopic();
  const now = BigInt(Date.now());
  const batch = encodeBatch({
    records: [record('a', now - 5n), record('b', now), record('c', now - 9n)],
  });
  writeInt64(batch, batchOffset.maxTimestamp, -1n);
  writeInt32(batch, batchOffset.crc, crc32c(batch.subarray(batchCrcStart)) | 0);
  await client.produceOne(topic, 0, batch);
  assert.deepEqual(await client.listOffset(topic, 0, -3), {
    offset: 1,
    timestamp: now,
    leaderEpoch: 0,
  });
  const [fetched] = await client.readAll(topic, 0);
  assert.equal(fetched?.timestamp, now - 5n);
});

test('9: ListOffsets by time returns the first record at or after it, with its own timestamp', async () => {
  const topic = await newTopic();
  const start = BigInt(Date.now()) - 100_000n;
  for (let base = 0n; base < 40n; base += 10n)
    await client.produceOne(topic, 0, {
      codec: base % 20n === 0n ? Codec.none : Codec.gzip,
      records: Array.from({ length: 10 }, (_, index) =>
        record('x', start + (base + BigInt(index)) * 10n),
      ),
    });
  for (const [time, offset] of [
    [0n, 0],
    [10n, 1],
    [11n, 2],
    [99n, 10],
    [255n, 26],
    [390n, 39],
  ] as const) {
    const found = await client.listOffset(topic, 0, start + time);
    assert.equal(found.offset, offset, `at +${time} ms`);
    assert.equal(found.timestamp, start + BigInt(offset) * 10n);
  }
  const none = await client.listOffset(topic, 0, start + 391n);
  assert.deepEqual([none.offset, none.timestamp], [-1, -1n]);
  const ends: [number, number][] = [
    [-1, 40],
    [-2, 0],
    [-3, 39],
    [-4, 0],
    [-5, -1],
  ];
  for (const [special, offset] of ends)
    assert.equal((await client.listOffset(topic, 0, special)).offset, offset, `special ${special}`);
});

test('9: LogAppendTime is in the answer and in the records, CreateTime is the client’s own', async () => {
  const old = BigInt(Date.now()) - 1_000_000n;
  const appended = await newTopic({ 'message.timestamp.type': 'LogAppendTime' });
  for (const codec of [Codec.none, Codec.lz4]) {
    const batch = { codec, records: [record('a', old), record('b', old)] };
    const [answer] = await client.produce([{ topic: appended, partition: 0, batch }]);
    assert((answer?.logAppendTimeMs ?? -1n) > old);
    const read = await client.readAll(appended, 0, Number(answer?.baseOffset));
    assert.deepEqual(
      read.map(({ timestamp }) => timestamp),
      [answer?.logAppendTimeMs, answer?.logAppendTimeMs],
    );
  }
  const created = await newTopic();
  const [answer] = await client.produce([
    { topic: created, partition: 0, batch: [record('a', old)] },
  ]);
  assert.equal(answer?.logAppendTimeMs, -1n);
  assert.equal((await client.readAll(created, 0))[0]?.timestamp, old);
});

test('13: acks=0 gets no answer, and an error there closes the connection', async () => {
  const topic = await newTopic();
  await client.produce([{ topic, partition: 0, batch: [record('silent')] }], { acks: 0 });
  // The next answer is the metadata's, or the correlation ids would not match.
  await client.metadata();
  const data = await client.fetchOne(topic, 0, 0, { maxWaitMs: 10_000 });
  assert((data.records?.length ?? 0) > 0);
  const careless = await Client.connect(broker);
  await careless.metadata([topic]);
  await careless.produce([{ topic, partition: 99, batch: [record('lost')] }], { acks: 0 });
  await careless.connection.closed;
});

test('13: answers come in the order of the requests, whatever each takes', async () => {
  const topic = await newTopic({}, 2);
  const connection = await Connection.connect(broker);
  const topicId = await client.topicId(topic);
  const order: string[] = [];
  const note = (name: string) => (): void => void order.push(name);
  const big = encodeBatch({ records: [{ value: new Uint8Array(900_000) }] });
  const produce = (index: number, acks: number, records: Uint8Array): Promise<unknown> =>
    connection.request('Produce', 13, {
      acks,
      timeoutMs: 10_000,
      topicData: [{ topicId, partitionData: [{ index, records }] }],
    });
  const small = encodeBatch({ records: [record('small')] });
  await Promise.all([
    produce(0, -1, big).then(note('big, all')),
    produce(1, 1, small).then(note('small, 1')),
    produce(0, -1, small).then(note('small, all')),
    connection.request('Metadata', 12, { topics: null }).then(note('metadata')),
    produce(1, 1, small).then(note('another')),
  ]);
  assert.deepEqual(order, ['big, all', 'small, 1', 'small, all', 'metadata', 'another']);
  connection.close();
});

test('15: a topic made on first use is unknown or without a leader at first, and then there', async () => {
  const passing = ['UNKNOWN_TOPIC_OR_PARTITION', 'LEADER_NOT_AVAILABLE', 'NONE'];
  for (const name of ['made_on_use', 'Made.On-Use', 'x'.repeat(249)]) {
    const absent = await client.metadata([name], false);
    assert.equal(errorName(absent.topics[0]?.errorCode ?? -1), 'UNKNOWN_TOPIC_OR_PARTITION');
    let code = '';
    for (let attempt = 0; attempt < 100 && code !== 'NONE'; attempt += 1) {
      code = errorName((await client.metadata([name], true)).topics[0]?.errorCode ?? -1);
      assert(passing.includes(code), `${name}: ${code}`);
    }
    assert.equal(code, 'NONE');
    assert.equal(await client.produceOne(name, 0, [record('first')]), 0);
  }
});

test('15: names that are none, or that collide, are refused as in Kafka', async () => {
  for (const name of ['', '.', '..', 'a b', 'a/b', 'ü', 'x'.repeat(250)]) {
    const { topics: found } = await client.metadata([name], true);
    assert.equal(errorName(found[0]?.errorCode ?? -1), 'INVALID_TOPIC_EXCEPTION', `"${name}"`);
  }
  await client.createTopic('with.dots_and', 1);
  for (const name of ['with_dots_and', 'with.dots.and', 'with_dots.and'])
    await assert.rejects(client.createTopic(name, 1), /INVALID_TOPIC_EXCEPTION.*collide/i);
  await assert.rejects(client.createTopic('with.dots_and', 1), /TOPIC_ALREADY_EXISTS/);
});

test('16: numbers beyond 2^53 pass through unchanged', async () => {
  const topic = await newTopic({
    'message.timestamp.after.max.ms': '9223372036854775807',
    'message.timestamp.before.max.ms': '9223372036854775807',
  });
  const base = 1_764_438_000_123_456_789n;
  const times = [base, base + 1n, base + 2n, 2n ** 62n + 1n];
  for (const codec of [Codec.none, Codec.snappy])
    await client.produceOne(topic, 0, { codec, records: times.map((time) => record('ns', time)) });
  const read = await client.readAll(topic, 0);
  assert.deepEqual(
    read.map(({ timestamp }) => timestamp),
    [...times, ...times],
  );
  assert.deepEqual(await client.listOffset(topic, 0, base + 1n), {
    offset: 1,
    timestamp: base + 1n,
    leaderEpoch: 0,
  });
  const largest = await client.listOffset(topic, 0, -3);
  assert.equal(largest.timestamp, 2n ** 62n + 1n);
  assert.equal(
    await codeOf({ topic, partition: 0, batch: [record('late', 2n ** 63n - 1n)] }),
    'NONE',
  );
});

test.run();
