/** What the client's producer promises, tested against whichever broker. */
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { jsonSerializer, type ProducerOptions } from '../../net/client/client.ts';
import type { Launcher } from './broker_process.ts';
import { type Client as RawClient, textOf } from './client.ts';
import { failure, runStaged, type Stage } from './client_stage.ts';
import type { FetchedRecord } from './fetched_records.ts';

/** All records of a topic, by partition. */
async function readTopic(
  raw: RawClient,
  topic: string,
  partitions = 1,
): Promise<FetchedRecord[][]> {
  const all: FetchedRecord[][] = [];
  for (let partition = 0; partition < partitions; partition += 1)
    all.push(await raw.readAll(topic, partition));
  return all;
}

/** As `deepEqual`, but says where the first difference is instead of showing all. */
function assertSame<T>(found: readonly T[], expected: readonly T[]): void {
  const at = expected.findIndex((value, index) => found[index] !== value);
  assert.equal(at, -1, `at ${at}: ${String(found[at])} instead of ${String(expected[at])}`);
  assert.equal(found.length, expected.length);
}

const numbers = (count: number): number[] => Array.from({ length: count }, (_, at) => at);

const codecs = ['none', 'gzip', 'snappy', 'lz4', 'zstd'] as const;

type Step = (stage: Stage) => Promise<void>;

