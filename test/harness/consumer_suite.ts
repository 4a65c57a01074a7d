/** What the client's consumer promises without a group, and of one member of a group, tested against whichever broker. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  Client,
  type Consumer,
  type ConsumerOptions,
  jsonDeserializer,
  type Message,
  type MillraceError,
  stringDeserializer,
} from '../../net/client/client.ts';
import type { Launcher } from './broker_process.ts';
import { type Client as RawClient, record } from './client.ts';
import { failure, runStaged, type Stage } from './client_stage.ts';
import { createLedTopic, untilLed } from './led_partitions.ts';

type Step = (stage: Stage) => Promise<void>;

const text = { key: stringDeserializer, value: stringDeserializer } as const;

/** `count` records in each partition, one batch each, with times a second apart. */
async function fill(raw: RawClient, topic: string, count: number, partitions = 1): Promise<void> {
  await createLedTopic(raw, topic, partitions);
  await append(raw, topic, count, partitions);
}

async function append(raw: RawClient, topic: string, count: number, partitions = 1): Promise<void> {
  for (let partition = 0; partition < partitions; partition += 1) {
    const begin = await raw.endOffset(topic, partition);
    for (let at = begin; at < begin + count; at += 1)
      await raw.produceOne(topic, partition, [record(`${partition}/${at}`, BigInt(at) * 1_000n)]);
  }
}

async function take<K, V>(consumer: Consumer<K, V>, count: number): Promise<Message<K, V>[]> {
  const messages: Message<K, V>[] = [];
  if (count === 0) return messages;
  for await (const message of consumer) {
    messages.push(message);
    if (messages.length === count) break;
  }
  return messages;
}

const valuesOf = <K, V>(messages: readonly Message<K, V>[]): (V | null)[] =>
  messages.map(({ value }) => value);

