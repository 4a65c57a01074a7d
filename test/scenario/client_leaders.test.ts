/**
 * The client's producer while leaders go: each of three brokers is killed and comes back, one after the other, or falls silent
 * for longer than the client waits, and every message arrives once, in order.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import { Client, type Producer } from '../../net/client/client.ts';
import type { Client as RawClient } from '../harness/client.ts';
import { Cluster } from '../harness/cluster.ts';
import { assertNumbers, sendNumbers } from '../harness/numbers.ts';
import { runScenario, scenarioOptions } from '../harness/scenario_options.ts';

const options = scenarioOptions();
const topic = 'leaders';
const partitions = 3;
const settings = {
  'min.insync.replicas': 2,
  'broker.heartbeat.interval.ms': 300,
  'broker.session.timeout.ms': 2_000,
};
/** Messages for each broker that goes. */
const messages = 10_000;
const backMs = 60_000;

const test = suite('client, leaders that go');

/** Resolves once every partition has all its replicas in sync, with the brokers that lead them. */
async function whole(raw: RawClient): Promise<number[]> {
  const untilMs = performance.now() + backMs;
  for (;;) {
    const body = { topics: [{ name: topic }], allowAutoTopicCreation: false };
    const found = (await raw.request('Metadata', body)).topics[0]?.partitions ?? [];
    if (found.length === partitions && found.every(({ isrNodes }) => isrNodes.length === 3))
      return [...found]
        .sort((a, b) => a.partitionIndex - b.partitionIndex)
        .map(({ leaderId }) => leaderId);
    assert.ok(performance.now() < untilMs, `not in sync again: ${JSON.stringify(found)}`);
    await sleep(50);
  }
}

/** Runs a cluster and a client, and has `ride` send the messages; then each has to be there once, in order. */
async function everyMessageOnce(
  requestTimeoutMs: number,
  ride: (cluster: Cluster, raw: RawClient[], producer: Producer) => Promise<void>,
): Promise<void> {
  await runScenario(options, async ({ dataDir }) => {
    const cluster = await Cluster.start({ settings, dataDir });
    const bootstrap = cluster.brokers.map((broker) => broker.bootstrap);
    const raw: RawClient[] = [];
    try {
      for (const id of cluster.ids) raw.push(await cluster.client(id));
      await (raw[0] as RawClient).createTopic(topic, partitions, {}, 3);
      await whole(raw[0] as RawClient);
      await using client = new Client({ bootstrap, requestTimeoutMs });
      await using producer = client.producer({ batchBytes: 4_000 });
      await ride(cluster, raw, producer);
      const leaders = await whole(raw[0] as RawClient);
      const readers = leaders.map((id) => raw[id - 1] as RawClient);
      await assertNumbers(readers, topic, messages * 3);
    } catch (error) {
      for (const { output } of cluster.brokers) console.error(output.slice(-3_000));
      throw error;
    } finally {
      for (const one of raw) one.close();
      await cluster.dispose();
    }
  });
}

/** The broker that goes next, once half of its messages have been sent. */
const nextToGo = (cluster: Cluster, sent: number): number | undefined =>
  cluster.ids[sent / messages - 0.5];

test('three brokers are killed in turn: none lost, none twice, none out of order', async () => {
  await everyMessageOnce(30_000, async (cluster, raw, producer) => {
    await sendNumbers(producer, topic, messages * 3, async (sent) => {
      await new Promise(setImmediate);
      const id = nextToGo(cluster, sent);
      if (id === undefined) return;
      // The messages before it are on their way; those behind it meet the new leaders.
      await cluster.kill(id);
      await sleep(500);
      await cluster.restart(id);
      raw[id - 1] = await cluster.client(id);
      await whole(raw[id - 1] as RawClient);
    });
  });
});

test('three brokers fall silent in turn, with answers owed: none lost, none twice, none out of order', async () => {
  const requestTimeoutMs = 4_000;
  await everyMessageOnce(requestTimeoutMs, async (cluster, raw, producer) => {
    let silence: Promise<void> = Promise.resolve();
    const fallSilent = async (id: number): Promise<void> => {
      await silence;
      await whole(raw[id - 1] as RawClient);
      // What has just been sent is on its way, or stored and not answered.
      cluster.pause(id);
      // Others lead by then, and have taken what was sent since; what this one owes is sent again.
      await sleep(requestTimeoutMs + 1_000);
      cluster.resume(id);
    };
    await sendNumbers(producer, topic, messages * 3, async (sent) => {
      const id = nextToGo(cluster, sent);
      if (id !== undefined) silence = fallSilent(id);
      await sleep(messages / 40);
    });
    await silence;
  });
});

test.run();