const delivery: Readonly<Record<string, Step>> = {
  'a message is delivered as it was sent': async ({ client, raw }) => {
    await raw.createTopic('single');
    await using producer = client.producer();
    const headers = { trace: 'abc', none: null };
    const message = { topic: 'single', key: 'k', value: 'Grüße', headers, timestampMs: 1_700_000 };
    const where = await producer.send(message);
    assert.deepEqual(where, { topic: 'single', partition: 0, offset: 0, timestampMs: 1_700_000 });
    assert.equal((await producer.send({ topic: 'single', value: null })).offset, 1);
    const [[first, second]] = (await readTopic(raw, 'single')) as [[FetchedRecord, FetchedRecord]];
    assert.equal(textOf(first.key), 'k');
    assert.equal(textOf(first.value), 'Grüße');
    assert.equal(first.timestamp, 1_700_000n);
    assert.deepEqual(
      first.headers.map(({ key, value }) => [textOf(key), value === null ? null : textOf(value)]),
      [
        ['trace', 'abc'],
        ['none', null],
      ],
    );
    assert.deepEqual([second.key, second.value, second.headers], [null, null, []]);
    assert.ok(first.producerId >= 0, 'idempotent unless told otherwise');
  },

  'messages of one turn share a batch, in order': async ({ client, raw }) => {
    await raw.createTopic('turn');
    await using producer = client.producer();
    await producer.send({ topic: 'turn', value: 'first' });
    const sent = numbers(500).map((n) => producer.send({ topic: 'turn', value: `${n}` }));
    const offsets = (await Promise.all(sent)).map(({ offset }) => offset);
    assert.deepEqual(
      offsets,
      numbers(500).map((n) => n + 1),
    );
    assert.equal(producer.metrics.batches, 2);
    const [records = []] = await readTopic(raw, 'turn');
    assertSame(
      records.slice(1).map(({ value }) => textOf(value)),
      numbers(500).map(String),
    );
  },

  'every codec and every acks is delivered in order': async ({ client, raw }) => {
    await raw.createTopic('codecs');
    const expected: string[] = [];
    const run = async (options: ProducerOptions<string, string>): Promise<void> => {
      await using producer = client.producer({ ...options, batchBytes: 4_000 });
      const values = numbers(300).map((n) => `${JSON.stringify(options)} ${n} ${'x'.repeat(50)}`);
      expected.push(...values);
      const where = await Promise.all(
        values.map((value) => producer.send({ topic: 'codecs', value })),
      );
      const last = where.at(-1);
      assert.equal(last?.offset, options.acks === 0 ? -1 : expected.length - 1);
      assert.ok(producer.metrics.batches > 3);
    };
    for (const compression of codecs) await run({ compression });
    await run({ acks: 1 });
    await run({ idempotent: false });
    await run({ acks: 0 });
    // What is behind the others is there to be read only when they are, too.
    await run({ compression: 'lz4' });
    const [records = []] = await readTopic(raw, 'codecs');
    assertSame(
      records.map(({ value }) => textOf(value)),
      expected,
    );
  },

  'keys decide on partitions as in the Java client, and a message may name its own': async ({
    client,
    raw,
  }) => {
    await raw.createTopic('keys', 5);
    await using producer = client.producer();
    // murmur2 of each, made positive, modulo 5.
    const known: readonly (readonly [string, number])[] = [
      ['21', (-973932308 & 0x7fffffff) % 5],
      ['foobar', (-790332482 & 0x7fffffff) % 5],
      ['abc', 479470107 % 5],
    ];
    for (const [key, partition] of known) {
      const text = await producer.send({ topic: 'keys', key, value: 'v' });
      const bytes = await producer.send({ topic: 'keys', key: Buffer.from(key), value: 'v' });
      assert.deepEqual([text.partition, bytes.partition], [partition, partition], key);
    }
    const named = await producer.send({ topic: 'keys', key: 'abc', value: 'v', partition: 4 });
    assert.equal(named.partition, 4);
    const error = await failure(producer.send({ topic: 'keys', value: 'v', partition: 5 }));
    assert.equal(error.code, 'UNKNOWN_TOPIC_OR_PARTITION');
    assert.match(error.message, /partitions 0 to 4/);
    await using own = client.producer({ partitioner: ({ key }, count) => (key?.[0] ?? 0) % count });
    const where = await own.send({ topic: 'keys', key: Buffer.of(8), value: 'v' });
    assert.equal(where.partition, 3);
  },

  'memory is bounded: what has no room waits, and keeps its order': async ({ client, raw }) => {
    await raw.createTopic('bounded');
    await using producer = client.producer({ bufferBytes: 20_000, batchBytes: 4_000, lingerMs: 5 });
    const sent = numbers(400).map((n) =>
      producer.send({ topic: 'bounded', value: `${n}`.padEnd(500) }),
    );
    await sent[0];
    const { bufferedBytes, waitingSends } = producer.metrics;
    assert.ok(bufferedBytes <= 20_000 && waitingSends > 0, `${bufferedBytes}, ${waitingSends}`);
    await Promise.all(sent);
    assert.equal(producer.metrics.bufferedBytes, 0);
    const [records = []] = await readTopic(raw, 'bounded');
    assertSame(
      records.map(({ value }) => Number(textOf(value))),
      numbers(400),
    );
  },

  'lingering messages go out with flush, and with close': async ({ client, raw }) => {
    await raw.createTopic('linger');
    const producer = client.producer({ lingerMs: 600_000 });
    const first = producer.send({ topic: 'linger', value: 'a' });
    await producer.flush();
    assert.equal((await first).offset, 0);
    const second = producer.send({ topic: 'linger', value: 'b' });
    await producer.close();
    assert.equal((await second).offset, 1);
    assert.equal((await failure(producer.send({ topic: 'linger', value: 'c' }))).code, 'CLOSED');
  },

  'streams of messages are delivered, and end with the last one': async ({ client, raw }) => {
    await raw.createTopic('streams');
    await using producer = client.producer();
    const from = (text: string): Readable =>
      Readable.from(numbers(6_000).map((n) => ({ topic: 'streams', value: `${text} ${n}` })));
    await pipeline(from('node'), producer.writable());
    assert.equal(producer.metrics.records, 6_000);
    await (Readable.toWeb(from('web')) as ReadableStream).pipeTo(producer.webWritable());
    const [records = []] = await readTopic(raw, 'streams');
    assert.equal(textOf(records[5_999]?.value), 'node 5999');
    assert.equal(textOf(records[11_999]?.value), 'web 5999');
  },
};

