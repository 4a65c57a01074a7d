/**
 * The client's consumer over bad networks and restarts: of each partition every message comes once and in order, whatever
 * happens on the way, since nobody else takes part. The client knows the broker by a proxy's address alone.
 */
import assert from 'node:assert/strict';
import { Client, type ConsumerOptions } from '../../net/client/client.ts';
import type { BrokerProcess, Launcher } from './broker_process.ts';
import { Client as RawClient } from './client.ts';
import { type RoughStage, runRough } from './client_stage.ts';
import { createLedTopic } from './led_partitions.ts';

const partitions = 3;
const recordsABatch = 50;

async function fill(broker: BrokerProcess, topic: string, batches: number): Promise<number> {
  const raw = await RawClient.connect(broker);
  await createLedTopic(raw, topic, partitions);
  for (let at = 0; at < batches; at += 1)
    for (let partition = 0; partition < partitions; partition += 1) {
      const begin = at * recordsABatch;
      const batch = Array.from({ length: recordsABatch }, (_, index) => ({
        value: Buffer.from(`${begin + index}`.padEnd(100)),
        // Young, so that no retention takes it.
        timestamp: BigInt(Date.now()),
      }));
      await raw.produceOne(topic, partition, batch);
    }
  raw.close();
  return batches * recordsABatch * partitions;
}

/** Reads all, checks the order, and calls `between` after each message. */
async function readAll(
  client: Client,
  topic: string,
  count: number,
  options: Partial<ConsumerOptions>,
  between: (read: number) => Promise<void> | void = () => undefined,
): Promise<void> {
  const consumer = client.consumer({ topics: [topic], from: 'earliest', ...options });
  try {
    const next = Array.from({ length: partitions }, () => 0);
    let read = 0;
    for await (const { partition, offset, value } of consumer) {
      assert.equal(offset, next[partition], `partition ${partition}`);
      assert.equal(Number(value), offset);
      next[partition] = offset + 1;
      read += 1;
      await between(read);
      if (read === count) break;
    }
  } finally {
    await consumer.close();
  }
}

const small = { maxPartitionBytes: 20_000, maxWaitMs: 50 } as const;

type Step = (stage: RoughStage) => Promise<void>;

const steps: Readonly<Record<string, Step>> = {
  'connections that are cut at random, within answers, too': async ({ broker, proxy, client }) => {
    const count = await fill(broker, 'cut', 150);
    proxy.set({ cutBytesMax: 150_000 });
    await readAll(client, 'cut', count, small);
    assert.ok(proxy.cuts > 10, `only ${proxy.cuts} cuts`);
    await readAll(client, 'cut', count, { ...small, group: 'cut', autoCommit: { intervalMs: 20 } });
    proxy.set({});
  },

  'a broker that is killed and comes back': async ({ broker, client }) => {
    const count = await fill(broker, 'killed', 60);
    let restarted: Promise<void> = Promise.resolve();
    const between = async (read: number): Promise<void> => {
      if (read !== 2_000) return;
      await broker.kill();
      restarted = broker.restart();
    };
    await readAll(client, 'killed', count, small, between);
    await restarted;
    await readAll(client, 'killed', count, { ...small, group: 'killed' }, between);
    await restarted;
  },

  'a link that is slow': async ({ broker, proxy, client }) => {
    const count = await fill(broker, 'slow', 10);
    proxy.set({ slow: { delayMs: 3, bytes: 3_000 } });
    await readAll(client, 'slow', count, { group: 'slow' });
    proxy.set({});
  },

  'connections that are half open': async ({ broker, proxy }) => {
    const count = await fill(broker, 'half-open', 60);
    await using client = new Client({ bootstrap: proxy.bootstrap, requestTimeoutMs: 500 });
    await readAll(client, 'half-open', count, { ...small, group: 'half-open' }, (read) => {
      if (read === 3_000) proxy.hold();
    });
  },

  'connections that are refused for a while': async ({ broker, proxy, client }) => {
    const count = await fill(broker, 'refused', 60);
    await readAll(client, 'refused', count, { ...small, group: 'refused' }, (read) => {
      if (read !== 3_000) return;
      proxy.refuse(true);
      proxy.cutAll();
      setTimeout(() => proxy.refuse(false), 700);
    });
  },
};

/** Registers the suite for one kind of broker, and runs it. */
export function runConsumerRoughSuite(name: string, launcher: Launcher | undefined): void {
  const settings = { 'group.initial.rebalance.delay.ms': 0 };
  runRough(`consumer over bad networks, ${name}`, launcher, settings, steps);
}
