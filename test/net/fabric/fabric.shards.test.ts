/** A broker with three shards, through connections that land on each of them: every partition is reached from every one. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { encodeBatch } from '../../../engine/batch/encode.ts';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type { FetchResponse } from '../../../net/protocol/messages.gen.ts';
import { BrokerProcess } from '../../harness/broker_process.ts';
import { Client, record } from '../../harness/client.ts';
import { ConnectionLostError } from '../../harness/connection.ts';
import { decodeRecords } from '../../harness/fetched_records.ts';

const test = suite('three shards');

const shards = 3;
const partitions = [0, 1, 2, 3, 4, 5];
let broker: BrokerProcess;
/** One on each shard: connections go to the shard with the fewest. */
let clients: Client[];

test.before(async () => {
  broker = await BrokerProcess.start({
    settings: { 'num.shards': shards, 'log.segment.bytes': 1_048_576 },
  });
  clients = [];
  for (let k = 0; k < shards; k += 1) clients.push(await Client.connect(broker));
});

test.after(async () => {
  for (const client of clients) client.close();
  await broker.dispose();
});

/** Waits until consumers may read up to `end`: with acks below all that is later than the answer. */
async function untilEnd(
  client: Client,
  topic: string,
  partition: number,
  end: number,
): Promise<void> {
  while ((await client.endOffset(topic, partition)) < end)
    await new Promise((resolve) => setTimeout(resolve, 5));
}

const sizes = (response: FetchResponse): number[] =>
  response.responses.flatMap((topic) =>
    topic.partitions.map(({ records }) => records?.length ?? 0),
  );

function valuesOf(records: Uint8Array | null, from: number): string[] {
  const text = new TextDecoder();
  return decodeRecords(records ?? new Uint8Array(0), from).records.map(({ value }) =>
    text.decode(value ?? new Uint8Array(0)),
  );
}

for (const acks of [1, -1] as const)
  test(`acks=${acks}: every connection produces to every partition, in the order of its requests`, async () => {
    const topic = `order${acks}`;
    await clients[0]!.createTopic(topic, partitions.length);
    const rounds = 40;
    await Promise.all(
      clients.map(async (client, who) => {
        await client.topicId(topic);
        const answers = await Promise.all(
          Array.from({ length: rounds }, (_, round) =>
            client.produce(
              partitions.map((partition) => ({
                topic,
                partition,
                batch: [record(`${who}:${round}`), record(`${who}:${round}'`)],
              })),
              { acks },
            ),
          ),
        );
        for (const partition of partitions) {
          const offsets = answers.map((parts) => {
            assert.equal(parts[partition]!.errorCode, ErrorCode.NONE);
            return Number(parts[partition]!.baseOffset);
          });
          for (let k = 1; k < rounds; k += 1) assert(offsets[k]! > offsets[k - 1]!, 'out of order');
        }
      }),
    );
    for (const [who, client] of clients.entries()) {
      for (const partition of partitions) {
        await untilEnd(client, topic, partition, shards * rounds * 2);
        const all = await client.readAll(topic, partition);
        assert.equal(all.length, shards * rounds * 2);
        const text = new TextDecoder();
        const mine = all
          .map(({ value }) => text.decode(value ?? new Uint8Array(0)))
          .filter((value) => value.startsWith(`${who}:`));
        const wanted = Array.from({ length: rounds }, (_, k) => [`${who}:${k}`, `${who}:${k}'`]);
        assert.deepEqual(mine, wanted.flat());
      }
    }
  });

test('acks=0 arrives, large batches and small ones alike', async () => {
  await clients[0]!.createTopic('zero', 6);
  for (const client of clients)
    for (const partition of partitions) {
      await client.produceOne('zero', partition, [record('x'.repeat(700_000))], { acks: 0 });
      await client.produceOne('zero', partition, [record('y')], { acks: 0 });
    }
  // An answered request behind them on each connection says that they have been taken in.
  for (const client of clients) await client.produceOne('zero', 0, [record('z')]);
  for (const partition of partitions) {
    await untilEnd(clients[0]!, 'zero', partition, partition === 0 ? 9 : 6);
    const all = await clients[1]!.readAll('zero', partition);
    assert.equal(all.length, partition === 0 ? 9 : 6);
  }
});

test('sequences, duplicates and refusals come back from other shards with their texts', async () => {
  await clients[0]!.createTopic('idempotent', 3);
  for (const client of clients)
    for (const partition of [0, 1, 2]) {
      const { producerId } = await client.initProducerId();
      const batch = (baseSequence: number): Uint8Array =>
        encodeBatch({
          records: [record('a'), record('b')],
          producerId,
          producerEpoch: 0,
          baseSequence,
        });
      const send = async (baseSequence: number) =>
        (
          await client.produce([{ topic: 'idempotent', partition, batch: batch(baseSequence) }])
        )[0]!;
      const first = await send(0);
      const again = await send(0);
      assert.deepEqual([again.errorCode, again.baseOffset], [ErrorCode.NONE, first.baseOffset]);
      const gap = await send(7);
      assert.equal(gap.errorCode, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER);
      assert.equal(gap.errorMessage, `producer ${producerId} sent sequence 7 where 2 was next`);
      assert.equal((await send(2)).errorCode, ErrorCode.NONE);
    }
});

