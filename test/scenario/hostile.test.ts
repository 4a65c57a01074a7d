/**
 * Hostile clients against a live broker (fault 28): whatever they send, the broker stays up, closes their connection
 * or answers with an error, keeps its memory bounded, and other clients go on meanwhile (I8).
 *
 *   node test/scenario/hostile.test.ts [--rounds MUTATIONS] [--seed N]
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import { Codec } from '../../engine/batch/header.ts';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { errorName } from '../../net/protocol/errors.ts';
import type { ApiName } from '../../net/protocol/messages.gen.ts';
import { mutate } from '../fuzz/mutate.ts';
import { BrokerProcess } from '../harness/broker_process.ts';
import { Client, record, textOf } from '../harness/client.ts';
import { Connection } from '../harness/connection.ts';
import {
  badNumbers,
  bombBatch,
  frame,
  goldenFrames,
  type HostileFrame,
  manyTopics,
  produceFrame,
  promisingBatch,
  sized,
  taggedFields,
} from '../harness/hostile_frames.ts';
import { peakBytes, resetPeak, residentBytes } from '../harness/process_memory.ts';
import { scenarioOptions } from '../harness/scenario_options.ts';
import { splitMix } from '../harness/split_mix.ts';

const mebibyte = 1 << 20;
const frameBytesMax = 100 * mebibyte;
const requestMemoryBytes = 192 * mebibyte;
const settings = {
  'socket.request.max.bytes': frameBytesMax,
  'queued.max.request.bytes': requestMemoryBytes,
  'auto.create.topics.enable': 'false',
};
/**
 * What hostile clients may make the broker take: its request memory twice (a region that grows is there twice for a
 * moment), what it may decompress, and the heap that the answers to large requests need.
 */
const extraBytesMax = 2 * requestMemoryBytes + 384 * mebibyte;
const closeTimeoutMs = 60_000;

const options = scenarioOptions();
const mutations = options.rounds ?? 300;
const test = suite('hostile clients');

/** Does its worst. What it returns is called once the neighbour got further, or did not in time. */
type Attack = () => Promise<unknown>;

/** A well-behaved client that produces a record, reads it back, and again. */
class Neighbour {
  turns = 0;
  longestMs = 0;
  readonly #broker: BrokerProcess;
  readonly #run: Promise<void>;
  #stopped: boolean = false;
  #failure: unknown = null;

