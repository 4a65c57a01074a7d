/** Three brokers as processes: what is written to leaders comes to their followers, byte for byte. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { type Client, record } from '../../harness/client.ts';
import { Cluster } from '../../harness/cluster.ts';

const test = suite('replication between processes');

const topic = 'copied';
const partitions = 6;
const retryMs = 20;
/** What a change of leaders or of replicas in sync may bring. */
const retriable: ReadonlySet<number> = new Set([
  ErrorCode.NOT_LEADER_OR_FOLLOWER,
  ErrorCode.REQUEST_TIMED_OUT,
  ErrorCode.NOT_ENOUGH_REPLICAS,
  ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
]);
let cluster: Cluster;
let clients: Client[];

test.before(async () => {
  cluster = await Cluster.start();
  clients = await Promise.all([1, 2, 3].map((id) => cluster.client(id)));
});

test.after(async () => {
  for (const client of clients ?? []) client.close();
  await cluster?.dispose();
});

async function createTopic(name: string, count: number): Promise<void> {
  const answer = await clients[0]!.request('CreateTopics', {
    topics: [
      {
        name,
        numPartitions: count,
        replicationFactor: 3,
        assignments: [],
        configs: [{ name: 'min.insync.replicas', value: '2' }],
      },
    ],
    timeoutMs: 30_000,
  });
  assert.equal(answer.topics[0]?.errorCode, ErrorCode.NONE, answer.topics[0]?.errorMessage ?? '');
}

/** Leaders by partition, as the broker sees them. */
async function leaders(client: Client, name: string): Promise<number[]> {
  const { topics } = await client.metadata([name]);
  const found: number[] = [];
  for (const { partitionIndex, leaderId } of topics[0]?.partitions ?? [])
    found[partitionIndex] = leaderId;
  return found;
}

/** Sends until a leader takes it: brokers hear of each other's leaders one after another. */
async function produce(name: string, partition: number, values: string[]): Promise<void> {
  for (;;) {
    const seen = clients.find(({ connection }) => connection.isOpen);
    assert(seen !== undefined, 'no broker is left');
    const leader = (await leaders(seen, name))[partition] ?? -1;
    const client = clients[leader - 1];
    if (client?.connection.isOpen) {
      const batch = values.map((value) => record(value));
      const [answer] = await client.produce([{ topic: name, partition, batch }], { acks: -1 });
      if (answer?.errorCode === ErrorCode.NONE) return;
      assert(retriable.has(answer?.errorCode ?? -1), `error ${answer?.errorCode}`);
    }
    await new Promise((resolve) => setTimeout(resolve, retryMs));
  }
}

/** The bytes of all segments of a partition on one broker. */
function bytesOf(id: number, name: string, partition: number): Buffer {
  const dir = join(cluster.broker(id).dataDir, `${name}-${partition}`);
  const segments = readdirSync(dir).filter((file) => file.endsWith('.log'));
  return Buffer.concat(segments.sort().map((file) => readFileSync(join(dir, file))));
}

function assertCopies(name: string, count: number): void {
  for (let partition = 0; partition < count; partition += 1) {
    const [first, ...others] = [1, 2, 3].map((id) => bytesOf(id, name, partition));
    for (const [k, other] of others.entries())
      assert(first!.equals(other), `${name}-${partition} differs on broker ${k + 2}`);
  }
}

test('what acks=all has answered is on every replica, byte for byte', async () => {
  await createTopic(topic, partitions);
  const spread = new Set(await leaders(clients[0]!, topic));
  assert.equal(spread.size, 3, 'all three brokers lead');
  const rounds = 30;
  for (let round = 0; round < rounds; round += 1)
    await Promise.all(
      Array.from({ length: partitions }, (_, partition) =>
        produce(topic, partition, [`${round}`, 'x'.repeat(1 + ((round * 7_919) % 50_000))]),
      ),
    );
  assertCopies(topic, partitions);
  assert(bytesOf(1, topic, 0).length > 100_000);
});

test('a follower that was away catches up with what was written meanwhile', async () => {
  clients[2]!.close();
  await cluster.broker(3).stop();
  for (let round = 0; round < 20; round += 1)
    await Promise.all(
      Array.from({ length: partitions }, (_, partition) =>
        produce(topic, partition, ['y'.repeat(20_000)]),
      ),
    );
  await cluster.broker(3).restart();
  clients[2] = await cluster.client(3);
  for (let partition = 0; partition < partitions; partition += 1)
    while (bytesOf(3, topic, partition).length < bytesOf(1, topic, partition).length)
      await new Promise((resolve) => setTimeout(resolve, retryMs));
  assertCopies(topic, partitions);
});

test('when a leader is killed its followers follow the next one, and so does it when it is back', async () => {
  clients[0]!.close();
  await cluster.broker(1).kill();
  for (let round = 0; round < 10; round += 1)
    await Promise.all(
      Array.from({ length: partitions }, (_, partition) =>
        produce(topic, partition, [`z${round}`]),
      ),
    );
  await cluster.broker(1).restart();
  clients[0] = await cluster.client(1);
  for (let partition = 0; partition < partitions; partition += 1)
    while (bytesOf(1, topic, partition).length < bytesOf(2, topic, partition).length)
      await new Promise((resolve) => setTimeout(resolve, retryMs));
  assertCopies(topic, partitions);
});

test.run();
