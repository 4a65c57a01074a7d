import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { answerDescribeQuorum } from '../../../net/handlers/55_describe_quorum.ts';
import { call, newCluster } from '../cluster_fixture.ts';

const test = suite('55 describe quorum');

async function describe(version: number, asked: readonly (readonly [string, number])[]) {
  const { host, shard } = await newCluster([['t', 1]]);
  const topics = asked.map(([topicName, partitionIndex]) => ({
    topicName,
    partitions: [{ partitionIndex }],
  }));
  const response = await call('DescribeQuorum', version, { topics }, (decoded) =>
    answerDescribeQuorum(shard, decoded, version),
  );
  return { response, offset: host.image.offset };
}

for (const version of [0, 1, 2])
  test(`v${version}: the leader, the high watermark, and each voter's progress`, async () => {
    const { response, offset } = await describe(version, [['__cluster_metadata', 0]]);
    assert.equal(response.errorCode, ErrorCode.NONE);
    const [topic] = response.topics;
    assert.equal(topic?.topicName, '__cluster_metadata');
    const partition = topic.partitions[0]!;
    assert.equal(partition.errorCode, ErrorCode.NONE);
    assert.equal(partition.leaderId, 1);
    assert(partition.leaderEpoch > 0);
    assert.equal(partition.highWatermark, BigInt(offset + 1));
    const [voter, ...others] = partition.currentVoters;
    assert.deepEqual([voter?.replicaId, voter?.logEndOffset], [1, BigInt(offset + 1)]);
    assert.deepEqual([others, partition.observers], [[], []]);
    if (version === 2) assert.deepEqual(response.nodes[0]?.nodeId, 1);
  });

test('there is nothing else to be asked for', async () => {
  for (const asked of [
    [['__cluster_metadata', 1]],
    [['t', 0]],
    [
      ['__cluster_metadata', 0],
      ['t', 0],
    ],
  ] as const) {
    const { response } = await describe(2, asked);
    assert.equal(response.errorCode, ErrorCode.NONE);
    assert.equal(response.topics.length, asked.length);
    for (const { partitions } of response.topics)
      assert.equal(partitions[0]?.errorCode, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
  }
});

test.run();
