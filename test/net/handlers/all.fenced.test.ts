/** What clients are told of a cluster in which brokers are gone: Metadata, DescribeCluster, DescribeTopicPartitions. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { answerMetadata } from '../../../net/handlers/03_metadata.ts';
import { answerDescribeCluster } from '../../../net/handlers/60_describe_cluster.ts';
import { answerDescribeTopicPartitions } from '../../../net/handlers/75_describe_topic_partitions.ts';
import type { QuorumHost } from '../../../net/quorum_host.ts';
import { splitMix } from '../../harness/split_mix.ts';
import { newTopic, registration } from '../../replication/metadata/fixtures.ts';
import { SimulatedStore } from '../../replication/raft/simulated_store.ts';
import { attachShard, call, newHost, type TestShard } from '../cluster_fixture.ts';

const test = suite('fenced brokers');

/** Brokers 1 to 3 with a topic on all of them; 3 has another listener only. */
async function threeBrokers(): Promise<{ host: QuorumHost; shard: TestShard }> {
  const host = newHost(new SimulatedStore(splitMix(1)), { sessionTimeoutMs: 60_000 });
  await host.start();
  for (const id of [1, 2, 3]) {
    const name = id === 3 ? 'INSIDE' : 'PLAINTEXT';
    const endPoints = [{ name, host: '127.0.0.1', port: 9090 + id, securityProtocol: 0 }];
    await host.request(registration(id, { endPoints }));
    await beat(host, id, false);
  }
  const topic = newTopic('t', {
    assignments: [{ partitionIndex: 0, brokerIds: [1, 2, 3] }],
    configs: [{ name: 'min.insync.replicas', value: '2' }],
  });
  await host.request({ type: 'createTopics', topics: [topic], validateOnly: false });
  return { host, shard: await attachShard(host) };
}

async function beat(host: QuorumHost, brokerId: number, wantFence: boolean): Promise<void> {
  const { result } = await host.request({
    type: 'brokerHeartbeat',
    brokerId,
    brokerEpoch: host.image.broker(brokerId)?.epoch ?? -1,
    currentMetadataOffset: host.image.offset,
    wantFence,
    wantShutDown: false,
    offlineLogDirs: [],
  });
  assert.equal(result?.isFenced, wantFence);
}

/** The shard has applied all that was committed before the call. */
async function fence(host: QuorumHost, shard: TestShard, ids: readonly number[]): Promise<void> {
  for (const id of ids) await beat(host, id, true);
  while (shard.image.offset < host.image.offset)
    await new Promise((resolve) => setImmediate(resolve));
}

async function metadata(shard: TestShard, version: number) {
  const response = await call('Metadata', version, { topics: null }, (decoded, caller) =>
    answerMetadata(shard, decoded, caller),
  );
  return { ...response, partition: response.topics[0]!.partitions[0]! };
}

test('Metadata names the brokers that live and that the listener reaches, the others are offline', async () => {
  const { host, shard } = await threeBrokers();
  const before = await metadata(shard, 12);
  assert.deepEqual(
    before.brokers.map(({ nodeId, port }) => [nodeId, port]),
    [
      [1, 9091],
      [2, 9092],
    ],
  );
  assert.deepEqual(before.partition.offlineReplicas, [3]);
  await fence(host, shard, [1]);
  const { brokers, controllerId, partition } = await metadata(shard, 12);
  assert.deepEqual(
    brokers.map(({ nodeId }) => nodeId),
    [2],
  );
  assert(controllerId === 2 || controllerId === 3, 'a broker that lives');
  assert.equal(partition.errorCode, ErrorCode.NONE);
  assert.equal(partition.leaderId, 2);
  assert.equal(partition.leaderEpoch, 1);
  assert.deepEqual(partition.isrNodes, [2, 3]);
  assert.deepEqual(partition.offlineReplicas, [1, 3]);
});

test('without a leader it is LEADER_NOT_AVAILABLE, on a listener without the leader LISTENER_NOT_FOUND', async () => {
  const { host, shard } = await threeBrokers();
  await fence(host, shard, [1, 2]);
  assert.equal((await metadata(shard, 12)).partition.errorCode, ErrorCode.LISTENER_NOT_FOUND);
  assert.equal((await metadata(shard, 5)).partition.errorCode, ErrorCode.LEADER_NOT_AVAILABLE);
  await fence(host, shard, [3]);
  const { brokers, controllerId, partition } = await metadata(shard, 12);
  assert.deepEqual([brokers, controllerId], [[], -1]);
  assert.equal(partition.errorCode, ErrorCode.LEADER_NOT_AVAILABLE);
  assert.equal(partition.leaderId, -1);
  assert.deepEqual(partition.replicaNodes, [1, 2, 3]);
  assert.deepEqual(partition.isrNodes, []);
  assert.deepEqual(partition.offlineReplicas, [1, 2, 3]);
});

test('DescribeCluster tells of fenced brokers if asked', async () => {
  const { host, shard } = await threeBrokers();
  await fence(host, shard, [2]);
  for (const includeFencedBrokers of [false, true]) {
    const request = {
      includeClusterAuthorizedOperations: false,
      endpointType: 1,
      includeFencedBrokers,
    };
    const { brokers } = await call('DescribeCluster', 2, request, (decoded, caller) =>
      answerDescribeCluster(shard, decoded, caller),
    );
    assert.deepEqual(
      brokers.map(({ brokerId, isFenced }) => [brokerId, isFenced]),
      includeFencedBrokers
        ? [
            [1, false],
            [2, true],
          ]
        : [[1, false]],
    );
  }
});

test('DescribeTopicPartitions tells of those who may lead outside of the ISR, and of the last leader', async () => {
  const { host, shard } = await threeBrokers();
  const describe = async () => {
    const { topics } = await call('DescribeTopicPartitions', 0, { topics: [] }, (decoded, caller) =>
      answerDescribeTopicPartitions(shard, decoded, caller),
    );
    return topics[0]!.partitions[0]!;
  };
  await fence(host, shard, [3, 2]);
  const { isrNodes, eligibleLeaderReplicas, lastKnownElr } = await describe();
  assert.deepEqual([isrNodes, eligibleLeaderReplicas, lastKnownElr], [[1], [2], []]);
  await fence(host, shard, [1]);
  const leaderless = await describe();
  assert.equal(leaderless.errorCode, ErrorCode.LEADER_NOT_AVAILABLE);
  assert.deepEqual(leaderless.isrNodes, []);
  assert.deepEqual(new Set(leaderless.eligibleLeaderReplicas), new Set([1, 2]));
  assert.deepEqual(leaderless.lastKnownElr, [1]);
});

test.run();
