/**
 * One data directory, two brokers: what a real Kafka wrote and did not close, Millrace takes over, topics, records and
 * all; and what Millrace then wrote and did not close either, Kafka takes back. Nobody is locked in.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import { type BrokerOptions, BrokerProcess } from '../harness/broker_process.ts';
import { assertSame, type Sent } from './dataset.ts';
import { peers, wantedOf } from './exchange.ts';
import { kafkaLauncher } from './kafka_broker.ts';
import { smallSegments, writeMixedLoad } from './load.ts';
import type { Peer } from './peers/peer.ts';

const test = suite('kafka_directory');
const dir = mkdtempSync(join(tmpdir(), 'millrace-kafka-'));
/** Where Kafka's launcher puts the data; the properties file lies beside it. */
const logs = join(dir, 'logs');
let sent: readonly Sent[] = [];

test.after(() => rmSync(dir, { recursive: true, force: true }));

/** Starts a broker on the directory, hands a client to `use`, and kills the broker: no marker of a clean stop stays. */
async function runAndKill(
  options: BrokerOptions,
  use: (peer: Peer) => Promise<void>,
): Promise<void> {
  const broker = await BrokerProcess.start({ settings: smallSegments, ...options });
  try {
    const peer = await peers.java(broker.bootstrap);
    try {
      await use(peer);
    } finally {
      await peer.close();
    }
    await broker.kill();
  } finally {
    await broker.dispose();
  }
  const marker = join(logs, '.kafka_cleanshutdown');
  assert(!existsSync(marker), 'the marker of a clean stop was not to be there');
}

/** Checks that everything is there, then adds a record to each partition of the first topic. */
async function checkAndAdd(peer: Peer): Promise<void> {
  assertSame(sent, await peer.consume(wantedOf(sent)), peer.name);
  const mode = { codec: 'zstd', acks: 'all', idempotent: true } as const;
  const more = [{ key: '6b', value: '76', headers: [], timestamp: 5 }];
  const { topic } = sent[0] as Sent;
  const grown: Sent[] = [];
  for (const one of sent) {
    if (one.topic !== topic) {
      grown.push(one);
      continue;
    }
    await peer.produce(topic, one.partition, mode, more);
    grown.push({ ...one, records: [...one.records, ...more] });
  }
  sent = grown;
  assertSame(sent, await peer.consume(wantedOf(sent)), peer.name);
}

test('Kafka writes a directory and is killed', async () => {
  await runAndKill({ launcher: kafkaLauncher(), dataDir: dir }, async (peer) => {
    sent = await writeMixedLoad(peer, 'kafka', 3_000);
  });
});

test('Millrace starts on it, serves every record, takes more, and is killed', async () => {
  await runAndKill({ dataDir: logs }, async (peer) => {
    await checkAndAdd(peer);
    sent = [...sent, ...(await writeMixedLoad(peer, 'millrace', 1_000))];
  });
});

test('Kafka takes the directory back and goes on', async () => {
  await runAndKill({ launcher: kafkaLauncher(), dataDir: dir }, checkAndAdd);
});

test.run();
