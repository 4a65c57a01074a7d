/**
 * The client's producer over bad networks and restarts: whatever happens on the way, idempotent messages arrive once, in
 * order. The client knows the broker by a proxy's address alone; what has arrived is read around it.
 */
import assert from 'node:assert/strict';
import { type Bytes, Client, type ProducerOptions } from '../../net/client/client.ts';
import type { BrokerProcess, Launcher } from './broker_process.ts';
import { Client as RawClient } from './client.ts';
import { type RoughStage, runRough } from './client_stage.ts';
import { assertNumbers, sendNumbers } from './numbers.ts';

const partitions = 3;

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
    // A break costs a back-off: in a run of millions there are some thousand of them, and not the more the longer it is.
    proxy.set({ cutBytesMax: Math.max(100_000, records / 25) });
    await produce(stage, 'cut', records, { batchBytes: 4_000 }, () => new Promise(setImmediate));
    proxy.set({});
    assert.ok(proxy.cuts > Math.min(500, records / 10_000), `only ${proxy.cuts} cuts`);
    console.log(`${records} records through ${proxy.cuts} cuts`);
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
