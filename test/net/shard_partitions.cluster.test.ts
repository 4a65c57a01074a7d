/** Three brokers as processes, and a partition with copies on two of them: what min.insync.replicas promises (KIP-966). */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { type Client, record } from '../harness/client.ts';
import { Cluster } from '../harness/cluster.ts';

const test = suite('too few replicas in sync');

const topic = 'two';
const retryMs = 20;
let cluster: Cluster;
let leader: Client;
let leaderId: number;
let followerId: number;

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, retryMs));

test.before(async () => {
  cluster = await Cluster.start();
  const first = await cluster.client(1);
  await first.request('CreateTopics', {
    topics: [
      {
        name: topic,
        numPartitions: 1,
        replicationFactor: 2,
        assignments: [],
        configs: [{ name: 'min.insync.replicas', value: '2' }],
      },
    ],
    timeoutMs: 30_000,
  });
  const partition = await see(first);
  leaderId = partition.leaderId;
  followerId = partition.replicaNodes.find((id) => id !== leaderId)!;
  first.close();
  leader = await cluster.client(leaderId);
});

test.after(async () => {
  leader?.close();
  await cluster?.dispose();
});

/** The partition as the broker sees it. */
async function see(client: Client) {
  const { topics } = await client.metadata([topic]);
  const partition = topics[0]?.partitions[0];
  assert(partition !== undefined && partition.leaderId > 0);
  return partition;
}

async function produce(value: string, acks: -1 | 1): Promise<ErrorCode> {
  const part = { topic, partition: 0, batch: [record(value)] };
  const [answer] = await leader.produce([part], { acks });
  return (answer?.errorCode ?? ErrorCode.UNKNOWN_SERVER_ERROR) as ErrorCode;
}

async function values(): Promise<string[]> {
  const records = await leader.readAll(topic, 0);
  return records.map(({ value }) => Buffer.from(value!).toString());
}

test('every other broker says who leads, and where (KIP-951)', async () => {
  const { host, port } = cluster.broker(leaderId);
  for (const id of cluster.ids.filter((one) => one !== leaderId)) {
    const client = await cluster.client(id);
    // Brokers hear of new topics a little later than the leader.
    while ((await see(client)).leaderId !== leaderId) await pause();
    const answer = await client.fetch([{ topic, partition: 0, offset: 0 }]);
    const [partition] = answer.responses.flatMap(({ partitions }) => partitions);
    assert.equal(partition?.errorCode, ErrorCode.NOT_LEADER_OR_FOLLOWER);
    assert.equal(partition.currentLeader.leaderId, leaderId);
    assert.deepEqual(answer.nodeEndpoints, [{ nodeId: leaderId, host, port, rack: null }]);
    client.close();
  }
});

test('acks=all is refused, acks=1 is taken and not shown, what was visible stays so; all by itself it is well again', async () => {
  // Leaders hear of themselves a little after the topic is there.
  while ((await produce('a', -1)) !== ErrorCode.NONE) await pause();
  assert.deepEqual(await values(), ['a']);
  await cluster.broker(followerId).kill();
  while ((await see(leader)).isrNodes.length === 2) await pause();
  while ((await produce('refused', -1)) !== ErrorCode.NOT_ENOUGH_REPLICAS) await pause();
  assert.equal(await produce('b', 1), ErrorCode.NONE);
  assert.deepEqual((await values())[0], 'a');
  assert(!(await values()).includes('b'));
  await cluster.broker(followerId).restart();
  while ((await see(leader)).isrNodes.length < 2) await pause();
  while (!(await values()).includes('b')) await pause();
  assert.equal(await produce('c', -1), ErrorCode.NONE);
  assert.deepEqual((await values()).slice(-2), ['b', 'c']);
  assert.equal((await see(leader)).leaderId, leaderId);
});

test.run();
