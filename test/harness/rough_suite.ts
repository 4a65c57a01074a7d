/**
 * The client's producer over bad networks and restarts: whatever happens on the way, idempotent messages arrive once, in
 * order. The client knows the broker by a proxy's address alone; what has arrived is read around it.
 */
import assert from 'node:assert/strict';
import {
  type Bytes,
  Client,
  type Producer,
  type ProducerOptions,
} from '../../net/client/client.ts';
import type { BrokerProcess, Launcher } from './broker_process.ts';
import { Client as RawClient } from './client.ts';
import { type RoughStage, runRough } from './client_stage.ts';

const partitions = 3;
const batchOf = 500;
/** Sends that are not awaited yet, at most. */
const pendingMax = 20_000;

/** Sends numbers, and calls `between` now and then. All are delivered when it returns. */
export async function sendNumbers(
  producer: Producer,
  topic: string,
  count: number,
  between: (sent: number) => Promise<void> | void = () => undefined,
): Promise<void> {
  let pending: Promise<unknown>[] = [];
  for (let at = 0; at < count; at += 1) {
    // Half of them by a key, half without: both ways of choosing a partition.
    const key = at % 2 === 0 ? null : `key ${at % 7}`;
    pending.push(producer.send({ topic, key, value: `${at}` }));
    if ((at + 1) % batchOf !== 0) continue;
    await between(at + 1);
    if (pending.length < pendingMax) continue;
    await Promise.all(pending);
    pending = [];
  }
  await Promise.all(pending);
}

/** Every number is there once, and within a partition they rise. `readers` has who reads each partition. */
export async function assertNumbers(
  readers: readonly RawClient[],
  topic: string,
  count: number,
): Promise<void> {
  const seen = new Uint8Array(count);
  let total = 0;
  for (const [partition, raw] of readers.entries()) {
    let last = -1;
    await raw.readEach(topic, partition, ({ value, offset }) => {
      const number = Number(Buffer.from(value ?? []).toString());
      assert.ok(number > last, `${topic}-${partition}@${offset}: ${number} behind ${last}`);
      last = number;
      assert.equal(seen[number], 0, `${number} is there twice`);
      seen[number] = 1;
      total += 1;
    });
  }
  assert.equal(total, count, `the first that is missing: ${seen.indexOf(0)}`);
}

async function assertArrived(broker: BrokerProcess, topic: string, count: number): Promise<void> {
  const raw = await RawClient.connect(broker);
  try {
    await assertNumbers(
      Array.from({ length: partitions }, () => raw),
      topic,
      count,
    );
  } finally {
    raw.close();
  }
}

async function makeTopic(broker: BrokerProcess, name: string): Promise<void> {
  const raw = await RawClient.connect(broker);
  await raw.createTopic(name, partitions);
  raw.close();
}

type Step = (stage: RoughStage, records: number) => Promise<void>;

async function produce(
  { broker, client }: RoughStage,
  topic: string,
  count: number,
  options: ProducerOptions<Bytes, Bytes>,
  between?: (sent: number) => Promise<void> | void,
): Promise<void> {
  await makeTopic(broker, topic);
  await using producer = client.producer(options);
  await sendNumbers(producer, topic, count, between);
  await assertArrived(broker, topic, count);
}

const steps: Readonly<Record<string, Step>> = {
  'connections that are cut at random: none lost, none twice, none out of order': async (
    stage,
    records,
  ) => {
    const { proxy } = stage;
    proxy.set({ cutBytesMax: 100_000 });
    await produce(stage, 'cut', records, { batchBytes: 4_000 }, () => new Promise(setImmediate));
    proxy.set({});
    assert.ok(proxy.cuts > records / 10_000, `only ${proxy.cuts} cuts`);
  },

  'a broker that is killed and comes back': async (stage) => {
    const { broker } = stage;
    let restarted: Promise<void> = Promise.resolve();
    await produce(stage, 'killed', 20_000, { batchBytes: 4_000 }, async (sent) => {
      await new Promise(setImmediate);
      if (sent !== 5_000) return;
      await broker.kill();
      restarted = broker.restart();
    });
    await restarted;
  },

  'a link that is slow': async (stage) => {
    stage.proxy.set({ slow: { delayMs: 3, bytes: 2_000 } });
    await produce(stage, 'slow', 5_000, { batchBytes: 1_000 }, () => new Promise(setImmediate));
    stage.proxy.set({});
  },

  'a connection that is half open: it is given up in time, and another one made': async (stage) => {
    const { broker, proxy } = stage;
    // Whatever waits on the old connection, metadata as well as messages, waits for this long.
    await using client = new Client({ bootstrap: proxy.bootstrap, requestTimeoutMs: 500 });
    await produce({ broker, proxy, client }, 'half-open', 2_000, {}, (sent) => {
      if (sent === 1_000) proxy.hold();
    });
  },

  'connections that are refused for a while': async (stage) => {
    const { proxy } = stage;
    let opened: NodeJS.Timeout | null = null;
    await produce(stage, 'refused', 2_000, {}, (sent) => {
      if (sent !== 1_000) return;
      proxy.refuse(true);
      proxy.cutAll();
      opened = setTimeout(() => proxy.refuse(false), 700);
    });
    assert.notEqual(opened, null);
  },
};

/** Registers the suite for one kind of broker, and runs it. `records` go through the connections that are cut. */
export function runRoughSuite(name: string, launcher: Launcher | undefined, records: number): void {
  const all = Object.entries(steps).map(([what, step]) => [
    what,
    (stage: RoughStage) => step(stage, records),
  ]);
  runRough(`producer over bad networks, ${name}`, launcher, {}, Object.fromEntries(all));
}
