/**
 * A data directory that a real Kafka wrote and did not close: the broker takes it over, topics, records and all, and
 * goes on writing to it.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import { BrokerProcess } from '../harness/broker_process.ts';
import { assertSame, type Sent } from './dataset.ts';
import { peers, wantedOf } from './exchange.ts';
import { kafkaLauncher } from './kafka_broker.ts';
import { smallSegments, writeMixedLoad } from './load.ts';

const test = suite('kafka_directory');
const dir = mkdtempSync(join(tmpdir(), 'millrace-kafka-'));
const logs = join(dir, 'logs');
const sent: Sent[] = [];

test.after(() => rmSync(dir, { recursive: true, force: true }));

test('Kafka writes a directory and is killed', async () => {
  const kafka = await BrokerProcess.start({
    launcher: kafkaLauncher(),
    settings: smallSegments,
    dataDir: dir,
  });
  try {
    const peer = await peers.python(kafka.bootstrap);
    sent.push(...(await writeMixedLoad(peer, 'kafka', 3_000)));
    await peer.close();
    await kafka.kill();
  } finally {
    await kafka.dispose();
  }
  assert(
    !existsSync(join(logs, '.kafka_cleanshutdown')),
    'the marker of a clean stop was not to be there',
  );
});

test('Millrace starts on it, serves every record, and takes more', async () => {
  const broker = await BrokerProcess.start({ settings: smallSegments, dataDir: logs });
  try {
    const peer = await peers.java(broker.bootstrap);
    assertSame(sent, await peer.consume(wantedOf(sent)), peer.name);
    const [first] = sent;
    assert(first !== undefined);
    const mode = { codec: 'zstd', acks: 'all', idempotent: true } as const;
    const more = [{ key: '6b', value: '76', headers: [], timestamp: 5 }];
    await peer.produce(first.topic, first.partition, mode, more);
    const all = { ...first, records: [...first.records, ...more] };
    assertSame([all], await peer.consume(wantedOf([all])), peer.name);
    await peer.create('made-by-millrace', 2);
    await peer.close();
    assert.equal((await broker.stop()).code, 0);
  } finally {
    await broker.dispose();
  }
});

test.run();
