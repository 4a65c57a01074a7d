/** Three brokers as processes: the offsets of a group survive their coordinator. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type { Client } from '../../harness/client.ts';
import { Cluster } from '../../harness/cluster.ts';

const test = suite('coordinators of a cluster');

const groupId = 'g';
const retryMs = 20;
let cluster: Cluster;
/** By broker id. */
const clients = new Map<number, Client>();

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, retryMs));

test.before(async () => {
  cluster = await Cluster.start({ settings: { 'offsets.topic.num.partitions': 3 } });
  for (const id of [1, 2, 3]) clients.set(id, await cluster.client(id));
  await clients.get(1)!.createTopic('t');
});

test.after(async () => {
  for (const client of clients.values()) client.close();
  await cluster?.dispose();
});

/** The id of the broker that coordinates the group, as any that lives says. */
async function findCoordinator(): Promise<number> {
  for (;;) {
    for (const client of clients.values()) {
      const answer = await client.request('FindCoordinator', { coordinatorKeys: [groupId] });
      const [found] = answer.coordinators;
      if (found?.errorCode === ErrorCode.NONE && clients.has(found.nodeId)) return found.nodeId;
    }
    await pause();
  }
}

/** Errors that say "ask again", where coordinators move and load. */
const passing: readonly number[] = [
  ErrorCode.NOT_COORDINATOR,
  ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
  ErrorCode.COORDINATOR_NOT_AVAILABLE,
];

async function commit(offset: number): Promise<number> {
  const partition = { partitionIndex: 0, committedOffset: offset, committedMetadata: '' };
  for (;;) {
    const id = await findCoordinator();
    const topics = [
      clients.get(id)!.version('OffsetCommit') >= 10
        ? { topicId: await clients.get(id)!.topicId('t'), partitions: [partition] }
        : { name: 't', partitions: [partition] },
    ];
    const answer = await clients.get(id)!.request('OffsetCommit', { groupId, topics });
    const code = answer.topics[0]?.partitions[0]?.errorCode;
    if (code === ErrorCode.NONE) return id;
    assert(passing.includes(code ?? -1), `commit: error ${code}`);
    await pause();
  }
}

async function committed(): Promise<number> {
  for (;;) {
    const id = await findCoordinator();
    const answer = await clients
      .get(id)!
      .request('OffsetFetch', { groups: [{ groupId, topics: null }] });
    const [group] = answer.groups;
    if (group?.errorCode === ErrorCode.NONE)
      return Number(group.topics[0]?.partitions[0]?.committedOffset ?? -1n);
    assert(passing.includes(group?.errorCode ?? -1), `fetch: error ${group?.errorCode}`);
    await pause();
  }
}

test('what was committed is there after a kill of the coordinator, and after its return', async () => {
  const first = await commit(10);
  assert.equal(await committed(), 10);
  clients.get(first)!.close();
  clients.delete(first);
  await cluster.broker(first).kill();
  assert.equal(await committed(), 10);
  const second = await commit(20);
  assert.notEqual(second, first);
  await cluster.broker(first).restart();
  clients.set(first, await cluster.client(first));
  clients.get(second)!.close();
  clients.delete(second);
  await cluster.broker(second).stop();
  assert.equal(await committed(), 20);
});

test.run();
