import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { WorldConnection } from '../data_path/client.ts';
import { ShardWorld } from '../data_path/shard_world.ts';

const test = suite('43 elect leaders');

test('the answer names topics and partitions as the request does', async () => {
  const world = await ShardWorld.start({ topics: [['t', 2]] });
  const client = new WorldConnection(world);
  for (const version of [0, 1, 2]) {
    const response = await client.callLater('ElectLeaders', version, {
      topicPartitions: [
        { topic: 't', partitions: [1, 7] },
        { topic: 'u', partitions: [0] },
      ],
      timeoutMs: 1_000,
    });
    assert.equal(response.errorCode, ErrorCode.NONE);
    assert.deepEqual(
      response.replicaElectionResults.map(({ topic, partitionResult }) => [
        topic,
        partitionResult.map(({ partitionId, errorCode }) => [partitionId, errorCode]),
      ]),
      [
        [
          't',
          [
            [1, ErrorCode.ELECTION_NOT_NEEDED],
            [7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
          ],
        ],
        ['u', [[0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]]],
      ],
    );
  }
});

test('of all partitions, those that need nothing are left out', async () => {
  const world = await ShardWorld.start({ topics: [['t', 2]] });
  const request = { electionType: 0, topicPartitions: null, timeoutMs: 1_000 };
  const response = await new WorldConnection(world).callLater('ElectLeaders', 2, request);
  assert.deepEqual(response.replicaElectionResults, []);
});

test('an error of the whole request is told of each partition too: v0 has no other place', async () => {
  const world = await ShardWorld.start({ topics: [['t', 1]] });
  for (const version of [0, 2]) {
    const request = { topicPartitions: [{ topic: 't', partitions: [0] }], timeoutMs: 0 };
    const response = await new WorldConnection(world).callLater('ElectLeaders', version, request);
    assert.equal(response.errorCode, version === 0 ? 0 : ErrorCode.REQUEST_TIMED_OUT);
    const [result] = response.replicaElectionResults[0]!.partitionResult;
    assert.equal(result?.errorCode, ErrorCode.REQUEST_TIMED_OUT);
  }
});

test.run();
