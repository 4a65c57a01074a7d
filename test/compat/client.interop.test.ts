/**
 * What the project's own client writes, other people's read, in every mode; and it sends keys where Java's does.
 * `MILLRACE_RECORDS=1000000` writes as many, a fifth with each codec.
 */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { Client } from '../../net/client/client.ts';
import type { BrokerProcess } from '../harness/broker_process.ts';
import { Client as RawClient, textOf } from '../harness/client.ts';
import { asReadWith, assertSame } from './dataset.ts';
import { peers, produceAllModes, startBroker, wantedOf } from './exchange.ts';
import { writeMixedLoad } from './load.ts';
import { ownPeer } from './peers/own_peer.ts';
import { codecs, type Peer } from './peers/peer.ts';

const recordsPerCodec = Number(process.env['MILLRACE_RECORDS'] ?? 5_000) / codecs.length;
const partitions = 7;

interface Stage {
  broker: BrokerProcess;
  own: Peer;
}

const test = suite<Partial<Stage>>('client, read by others');

test.before(async (context) => {
  context.broker = await startBroker();
  context.own = await ownPeer(context.broker);
});

test.after(async ({ broker, own }) => {
  await own?.close();
  await broker?.dispose();
});

/** Writes with the client; each of the readers must get exactly that. */
for (const reader of ['java', 'kcat', 'franz'] as const)
  test(`every codec, acks and idempotence, read by ${reader}`, async (context) => {
    const { broker, own } = context as Stage;
    const peer = await peers[reader](broker.bootstrap);
    try {
      const sent = [
        ...(await produceAllModes(own, `modes-${reader}`)),
        ...(await writeMixedLoad(own, `load-${reader}`, recordsPerCodec)),
      ];
      assertSame(asReadWith(peer.limits, sent), await peer.consume(wantedOf(sent)), peer.name);
    } finally {
      await peer.close();
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