  constructor(broker: BrokerProcess) {
    this.#broker = broker;
    this.#run = this.#work().catch((error: unknown) => {
      this.#failure = error;
    });
  }

  /** Runs an attack; fails unless this client got further while it went on, or within a minute after it began. */
  async during(name: string, attack: Attack): Promise<void> {
    const before = this.turns;
    this.longestMs = 0;
    const end = await attack();
    const deadline = performance.now() + 60_000;
    while (this.turns < before + 2 && this.#failure === null && performance.now() < deadline)
      await sleep(20);
    if (typeof end === 'function') end();
    if (this.#failure !== null) throw this.#failure;
    assert(this.turns >= before + 2, `${name}: another client made no progress`);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#run;
    if (this.#failure !== null) throw this.#failure;
  }

  async #work(): Promise<void> {
    const client = await Client.connect(this.#broker, 'neighbour');
    while (!this.#stopped) {
      const startedMs = performance.now();
      const offset = await client.produceOne('t', 0, [record(`turn ${this.turns}`)], {
        timeoutMs: 60_000,
      });
      const [read] = await client.readAll('t', 0, offset);
      assert.equal(textOf(read?.value), `turn ${this.turns}`);
      this.longestMs = Math.max(this.longestMs, performance.now() - startedMs);
      this.turns += 1;
      await sleep(5);
    }
    client.close();
  }
}

let broker: BrokerProcess;
let neighbour: Neighbour;
let topicId: string;
let calmBytes: number;

test.before(async () => {
  broker = await BrokerProcess.start({ settings });
  const client = await Client.connect(broker);
  topicId = await client.createTopic('t', 1);
  await client.createTopic('roomy', 1, { 'max.message.bytes': 16 * mebibyte });
  client.close();
  neighbour = new Neighbour(broker);
  await neighbour.during('nothing', () => sleep(500));
  calmBytes = residentBytes(broker.pid);
  resetPeak(broker.pid);
});

test.after(async () => {
  await neighbour.stop().finally(() => broker.dispose());
});

/** After each attack: still the same process, and it took no more memory than it may. */
function assertUnhurt(what: string): void {
  assert(broker.isRunning, `the broker ended after ${what}:\n${broker.output}`);
  const extra = peakBytes(broker.pid) - calmBytes;
  assert(
    extra < extraBytesMax,
    `${what} made the broker take ${Math.round(extra / mebibyte)} MiB more, ${extraBytesMax / mebibyte} are allowed`,
  );
}

/** `prepare` makes what is heavy to make, while the neighbour stands still: they share this thread. */
function attack<T>(name: string, run: (weapon: T) => Promise<unknown>, prepare?: () => T): void {
  test(name, async () => {
    const weapon = prepare?.() as T;
    await neighbour.during('the preparation', () => sleep(1));
    resetPeak(broker.pid);
    await neighbour.during(name, () => run(weapon));
    assertUnhurt(name);
    const extra = Math.round((peakBytes(broker.pid) - calmBytes) / mebibyte);
    console.log(`${name}: at most ${extra} MiB more, ${Math.round(neighbour.longestMs)} ms a turn`);
  });
}

/** Sends bytes on a connection of their own and waits until the broker has closed it. */
async function sendUntilClosed({ name, bytes }: HostileFrame): Promise<void> {
  const connection = await Connection.connect(broker, 'evil');
  connection.onStrayFrame(() => undefined);
  connection.sendRaw(bytes);
  const closed = await Promise.race([
    connection.closed.then(() => true),
    sleep(closeTimeoutMs, false, { ref: false }),
  ]);
  connection.close();
  assert(closed, `${name}: the broker kept the connection`);
}

attack('lengths and counts that cannot be close the connection', async () => {
  for (const one of badNumbers()) await sendUntilClosed(one);
});

attack('20 million tagged fields close the connection', sendUntilClosed, () =>
  taggedFields(frameBytesMax),
);

attack('requests that end too early close the connection', async () => {
  for (const whole of goldenFrames([
    'Produce',
    'Fetch',
    'Metadata',
    'CreateTopics',
    'ListOffsets',
  ])) {
    for (const part of [0.3, 0.6, 0.9]) {
      const end = 4 + 20 + Math.floor((whole.length - 24) * part);
      await sendUntilClosed({ name: 'a cut request', bytes: sized(whole.subarray(4, end)) });
    }
  }
});

attack('a request for half a million unknown topics is answered or refused', async () => {
  const connection = await Connection.connect(broker, 'evil');
  await connection.exchangeRaw(manyTopics(500_000).bytes, 7, closeTimeoutMs);
  connection.close();
});

attack('more elements than a message may hold close the connection', sendUntilClosed, () =>
  manyTopics(4_000_000),
);

const bombs: readonly (readonly [keyof typeof Codec, number])[] = [
  ['gzip', 512 * mebibyte],
  ['zstd', 1024 * mebibyte],
  ['lz4', 256 * mebibyte],
  ['snappy', 128 * mebibyte],
];
for (const [codec, bytes] of bombs) {
  attack(
    `${bytes / mebibyte} MiB of zeros in ${codec} are refused`,
    async (batch) => {
      const client = await Client.connect(broker, 'evil');
      const again = Array.from({ length: 8 }, () =>
        client.produce([{ topic: 'roomy', partition: 0, batch }]),
      );
      for (const answer of (await Promise.all(again)).flat())
        assert(
          answer.errorCode !== ErrorCode.NONE && answer.baseOffset === -1n,
          `the broker took a bomb: ${errorName(answer.errorCode)}`,
        );
      client.close();
    },
    () => bombBatch(Codec[codec], bytes),
  );
}

attack('a batch that promises 2^31 records is refused', async () => {
  const client = await Client.connect(broker, 'evil');
  const [answer] = await client.produce([{ topic: 't', partition: 0, batch: promisingBatch() }]);
  assert.notEqual(answer?.errorCode, ErrorCode.NONE);
  client.close();
});

attack(`${mutations} mutated requests do no harm`, async () => {
  const apis: ApiName[] = [
    'Produce',
    'Fetch',
    'ListOffsets',
    'Metadata',
    'ApiVersions',
    'CreateTopics',
    'DeleteTopics',
    'InitProducerId',
    'OffsetForLeaderEpoch',
    'DescribeConfigs',
    'DescribeCluster',
    'DescribeTopicPartitions',
  ];
  const samples = goldenFrames(apis);
  const random = splitMix(options.seed);
  for (let index = 0; index < mutations; index += 1) {
    const sample = samples[random(samples.length)] as Uint8Array;
    const other = samples[random(samples.length)] as Uint8Array;
    const bytes = sized(mutate(random, sample.subarray(4), other));
    const connection = await Connection.connect(broker, 'evil');
    connection.onStrayFrame(() => undefined);
    connection.sendRaw(bytes);
    await Promise.race([connection.closed, sleep(2 + random(10))]);
    connection.close();
    assert(
      broker.isRunning,
      `seed ${options.seed}, mutation ${index}: ${Buffer.from(bytes).toString('hex')}`,
    );
  }
});

/** Sends the beginning of large frames, and then a byte now and then. */
async function trickle(connections: number, bytes: number): Promise<() => void> {
  const whole = produceFrame(topicId, new Uint8Array(bytes));
  const evil = await Promise.all(
    Array.from({ length: connections }, () => Connection.connect(broker, 'evil')),
  );
  for (const connection of evil) connection.sendRaw(whole.subarray(0, 100));
  for (let at = 100; at < 115; at += 1) {
    await sleep(100);
    for (const connection of evil)
      if (connection.isOpen) connection.sendRaw(whole.subarray(at, at + 1));
  }
  return () => {
    for (const connection of evil) connection.close();
  };
}

attack('large frames that never end hold no small ones up', () => trickle(20, 90 * mebibyte));

attack('small frames that never end are not waited for without end', () =>
  trickle(300, mebibyte - 200),
);

attack('a thousand silent connections are nobody else’s business', async () => {
  const silent = await Promise.all(
    Array.from({ length: 1_000 }, () => Connection.connect(broker, 'evil')),
  );
  await sleep(500);
  for (const connection of silent) connection.close();
});

attack('a client that asks for everything and reads nothing is held back', async () => {
  const writer = await Client.connect(broker);
  for (let index = 0; index < 20; index += 1)
    await writer.produceOne('roomy', 0, [
      { value: new Uint8Array(mebibyte).fill(index), timestamp: BigInt(Date.now()) },
    ]);
  writer.close();
  const deaf = await Client.connect(broker, 'evil');
  deaf.connection.pause();
  for (let index = 0; index < 2_000; index += 1)
    void deaf
      .fetch([{ topic: 'roomy', partition: 0, offset: 0, maxBytes: 50 * mebibyte }])
      .catch(() => undefined);
  await sleep(3_000);
  deaf.close();
});

attack('requests without an end to their connection are no leak', async () => {
  for (let index = 0; index < 200; index += 1) {
    const connection = await Connection.connect(broker, 'evil');
    connection.sendRaw(frame('Metadata', 1, [0xff, 0xff, 0xff, 0xff]).subarray(0, 10));
    connection.close();
  }
});

test.run();
