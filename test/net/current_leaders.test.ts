/** KIP-951, from its text and Kafka's `KafkaApis`. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { WorldConnection } from './data_path/client.ts';
import { batchOf, fetch, produce } from './data_path/requests.ts';
import type { ShardWorld } from './data_path/shard_world.ts';
import { moveLeader, withClient } from './data_path/world_client.ts';

const test = suite('current_leaders');

const { NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, NONE } = ErrorCode;
const nobody = { leaderId: -1, leaderEpoch: -1 };
const other = { nodeId: 2, host: 'other.example', port: 9093, rack: 'second' };

function askProduce(world: ShardWorld, client: WorldConnection, version: number) {
  const parts = [0, 1].map((partition) => ({ topic: 't', partition, records: batchOf(['v']) }));
  const sent = client.send('Produce', version, produce(world, version, -1, parts));
  world.settle();
  const { responses, nodeEndpoints } = sent.response();
  const partitions = responses.flatMap(({ partitionResponses }) => partitionResponses);
  return { partitions, nodeEndpoints };
}

function askFetch(
  world: ShardWorld,
  client: WorldConnection,
  version: number,
  currentLeaderEpoch = -1,
) {
  const parts = [0, 1].map((partition) => ({ topic: 't', partition, currentLeaderEpoch }));
  const answer = client.call('Fetch', version, fetch(world, version, parts, { maxWaitMs: 0 }));
  const partitions = answer.responses.flatMap((topic) => topic.partitions);
  return { partitions, nodeEndpoints: answer.nodeEndpoints };
}

for (const [name, ask, versions] of [
  ['Produce', askProduce, [9, 10, 12, 13]],
  ['Fetch', askFetch, [12, 15, 16, 18]],
] as const)
  for (const version of versions)
    test(`${name} v${version}: who asks the wrong broker hears who leads, if the version can say it`, async () => {
      const { world, client } = await withClient();
      const { leaderEpoch } = world.leader('t');
      moveLeader(world);
      const { partitions, nodeEndpoints } = ask(world, client, version);
      const isTold = version >= (name === 'Produce' ? 10 : 16);
      const leader = isTold ? { leaderId: 2, leaderEpoch: leaderEpoch + 1 } : nobody;
      assert.deepEqual(
        partitions.map(({ errorCode, currentLeader }) => [errorCode, currentLeader]),
        [
          [NOT_LEADER_OR_FOLLOWER, leader],
          [NONE, nobody],
        ],
      );
      assert.deepEqual(nodeEndpoints, isTold ? [other] : []);
    });

test('a leader that is not there has no address', async () => {
  const { world, client } = await withClient();
  moveLeader(world, false);
  const { partitions, nodeEndpoints } = askProduce(world, client, 13);
  assert.equal(partitions[0]?.currentLeader.leaderId, 2);
  assert.deepEqual(nodeEndpoints, []);
});

test('several partitions with one leader give its address once', async () => {
  const { world, client } = await withClient();
  moveLeader(world);
  const parts = [0, 0].map(() => ({ topic: 't', partition: 0, records: batchOf(['v']) }));
  const { nodeEndpoints } = client.call('Produce', 13, produce(world, 13, -1, parts));
  assert.deepEqual(nodeEndpoints, [other]);
});

test('Fetch: who knows an older epoch hears the current one', async () => {
  const { world, client } = await withClient();
  const { leaderEpoch } = world.leader('t');
  const state = { replicas: [1], isr: [1], leaderEpoch: leaderEpoch + 3, partitionEpoch: 9 };
  world.leader('t').lead(state, world.clock.ms);
  const { partitions } = askFetch(world, client, 18, leaderEpoch);
  assert.equal(partitions[0]?.errorCode, FENCED_LEADER_EPOCH);
  assert.equal(partitions[0].currentLeader.leaderId, 1);
});

test.run();
