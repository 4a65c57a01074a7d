/**
 * What has cost other brokers bugs, fetch side: sessions, the whole batch around an offset, exact limits and waits.
 * The numbers in the tests' names are those of `protocol_traps.test.ts`.
 *
 *   node test/scenario/fetch_traps.test.ts
 */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { encodeBatch } from '../../engine/batch/encode.ts';
import { Codec } from '../../engine/batch/header.ts';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { BrokerProcess } from '../harness/broker_process.ts';
import { Client, record, textOf } from '../harness/client.ts';

const test = suite('fetch traps');

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

async function newTopic(partitions = 1): Promise<string> {
  topics += 1;
  const name = `fetch-${topics}`;
  await client.createTopic(name, partitions);
  return name;
}

test('5: an incremental fetch that names no partition fetches what the session holds', async () => {
  const topic = await newTopic(2);
  const parts = [0, 1].map((partition) => ({ topic, partition, offset: 0 }));
  const first = await client.fetch(parts, { sessionEpoch: 0 });
  const { sessionId } = first;
  assert(sessionId > 0);
  assert.equal(first.responses.flatMap(({ partitions }) => partitions).length, 2);
  await client.produceOne(topic, 1, [record('news')]);
  const second = await client.fetch([], { sessionId, sessionEpoch: 1, maxWaitMs: 5_000 });
  const found = second.responses.flatMap(({ partitions }) => partitions);
  assert.deepEqual(
    found.map(({ partitionIndex }) => partitionIndex),
    [1],
    'only what has changed is in an incremental answer',
  );
  assert((found[0]?.records?.length ?? 0) > 0);
  // The offset was not moved on, so the record comes again.
  const third = await client.fetch([], { sessionId, sessionEpoch: 2, maxWaitMs: 5_000 });
  assert((third.responses[0]?.partitions[0]?.records?.length ?? 0) > 0);
});

test('5: forgotten partitions leave the session, and sessions have rules about their epochs', async () => {
  const topic = await newTopic(2);
  const parts = [0, 1].map((partition) => ({ topic, partition, offset: 0 }));
  const { sessionId } = await client.fetch(parts, { sessionEpoch: 0 });
  for (const partition of [0, 1]) await client.produceOne(topic, partition, [record('news')]);
  const forgotten = [{ topic, partition: 0 }];
  const answer = await client.fetch([], { sessionId, sessionEpoch: 1, forgotten });
  assert.deepEqual(
    answer.responses.flatMap(({ partitions }) => partitions.map((one) => one.partitionIndex)),
    [1],
  );
  const wrong = await client.fetch([], { sessionId, sessionEpoch: 7 });
  assert.equal(wrong.errorCode, ErrorCode.INVALID_FETCH_SESSION_EPOCH);
  const unknown = await client.fetch([], { sessionId: sessionId ^ 1, sessionEpoch: 1 });
  assert.equal(unknown.errorCode, ErrorCode.FETCH_SESSION_ID_NOT_FOUND);
  const closed = await client.fetch([], { sessionId, sessionEpoch: -1 });
  assert.equal(closed.errorCode, ErrorCode.NONE);
  assert.equal(closed.sessionId, 0);
  const after = await client.fetch([], { sessionId, sessionEpoch: 2 });
  assert.equal(after.errorCode, ErrorCode.FETCH_SESSION_ID_NOT_FOUND);
});

test('6: a fetch offset inside a batch returns the whole batch', async () => {
  const topic = await newTopic();
  const records = Array.from({ length: 10 }, (_, index) => record(`${index}`));
  for (const codec of [Codec.none, Codec.zstd])
    await client.produceOne(topic, 0, { records, codec });
  for (const offset of [3, 9, 10, 17]) {
    const data = await client.fetchOne(topic, 0, offset, { partitionMaxBytes: 1 });
    const base = Number(Buffer.from(data.records ?? []).readBigInt64BE(0));
    assert.equal(base, offset < 10 ? 0 : 10, `fetch at ${offset}`);
  }
  assert.deepEqual(
    (await client.readAll(topic, 0, 13)).map(({ value }) => textOf(value)),
    ['3', '4', '5', '6', '7', '8', '9'],
  );
});

test('6: the first batch may exceed every limit, and the others may not', async () => {
  const topic = await newTopic(2);
  const batch = encodeBatch({ records: [{ value: new Uint8Array(50_000) }] });
  for (const partition of [0, 1])
    for (let index = 0; index < 3; index += 1) await client.produceOne(topic, partition, batch);
  const sizes = async (maxBytes: number, partitionMaxBytes: number): Promise<number[]> => {
    const parts = [0, 1].map((partition) => ({
      topic,
      partition,
      offset: 0,
      maxBytes: partitionMaxBytes,
    }));
    const { responses } = await client.fetch(parts, { maxBytes });
    return responses.flatMap(({ partitions }) =>
      partitions.map(({ records }) => records?.length ?? 0),
    );
  };
  const one = batch.length;
  assert.deepEqual(await sizes(1, 1), [one, 0]);
  assert.deepEqual(
    await sizes(1 << 20, 1),
    [one, 0],
    'only the first partition may exceed its limit',
  );
  assert.deepEqual(await sizes(1 << 20, 2 * one + 10), [2 * one, 2 * one]);
  assert.deepEqual(await sizes(3 * one, 1 << 20), [3 * one, 0]);
});

test('6: min_bytes waits for exactly so many bytes, over all partitions', async () => {
  const topic = await newTopic(2);
  const batch = encodeBatch({ records: [{ value: new Uint8Array(1_000) }] });
  const parts = [0, 1].map((partition) => ({ topic, partition, offset: 0 }));
  const reader = await Client.connect(broker);
  await reader.metadata([topic]);
  for (const [minBytes, needed] of [
    [1, 1],
    [batch.length, 1],
    [batch.length + 1, 2],
    [3 * batch.length, 3],
  ] as const) {
    const offsets = await Promise.all(
      [0, 1].map((partition) => client.endOffset(topic, partition)),
    );
    const from = parts.map((part, index) => ({ ...part, offset: offsets[index] as number }));
    let isAnswered = false;
    const answer = reader.fetch(from, { minBytes, maxWaitMs: 30_000 }).then((value) => {
      isAnswered = true;
      return value;
    });
    for (let sent = 0; sent < needed; sent += 1) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      assert(
        !isAnswered,
        `${minBytes} bytes were wanted, and ${sent} batches of ${batch.length} were enough`,
      );
      await client.produceOne(topic, sent % 2, batch);
    }
    const { responses } = await answer;
    const bytes = responses.flatMap(({ partitions }) =>
      partitions.map(({ records }) => records?.length ?? 0),
    );
    assert.equal(
      bytes.reduce((sum, length) => sum + length, 0),
      needed * batch.length,
    );
  }
  reader.close();
});

test('6: max_wait ends a wait for more, with what there is', async () => {
  const topic = await newTopic();
  await client.produceOne(topic, 0, [record('little')]);
  const startedMs = performance.now();
  const data = await client.fetchOne(topic, 0, 0, { minBytes: 1 << 20, maxWaitMs: 400 });
  assert(performance.now() - startedMs >= 399, 'answered before max_wait');
  assert((data.records?.length ?? 0) > 0);
  const empty = await client.fetchOne(topic, 0, 1, { minBytes: 1, maxWaitMs: 100 });
  assert.equal(empty.records?.length ?? 0, 0);
});

test.run();