const reading: Readonly<Record<string, Step>> = {
  'all partitions, each in order, from the beginning': async ({ client, raw }) => {
    await fill(raw, 'whole', 20, 3);
    await using consumer = client.consumer({ topics: ['whole'], from: 'earliest', ...text });
    const messages = await take(consumer, 60);
    for (const partition of [0, 1, 2])
      assert.deepEqual(
        messages.filter((one) => one.partition === partition).map((one) => one.offset),
        Array.from({ length: 20 }, (_, at) => at),
      );
    for (const { topic, partition, offset, value, timestampMs } of messages)
      assert.deepEqual(
        [topic, value, timestampMs],
        ['whole', `${partition}/${offset}`, offset * 1_000],
      );
  },

  'every codec, with keys, headers and nulls': async ({ client, raw }) => {
    await createLedTopic(raw, 'codecs');
    const codecs = ['none', 'gzip', 'snappy', 'lz4', 'zstd'] as const;
    const big = 'x'.repeat(3_000);
    for (const compression of codecs) {
      await using producer = client.producer({ compression });
      const headers = { codec: compression, nothing: null };
      const sent = [
        { topic: 'codecs', key: compression, value: `${compression}${big}`, headers },
        { topic: 'codecs', key: null, value: null },
      ];
      await Promise.all(sent.map((one) => producer.send(one)));
    }
    await using consumer = client.consumer({ topics: ['codecs'], from: 'earliest', ...text });
    const messages = await take(consumer, 2 * codecs.length);
    for (const [at, codec] of codecs.entries()) {
      const [full, empty] = messages.slice(2 * at, 2 * at + 2);
      assert.equal(full?.key, codec);
      assert.equal(full?.value, `${codec}${big}`);
      assert.deepEqual(full?.headers, [
        ['codec', Buffer.from(codec)],
        ['nothing', null],
      ]);
      assert.deepEqual([empty?.key, empty?.value, empty?.headers], [null, null, []]);
    }
  },

  'partitions that are given, from given offsets, and seeking': async ({ client, raw }) => {
    await fill(raw, 'seek', 10, 2);
    const second = { topic: 'seek', partition: 1 };
    await using consumer = client.consumer({ partitions: [{ ...second, offset: 7 }], ...text });
    assert.deepEqual(valuesOf(await take(consumer, 2)), ['1/7', '1/8']);
    assert.equal(consumer.position(second), 9);
    consumer.seek({ ...second, offset: 3 });
    assert.deepEqual(valuesOf(await take(consumer, 2)), ['1/3', '1/4']);
    await consumer.seekToBeginning();
    assert.deepEqual(valuesOf(await take(consumer, 1)), ['1/0']);
    await consumer.seekToTime(new Date(5_500));
    assert.deepEqual(valuesOf(await take(consumer, 1)), ['1/6']);
    await consumer.seekToTime(99_000);
    assert.equal(consumer.position(second), 10);
    await consumer.seekToEnd();
    const coming = take(consumer, 1);
    await append(raw, 'seek', 1, 2);
    assert.deepEqual(valuesOf(await coming), ['1/10']);
    consumer.assign([{ topic: 'seek', partition: 0, offset: 9 }]);
    assert.deepEqual(valuesOf(await take(consumer, 2)), ['0/9', '0/10']);
    assert.throws(() => consumer.seek({ ...second, offset: 0 }), /does not have seek-1/);
  },

  'the end, a time and nothing at all as the place to begin': async ({ client, raw }) => {
    await fill(raw, 'begin', 10);
    await using late = client.consumer({ topics: ['begin'], ...text });
    await late.ready();
    await late.seekToEnd();
    await using since = client.consumer({ topics: ['begin'], from: new Date(8_000), ...text });
    assert.deepEqual(valuesOf(await take(since, 2)), ['0/8', '0/9']);
    await using strict = client.consumer({ topics: ['begin'], group: 'begin', from: 'fail' });
    const error = await failure(take(strict, 1));
    assert.equal(error.code, 'NO_OFFSET_FOR_PARTITION');
    await append(raw, 'begin', 1);
    assert.deepEqual(valuesOf(await take(late, 1)), ['0/10']);
  },

  'an offset that is not there: by the policy, or an error that says so': async ({
    client,
    raw,
  }) => {
    await fill(raw, 'range', 5);
    const partitions = [{ topic: 'range', partition: 0, offset: 77 }];
    await using first = client.consumer({ partitions, from: 'earliest', ...text });
    assert.deepEqual(valuesOf(await take(first, 1)), ['0/0']);
    await using strict = client.consumer({ partitions, from: 'fail', ...text });
    const error = await failure(take(strict, 1));
    assert.equal(error.code, 'OFFSET_OUT_OF_RANGE');
    assert.match(error.message, /range-0 from offset 77/);
    strict.seek({ topic: 'range', partition: 0, offset: 4 });
    assert.deepEqual(valuesOf(await take(strict, 1)), ['0/4']);
  },

  'paused partitions give nothing, and go on where they were': async ({ client, raw }) => {
    await fill(raw, 'pause', 10, 2);
    await using consumer = client.consumer({ topics: ['pause'], from: 'earliest', ...text });
    await consumer.ready();
    consumer.pause([{ topic: 'pause', partition: 0 }]);
    const others = await take(consumer, 10);
    assert.ok(others.every(({ partition }) => partition === 1));
    assert.deepEqual(consumer.paused, [{ topic: 'pause', partition: 0 }]);
    const coming = take(consumer, 10);
    consumer.resume();
    assert.deepEqual(
      valuesOf(await coming),
      Array.from({ length: 10 }, (_, at) => `0/${at}`),
    );
  },

  'lag in records and in time': async ({ client, raw }) => {
    await fill(raw, 'lag', 10);
    await using consumer = client.consumer({ topics: ['lag'], from: 'earliest', ...text });
    await take(consumer, 4);
    const [lag] = await consumer.lag();
    assert.deepEqual([lag?.position, lag?.end, lag?.records], [4, 10, 6]);
    assert.ok((lag?.timeMs ?? 0) > 1_000_000_000, 'since 1970');
    await take(consumer, 6);
    const [none] = await consumer.lag();
    assert.deepEqual([none?.records, none?.timeMs], [0, 0]);
  },

  'batches, a stream of Node and a web stream': async ({ client, raw }) => {
    await fill(raw, 'streams', 30, 2);
    const options = { topics: ['streams'], from: 'earliest', ...text } as const;
    await using consumer = client.consumer(options);
    let count = 0;
    for await (const { topic, partition, messages } of consumer.batches({ maxMessages: 7 })) {
      assert.ok(messages.length > 0 && messages.length <= 7);
      assert.ok(messages.every((one) => one.topic === topic && one.partition === partition));
      count += messages.length;
      if (count === 60) break;
    }
    await consumer.seekToBeginning();
    const seen: string[] = [];
    for await (const message of consumer.readable()) {
      seen.push((message as Message<string, string>).value ?? '');
      if (seen.length === 60) break;
    }
    assert.equal(new Set(seen).size, 60);
    await consumer.seekToBeginning();
    let read = 0;
    for await (const { value } of consumer.readableStream()) {
      assert.ok(seen.includes(value ?? ''));
      read += 1;
      if (read === 60) break;
    }
    await using committing = client.consumer({ ...options, group: 'streams' });
    assert.throws(() => committing.readable(), /autoCommit: false|reads ahead/);
  },

  'a slow reader bounds what is fetched ahead': async ({ client, raw }) => {
    await createLedTopic(raw, 'slow', 4);
    const value = Buffer.alloc(10_000, 1);
    const batch = Array.from({ length: 20 }, () => ({ value, timestamp: 0n }));
    for (let at = 0; at < 80; at += 1) await raw.produceOne('slow', at % 4, batch);
    const limits = { maxBytes: 300_000, maxPartitionBytes: 100_000, bufferBytes: 500_000 };
    await using consumer = client.consumer({ topics: ['slow'], from: 'earliest', ...limits });
    let count = 0;
    let most = 0;
    for await (const message of consumer) {
      assert.equal(message.value?.length, 10_000);
      if (count % 100 === 0) await sleep(5);
      most = Math.max(most, consumer.metrics.bufferedBytes);
      count += 1;
      if (count === 1_600) break;
    }
    // One answer more than the bound, which may hold a whole batch for each partition.
    assert.ok(most < 500_000 + 300_000 + 4 * 200_000, `${most} bytes`);
  },
};

