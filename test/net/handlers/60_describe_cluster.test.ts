import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { answerDescribeCluster } from '../../../net/handlers/60_describe_cluster.ts';
import { clusterId } from '../../replication/metadata/fixtures.ts';
import { call, newCluster } from '../cluster_fixture.ts';

const test = suite('describe_cluster');

async function describe(version: number, endpointType: number, operations = false) {
  const { shard } = await newCluster();
  const request = { includeClusterAuthorizedOperations: operations, endpointType };
  return call('DescribeCluster', version, request, (decoded, caller) =>
    answerDescribeCluster(shard, decoded, caller),
  );
}

for (let version = 0; version <= 2; version += 1)
  test(`v${version}: the cluster, its brokers and controller`, async () => {
    const response = await describe(version, 1);
    assert.equal(response.errorCode, ErrorCode.NONE);
    assert.equal(response.clusterId, clusterId);
    assert.equal(response.controllerId, 1);
    assert.deepEqual(response.brokers, [
      { brokerId: 1, host: '127.0.0.1', port: 9092, rack: null, isFenced: false },
    ]);
    assert.equal(response.clusterAuthorizedOperations, -2_147_483_648);
  });

test('authorised operations where asked for', async () => {
  assert.equal((await describe(1, 1, true)).clusterAuthorizedOperations, 8_096);
});

test('controllers are not behind this door, and other types do not exist', async () => {
  const controllers = await describe(1, 2);
  assert.equal(controllers.errorCode, ErrorCode.MISMATCHED_ENDPOINT_TYPE);
  assert.equal(controllers.endpointType, 1);
  assert.equal((await describe(2, 9)).errorCode, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE);
});

test.run();
