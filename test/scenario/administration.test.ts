/**
 * Administration of a real broker with several shards: what one connection changes counts on every thread, and after a
 * restart, whichever way that comes.
 *
 *   node test/scenario/administration.test.ts
 */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { BrokerProcess } from '../harness/broker_process.ts';
import { Client, record } from '../harness/client.ts';
import { ConnectionLostError } from '../harness/connection.ts';

const test = suite('administration');
const shards = 3;
const partitions = 6;
const settings = { 'num.shards': shards };
const broker = { type: 4, id: '1' } as const;
const cluster = { type: 4, id: '' } as const;

let process_: BrokerProcess;
let clients: Client[] = [];

/** Connections go to the shards in turn: one on each. */
async function connect(): Promise<void> {
  clients = [];
  for (let count = 0; count < shards; count += 1) clients.push(await Client.connect(process_));
}

function disconnect(): void {
  for (const client of clients) client.close();
}

test.before(async () => {
  process_ = await BrokerProcess.start({ settings });
  await connect();
  await clients[0]!.createTopic('t', partitions);
});

test.after(async () => {
  disconnect();
  await process_.dispose();
});

async function alter(
  { type, id }: { readonly type: number; readonly id: string },
  name: string,
  value: string | null,
): Promise<void> {
  const { responses } = await clients[1]!.request('IncrementalAlterConfigs', {
    resources: [
      {
        resourceType: type,
        resourceName: id,
        configs: [{ name, configOperation: value === null ? 1 : 0, value }],
      },
    ],
    validateOnly: false,
  });
  assert.deepEqual(
    responses.map(({ errorCode, errorMessage }) => [errorCode, errorMessage]),
    [[ErrorCode.NONE, null]],
  );
}

/** The error of a batch of some 5,000 bytes, through every shard to every partition: the same everywhere. */
async function sendEverywhere(): Promise<number> {
  const codes = new Set<number>();
  for (const client of clients)
    for (let partition = 0; partition < partitions; partition += 1) {
      const batch = [record('x'.repeat(5_000))];
      const [answer] = await client.produce([{ topic: 't', partition, batch }]);
      codes.add(answer!.errorCode);
    }
  assert.equal(codes.size, 1, `errors ${[...codes]}`);
  return [...codes][0]!;
}

test('a setting of all brokers counts on every thread as soon as it is answered', async () => {
  assert.equal(await sendEverywhere(), ErrorCode.NONE);
  await alter(cluster, 'message.max.bytes', '4000');
  assert.equal(await sendEverywhere(), ErrorCode.MESSAGE_TOO_LARGE);
  await alter(broker, 'message.max.bytes', '9000');
  assert.equal(await sendEverywhere(), ErrorCode.NONE);
  await alter(broker, 'message.max.bytes', null);
});

test('a setting of a topic too', async () => {
  await alter({ type: 2, id: 't' }, 'max.message.bytes', '9000');
  assert.equal(await sendEverywhere(), ErrorCode.NONE);
  await alter({ type: 2, id: 't' }, 'max.message.bytes', null);
  assert.equal(await sendEverywhere(), ErrorCode.MESSAGE_TOO_LARGE);
});

for (const how of ['stop', 'kill'] as const)
  test(`settings are there again after a restart (${how})`, async () => {
    disconnect();
    await process_[how]();
    await process_.restart();
    await connect();
    assert.equal(await sendEverywhere(), ErrorCode.MESSAGE_TOO_LARGE);
  });

test('without it the default counts again', async () => {
  await alter(cluster, 'message.max.bytes', null);
  assert.equal(await sendEverywhere(), ErrorCode.NONE);
});

test('the number of connections can be limited at run time', async () => {
  await alter(cluster, 'max.connections', String(shards));
  await assert.rejects(Client.connect(process_), ConnectionLostError);
  await alter(cluster, 'max.connections', null);
  (await Client.connect(process_)).close();
});

test('new partitions take records through every shard once they are answered', async () => {
  const { results } = await clients[2]!.request('CreatePartitions', {
    topics: [{ name: 't', count: partitions + 4, assignments: null }],
    timeoutMs: 30_000,
    validateOnly: false,
  });
  assert.equal(results[0]?.errorCode, ErrorCode.NONE);
  for (const client of clients)
    for (let partition = partitions; partition < partitions + 4; partition += 1)
      await client.produceOne('t', partition, [record('v')]);
});

test('sizes and producers of partitions on all shards', async () => {
  const client = clients[0]!;
  const identity = await client.initProducerId();
  for (let partition = 0; partition < partitions; partition += 1) {
    const batch = { ...identity, baseSequence: 0, records: [record('v'), record('w')] };
    await client.produceOne('t', partition, batch);
  }
  const partitionIndexes = Array.from({ length: partitions }, (_, index) => index);
  const { topics } = await client.request('DescribeProducers', {
    topics: [{ name: 't', partitionIndexes }],
  });
  for (const { errorCode, activeProducers } of topics[0]!.partitions) {
    assert.equal(errorCode, ErrorCode.NONE);
    assert.deepEqual(
      activeProducers.map(({ producerId, lastSequence }) => [Number(producerId), lastSequence]),
      [[identity.producerId, 1]],
    );
  }
  const { results } = await client.request('DescribeLogDirs', { topics: null });
  const [dir] = results;
  assert.equal(dir?.logDir, process_.dataDir);
  assert(dir.totalBytes >= dir.usableBytes && dir.usableBytes > 0n);
  const sizes = dir.topics.flatMap((topic) => topic.partitions);
  assert.equal(sizes.length, partitions + 4);
  for (const { partitionSize, partitionIndex } of sizes)
    assert(partitionSize > 60n, `t-${partitionIndex} has ${partitionSize} bytes`);
});

test.run();