const rules: Readonly<Record<string, Step>> = {
  'commits: what has been processed, and never back': async ({ client, raw }) => {
    await fill(raw, 'commits', 10);
    const options: ConsumerOptions<string, string> = {
      ...{ topics: ['commits'], group: 'commits', from: 'earliest' },
      ...text,
    };
    const committed = async (consumer: Consumer<string, string>): Promise<number | undefined> =>
      (await consumer.committed([{ topic: 'commits', partition: 0 }]))[0]?.offset;
    {
      await using consumer = client.consumer({ ...options, autoCommit: false });
      const messages = await take(consumer, 5);
      await consumer.commit(messages[2] as Message<string, string>);
      assert.equal(await committed(consumer), 3);
      await consumer.commit(messages[0] as Message<string, string>);
      assert.equal(await committed(consumer), 3);
      await Promise.all(messages.map((one) => consumer.commit(one)));
      assert.equal(await committed(consumer), 5);
      await consumer.commit([{ topic: 'commits', partition: 0, offset: 6 }]);
    }
    {
      // The seventh is in hand when the loop ends: nobody knows whether it has been processed.
      await using consumer = client.consumer(options);
      assert.deepEqual(valuesOf(await take(consumer, 2)), ['0/6', '0/7']);
    }
    await using consumer = client.consumer({ ...options, autoCommit: { intervalMs: 20 } });
    assert.deepEqual(valuesOf(await take(consumer, 3)), ['0/7', '0/8', '0/9']);
    await consumer.commit();
    assert.equal(await committed(consumer), 10);
  },

  'a reader that stays away leaves the group, and comes back': async ({ client, raw }) => {
    await fill(raw, 'away', 6);
    const events: string[] = [];
    await using consumer = client.consumer({
      ...{ topics: ['away'], group: 'away', from: 'earliest', ...text },
      maxPollIntervalMs: 1_000,
      onRebalance: ({ type }) => {
        events.push(type);
      },
    });
    const values: (string | null)[] = [];
    for await (const { value } of consumer) {
      values.push(value);
      if (values.length === 2) while (!events.includes('lost')) await sleep(20);
      if (value === '0/5') break;
    }
    // What was in hand comes again: its commit was not for this member to make any more.
    assert.deepEqual(values.slice(0, 2), ['0/0', '0/1']);
    assert.deepEqual(new Set(values).size, 6);
    assert.deepEqual(events, ['assigned', 'lost', 'assigned']);
  },

  'partitions that come later are read from their beginning': async ({ broker, raw }) => {
    await fill(raw, 'grows', 1);
    await using own = new Client({ bootstrap: broker.bootstrap, metadataMaxAgeMs: 100 });
    await using consumer = own.consumer({ topics: ['grows'], from: 'earliest', ...text });
    await take(consumer, 1);
    await raw.request('CreatePartitions', {
      topics: [{ name: 'grows', count: 2, assignments: null }],
      timeoutMs: 10_000,
      validateOnly: false,
    });
    await untilLed(raw, 'grows', 1);
    await raw.produceOne('grows', 1, [record('1/0')]);
    assert.deepEqual(valuesOf(await take(consumer, 1)), ['1/0']);
  },

  'mistakes are told, with what to do about them': async ({ client, raw }) => {
    await fill(raw, 'mistakes', 1);
    const topics = ['mistakes'];
    await using lost = client.consumer({ topics: ['no-such-topic'], group: 'mistakes' });
    const unknown = await failure(take(lost, 1));
    assert.equal(unknown.code, 'UNKNOWN_TOPIC_OR_PARTITION');
    assert.match(unknown.remedy ?? '', /create the topic/);
    await using nothing = client.consumer({});
    assert.match((await failure(take(nothing, 1))).message, /nothing to read/);
    for (const wrong of [
      { topics, partitions: [{ topic: 'mistakes', partition: 0 }] },
      { topics, group: '' },
      { topics, instanceId: 'x' },
      { topics, group: 'g', strategy: 'uniform' },
      { topics, group: 'g', protocol: 'consumer', strategy: 'sticky' },
      { topics, maxWaitMs: -1 },
    ] as const)
      assert.throws(
        () => client.consumer(wrong as ConsumerOptions),
        (error: MillraceError) => error.code === 'INVALID_ARGUMENT' && error.remedy !== null,
      );
    await using groupless = client.consumer({ topics, from: 'earliest', value: jsonDeserializer });
    await assert.rejects(groupless.commit(), /belong to a group/);
    for await (const message of groupless) {
      assert.throws(() => groupless.messages(), /another loop/);
      assert.throws(() => message.value, /not JSON: "0\/0"/);
      break;
    }
  },

  'signals and closing end loops': async ({ client, raw }) => {
    await fill(raw, 'ends', 1);
    await using consumer = client.consumer({ topics: ['ends'], from: 'earliest', ...text });
    const reason = new Error('enough');
    const controller = new AbortController();
    const loop = async (): Promise<void> => {
      for await (const _ of consumer.messages({ signal: controller.signal }));
    };
    const running = loop();
    setTimeout(() => controller.abort(reason), 50);
    assert.equal(await running.catch((error: unknown) => error), reason);
    const again = take(consumer, 2);
    await consumer.close();
    assert.equal((await again).length, 0);
    const all = new AbortController();
    await using ended = client.consumer({ topics: ['ends'], signal: all.signal, ...text });
    const waiting = take(ended, 1).catch((error: unknown) => error);
    setTimeout(() => all.abort(reason), 50);
    assert.equal(await waiting, reason);
  },
};

/** Registers the suite for one kind of broker, and runs it. */
export function runConsumerSuite(name: string, launcher: Launcher | undefined): void {
  runStaged(
    `consumer, ${name}`,
    launcher,
    { 'group.initial.rebalance.delay.ms': 0 },
    { ...reading, ...rules },
  );
}
