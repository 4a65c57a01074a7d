/**
 * What the project's own client writes in bulk, other people's read, and the other way round; and it sends keys where
 * Java's does. Every mode is in matrix.test.ts. `MILLRACE_RECORDS=1000000` has each of them write as many, a fifth with
 * each codec.
 */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { Client } from '../../net/client/client.ts';
import type { BrokerProcess } from '../harness/broker_process.ts';
import { Client as RawClient, textOf } from '../harness/client.ts';
import { assertSame } from './dataset.ts';
import { type PeerName, peers, startBroker } from './exchange.ts';
import { bulk } from './load.ts';
import { codecs, type Peer } from './peers/peer.ts';

const recordsPerCodec = Number(process.env['MILLRACE_RECORDS'] ?? 5_000) / codecs.length;
/** Records that are in memory at a time, in every process that they go through. */
const pieceMax = 50_000;
const repeats = 5;
const partitions = 7;

interface Stage {
  broker: BrokerProcess;
}

const test = suite<Partial<Stage>>('client, bulk to and from others');

test.before(async (context) => {
  context.broker = await startBroker();
});

test.after(async ({ broker }) => {
  await broker?.dispose();
});

/** One writes with every codec, the other must get exactly that. */
async function exchange(writer: Peer, reader: Peer, prefix: string): Promise<void> {
  for (const [seed, codec] of codecs.entries())
    for (let at = 0; at < recordsPerCodec; at += pieceMax) {
      const topic = `${prefix}-${codec}-${at}`;
      const records = bulk(seed, Math.min(pieceMax, recordsPerCodec - at), repeats);
      await writer.create(topic, 1);
      await writer.produce(topic, 0, { codec, acks: 'all', idempotent: true }, records);
      const what = `${codec}, by ${writer.name}`;
      const read = await reader.consume([[topic, 0, records.length]]);
      assertSame([{ topic, partition: 0, records, what, stampedBetween: null }], read, reader.name);
    }
}

/** kcat stamps what it writes itself and has no key and headers of each record: it reads, and writes in the matrix. */
const pairs: readonly (readonly [writer: PeerName, reader: PeerName])[] = [
  ['own', 'java'],
  ['own', 'python'],
  ['own', 'kcat'],
  ['own', 'franz'],
  ['java', 'own'],
  ['python', 'own'],
  ['franz', 'own'],
];
for (const [writer, reader] of pairs)
  test(`every codec, from ${writer} to ${reader}`, async (context) => {
    const { bootstrap } = (context as Stage).broker;
    const from = await peers[writer](bootstrap);
    const to = await peers[reader](bootstrap);
    try {
      await exchange(from, to, `${writer}-${reader}`);
    } finally {
      await from.close();
      await to.close();
    }
  });

async function partitionsByKey(raw: RawClient, topic: string): Promise<Map<string, number>> {
  const found = new Map<string, number>();
  for (let partition = 0; partition < partitions; partition += 1)
    for (const { key } of await raw.readAll(topic, partition)) found.set(textOf(key), partition);
  return found;
}

test('keys go to the partitions that the Java client chooses', async (context) => {
  const { broker } = context as Stage;
  const raw = await RawClient.connect(broker);
  const java = await peers.console(broker.bootstrap);
  try {
    const keys = Array.from({ length: 300 }, (_, n) => `${'Schlüssel '.repeat(n % 5)}${n * 7919}`);
    for (const topic of ['keys-own', 'keys-java']) await raw.createTopic(topic, partitions);
    const records = keys.map((key) => ({
      ...{ key: Buffer.from(key).toString('hex'), value: '76', headers: [], timestamp: 0 },
    }));
    await java.produce('keys-java', 0, { codec: 'none', acks: 'all', idempotent: true }, records);
    await using client = new Client({ bootstrap: broker.bootstrap });
    await using producer = client.producer();
    await Promise.all(keys.map((key) => producer.send({ topic: 'keys-own', key, value: 'v' })));
    await producer.flush();
    const own = await partitionsByKey(raw, 'keys-own');
    assert.equal(own.size, keys.length);
    assert.deepEqual(own, await partitionsByKey(raw, 'keys-java'));
  } finally {
    await java.close();
    raw.close();
  }
});

test.run();