test("topic settings rule on the connection's shard and on the partition's", async () => {
  await clients[0]!.createTopic('stamped', 3, {
    'message.timestamp.type': 'LogAppendTime',
    'max.message.bytes': 2_000,
  });
  for (const client of clients)
    for (const partition of [0, 1, 2]) {
      const [good] = await client.produce([
        { topic: 'stamped', partition, batch: [record('a', 5n)] },
      ]);
      assert(good!.logAppendTimeMs > 1_600_000_000_000n);
      const [large] = await client.produce([
        { topic: 'stamped', partition, batch: [record('b'.repeat(3_000))] },
      ]);
      assert.equal(large!.errorCode, ErrorCode.MESSAGE_TOO_LARGE);
      const found = await client.listOffset('stamped', partition, good!.logAppendTimeMs);
      assert.deepEqual(
        [found.offset, found.timestamp],
        [Number(good!.baseOffset), good!.logAppendTimeMs],
      );
    }
});

test('offsets and ends of epochs are the same from every shard', async () => {
  await clients[0]!.createTopic('offsets', 3);
  for (const partition of [0, 1, 2])
    for (let k = 0; k <= partition; k += 1)
      await clients[0]!.produceOne('offsets', partition, [record(`${k}`, BigInt(1_000 + k))]);
  for (const client of clients)
    for (const partition of [0, 1, 2]) {
      assert.equal((await client.listOffset('offsets', partition, -1)).offset, partition + 1);
      assert.equal((await client.listOffset('offsets', partition, -2)).offset, 0);
      const { offset, timestamp } = await client.listOffset('offsets', partition, -3);
      assert.deepEqual([offset, timestamp], [partition, BigInt(1_000 + partition)]);
      assert.equal((await client.listOffset('offsets', partition, 99_999)).offset, -1);
      const ends = await client.request('OffsetForLeaderEpoch', {
        replicaId: -1,
        topics: [
          {
            topic: 'offsets',
            partitions: [{ partition, currentLeaderEpoch: -1, leaderEpoch: 0 }],
          },
        ],
      });
      assert.equal(Number(ends.topics[0]!.partitions[0]!.endOffset), partition + 1);
    }
});

test('a fetch over all shards sums min.bytes, and waits for it', async () => {
  await clients[0]!.createTopic('sum', 6);
  const value = 'v'.repeat(1_000);
  for (const client of clients) {
    const at = await Promise.all(partitions.map((k) => client.endOffset('sum', k)));
    const waiting = client.fetch(
      partitions.map((partition) => ({ topic: 'sum', partition, offset: at[partition]! })),
      { maxWaitMs: 20_000, minBytes: 5_000 },
    );
    let isDone = false;
    void waiting.then(() => (isDone = true));
    const other = clients[(clients.indexOf(client) + 1) % shards]!;
    for (const partition of [0, 1, 2, 3]) await other.produceOne('sum', partition, [record(value)]);
    assert.equal(isDone, false, 'answered before there was enough');
    await other.produceOne('sum', 4, [record(value)]);
    const found = sizes(await waiting);
    assert.equal(found.filter((size) => size > 1_000).length, 5);
  }
});

test('a long poll on other shards is woken by each of them, again and again', async () => {
  await clients[0]!.createTopic('poll', 6);
  const offsets = partitions.map(() => 0);
  for (let round = 0; round < 60; round += 1) {
    const partition = (round * 5) % 6;
    const client = clients[round % shards]!;
    const waiting = client.fetch(
      partitions.map((k) => ({ topic: 'poll', partition: k, offset: offsets[k]! })),
      { maxWaitMs: 20_000 },
    );
    const producer = clients[(round >> 2) % shards]!;
    // On the same connection it would wait behind the fetch.
    if (producer === client) {
      const extra = await Client.connect(broker);
      await extra.produceOne('poll', partition, [record(`${round}`)]);
      extra.close();
    } else await producer.produceOne('poll', partition, [record(`${round}`)]);
    const answer = await waiting;
    const data = answer.responses[0]!.partitions.find((one) => one.partitionIndex === partition)!;
    assert.deepEqual(valuesOf(data.records, offsets[partition]!), [`${round}`]);
    offsets[partition]! += 1;
  }
});

test('an expired poll answers with what there is; bad offsets answer at once', async () => {
  await clients[0]!.createTopic('expired', 3);
  for (const client of clients) {
    const parts = [0, 1, 2].map((partition) => ({ topic: 'expired', partition, offset: 0 }));
    assert.deepEqual(sizes(await client.fetch(parts, { maxWaitMs: 50 })), [0, 0, 0]);
    const bad = [0, 1, 2].map((partition) => ({ topic: 'expired', partition, offset: 9 }));
    const answer = await client.fetch(bad, { maxWaitMs: 20_000 });
    for (const { errorCode } of answer.responses.flatMap((topic) => topic.partitions))
      assert.equal(errorCode, ErrorCode.OFFSET_OUT_OF_RANGE);
  }
});