const refusals: Readonly<Record<string, Step>> = {
  'a topic that does not exist is an error within seconds': async ({ client }) => {
    await using producer = client.producer();
    const error = await failure(producer.send({ topic: 'nowhere', value: 'v' }));
    assert.equal(error.code, 'UNKNOWN_TOPIC_OR_PARTITION');
    assert.match(error.message, /"nowhere".*no such topic/);
    assert.match(error.remedy ?? '', /millrace topic create/);
    const invalid = await failure(producer.send({ topic: 'no spaces', value: 'v' }));
    assert.equal(invalid.code, 'INVALID_TOPIC_EXCEPTION');
  },

  'a batch above max.message.bytes is split, a message above it refused': async ({
    client,
    raw,
  }) => {
    await raw.createTopic('small', 1, { 'max.message.bytes': '2000' });
    await using producer = client.producer();
    const before = numbers(200).map((n) => producer.send({ topic: 'small', value: `${n}` }));
    const large = producer.send({ topic: 'small', value: 'x'.repeat(3_000) });
    const after = numbers(200).map((n) => producer.send({ topic: 'small', value: `${n + 200}` }));
    const error = await failure(large);
    assert.equal(error.code, 'MESSAGE_TOO_LARGE');
    assert.match(error.remedy ?? '', /max\.message\.bytes/);
    const offsets = (await Promise.all([...before, ...after])).map(({ offset }) => offset);
    assertSame(offsets, numbers(400));
    const [records = []] = await readTopic(raw, 'small');
    assertSame(
      records.map(({ value }) => Number(textOf(value))),
      numbers(400),
    );
    const own = await failure(producer.send({ topic: 'small', value: Buffer.alloc(2 << 20) }));
    assert.equal(own.code, 'MESSAGE_TOO_LARGE');
    assert.match(own.message, /maxRequestBytes is 1048576/);
  },

  'a message without a key to a compacted topic': async ({ client, raw }) => {
    await raw.createTopic('compacted', 1, { 'cleanup.policy': 'compact' });
    await using producer = client.producer();
    const keyless = producer.send({ topic: 'compacted', value: 'v' });
    assert.equal((await failure(keyless)).code, 'INVALID_RECORD');
    const keyed = await producer.send({ topic: 'compacted', key: 'k', value: 'v' });
    assert.equal(keyed.offset, 0);
  },

  'what cannot be serialized, and what is no text': async ({ client, raw }) => {
    await raw.createTopic('json');
    await using producer = client.producer({ value: jsonSerializer });
    await producer.send({ topic: 'json', value: { a: [1, 2] } });
    const error = await failure(producer.send({ topic: 'json', value: 10n }));
    assert.equal(error.code, 'SERIALIZATION_FAILED');
    await using plain = client.producer();
    const wrong = { topic: 'json', value: { a: 1 } } as unknown as { topic: string; value: string };
    const second = await failure(plain.send(wrong));
    assert.equal(second.code, 'INVALID_ARGUMENT');
    assert.match(second.remedy ?? '', /jsonSerializer/);
    const [records = []] = await readTopic(raw, 'json');
    assert.deepEqual(
      records.map(({ value }) => textOf(value)),
      ['{"a":[1,2]}'],
    );
  },

  'a signal ends the waiting': async ({ client, raw }) => {
    await raw.createTopic('abort');
    await using producer = client.producer({ lingerMs: 600_000 });
    const reason = new Error('enough');
    const controller = new AbortController();
    const { signal } = controller;
    const sent = producer.send({ topic: 'abort', value: 'v' }, { signal });
    const unknown = producer.send({ topic: 'abort-nowhere', value: 'v' }, { signal });
    const flushed = new AbortController();
    flushed.abort(reason);
    const outcomes = Promise.all(
      [sent, unknown, producer.flush({ signal: flushed.signal })].map((one) =>
        one.catch((error: unknown) => error),
      ),
    );
    controller.abort(reason);
    assert.deepEqual(await outcomes, [reason, reason, reason]);
    const late = await producer.send({ topic: 'abort', value: 'v' }, { signal }).catch((e) => e);
    assert.equal(late, reason);
  },
};

/** Registers the suite for one kind of broker, and runs it. */
export function runProducerSuite(name: string, launcher: Launcher | undefined): void {
  runStaged(`producer, ${name}`, launcher, {}, { ...delivery, ...refusals });
}
