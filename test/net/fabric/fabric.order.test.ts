/** What one connection has in flight to partitions of three shards keeps its order, however full the rings are. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { encodeBatch } from '../../../engine/batch/encode.ts';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { BrokerProcess } from '../../harness/broker_process.ts';
import { Client, record } from '../../harness/client.ts';

const test = suite('order between shards');
const topic = 'pipelined';
const shards = 3;
const partitionCount = 6;
const requestCount = 300;

async function sendAll(client: Client): Promise<void> {
  const { producerId } = await client.initProducerId();
  const sent = Array.from({ length: requestCount }, (_, baseSequence) => {
    const value = 'v'.repeat(baseSequence % 7 === 0 ? 20_000 : 10);
    const records = [record(value)];
    const batch = encodeBatch({ records, producerId, producerEpoch: 0, baseSequence });
    return client.produce(
      Array.from({ length: partitionCount }, (_one, partition) => ({ topic, partition, batch })),
    );
  });
  const last = new Array<number>(partitionCount).fill(-1);
  for (const answers of await Promise.all(sent))
    for (const [partition, { errorCode, errorMessage, baseOffset }] of answers.entries()) {
      assert.equal(errorCode, ErrorCode.NONE, errorMessage ?? '');
      assert(Number(baseOffset) > (last[partition] as number), `partition ${partition}`);
      last[partition] = Number(baseOffset);
    }
}

test('no sequence is ever out of order', async () => {
  const broker = await BrokerProcess.start({ settings: { 'num.shards': shards } });
  const clients: Client[] = [];
  try {
    // One on each shard: connections go to the shard with the fewest.
    for (let shard = 0; shard < shards; shard += 1) clients.push(await Client.connect(broker));
    await clients[0]?.createTopic(topic, partitionCount);
    await Promise.all(clients.map(sendAll));
  } finally {
    for (const client of clients) client.close();
    await broker.dispose();
  }
});

test.run();