test('max.bytes holds over all shards, and every partition gets its turn in a session', async () => {
  await clients[0]!.createTopic('bounded', 6);
  for (const partition of partitions)
    await clients[0]!.produceOne('bounded', partition, [record('w'.repeat(40_000))]);
  for (const client of clients) {
    const seen = new Set<number>();
    const parts = partitions.map((partition) => ({ topic: 'bounded', partition, offset: 0 }));
    const first = await client.fetch(parts, { maxBytes: 90_000, sessionEpoch: 0 });
    let answer = first;
    for (let epoch = 1; epoch < 6; epoch += 1) {
      assert(sizes(answer).reduce((sum, size) => sum + size, 0) <= 90_000);
      for (const { partitionIndex, records } of answer.responses.flatMap((one) => one.partitions))
        if ((records?.length ?? 0) > 0) seen.add(partitionIndex);
      const session = { sessionId: first.sessionId, sessionEpoch: epoch };
      answer = await client.fetch([], { maxBytes: 90_000, ...session });
    }
    assert.equal(seen.size, 6, `only ${[...seen]} came`);
  }
});

test('much is read from files of other shards while they roll, and comes whole', async () => {
  await clients[0]!.createTopic('rolling', 3);
  const count = 60;
  const value = (k: number): string => `${k}`.padEnd(100_000, '.');
  await Promise.all(
    [0, 1, 2].map(async (partition) => {
      for (let k = 0; k < count; k += 1)
        await clients[partition]!.produceOne('rolling', (partition + 1) % 3, [record(value(k))]);
    }),
  );
  await Promise.all(
    clients.map(async (client) => {
      for (const partition of [0, 1, 2]) {
        const all = await client.readAll('rolling', partition);
        const text = new TextDecoder();
        assert.deepEqual(
          all.map((one) => text.decode(one.value ?? new Uint8Array(0))),
          Array.from({ length: count }, (_, k) => value(k)),
        );
      }
    }),
  );
});

test('a deleted topic ends polls on every shard, and its name starts from nothing', async () => {
  for (let round = 0; round < 3; round += 1) {
    await clients[0]!.createTopic('again', 3);
    for (const client of clients)
      for (const partition of [0, 1, 2]) {
        assert.equal(await client.endOffset('again', partition), clients.indexOf(client));
        await client.produceOne('again', partition, [record('x')]);
      }
    const waiting = clients.slice(1).map((client) =>
      client.fetch(
        [0, 1, 2].map((partition) => ({ topic: 'again', partition, offset: shards })),
        {
          maxWaitMs: 20_000,
          version: 12,
        },
      ),
    );
    await new Promise((resolve) => setTimeout(resolve, 30));
    await clients[0]!.request('DeleteTopics', {
      topics: [{ name: 'again', topicId: 'AAAAAAAAAAAAAAAAAAAAAA' }],
      timeoutMs: 10_000,
    });
    for (const answer of await Promise.all(waiting))
      assert(
        answer.responses[0]!.partitions.some(
          ({ errorCode }) => errorCode === ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ),
      );
    // Requests in the newest versions name topics by id, which each client learns anew.
    for (const client of clients) client.close();
    clients = [];
    for (let k = 0; k < shards; k += 1) clients.push(await Client.connect(broker));
  }
});

test('nothing is lost over a clean stop, and other shards own the partitions afterwards', async () => {
  await clients[0]!.createTopic('kept', 6);
  for (const [k, client] of clients.entries())
    for (const partition of partitions)
      await client.produceOne('kept', partition, [record(`${k}`)]);
  for (const count of [2, 1, 5, shards]) {
    for (const client of clients) client.close();
    const { code } = await broker.stop();
    assert.equal(code, 0, broker.output);
    assert(broker.output.includes('stopped cleanly'), broker.output);
    await broker.restart({ 'num.shards': count, 'log.segment.bytes': 1_048_576 });
    clients = [];
    for (let k = 0; k < shards; k += 1) clients.push(await Client.connect(broker));
    for (const client of clients)
      for (const partition of partitions)
        assert.equal((await client.readAll('kept', partition)).length, shards);
  }
});

test('a stop answers what is under way on other shards', async () => {
  await clients[0]!.createTopic('stopped', 6);
  const sent: Promise<unknown>[] = [];
  for (const client of clients) {
    await client.topicId('stopped');
    for (let k = 0; k < 20; k += 1)
      sent.push(
        client
          .produce(
            partitions.map((partition) => ({
              topic: 'stopped',
              partition,
              batch: [record('s'.repeat(10_000))],
            })),
          )
          .then((parts) => {
            for (const { errorCode } of parts) assert.equal(errorCode, ErrorCode.NONE);
            return true;
          }),
      );
  }
  await Promise.race(sent);
  const { code } = await broker.stop();
  assert.equal(code, 0, broker.output);
  assert(broker.output.includes('stopped cleanly'), broker.output);
  // Those that had not been read when the stop began see their connection end; no other error came.
  for (const outcome of await Promise.allSettled(sent))
    if (outcome.status === 'rejected')
      assert(outcome.reason instanceof ConnectionLostError, String(outcome.reason));
});

test.run();
