import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { ApiKey } from '../../../net/protocol/api_key.gen.ts';
import { codecFor } from '../../../net/protocol/codec.ts';
import type {
  ApiVersionsRequestInput,
  ApiVersionsResponse,
} from '../../../net/protocol/messages.gen.ts';
import { Reader } from '../../../net/protocol/reader.ts';
import { clusterId, registration } from '../../replication/metadata/fixtures.ts';
import { WorldConnection } from '../data_path/client.ts';
import { ShardWorld } from '../data_path/shard_world.ts';

const test = suite('18 api versions');

const named: ApiVersionsRequestInput = { clientSoftwareName: 'test', clientSoftwareVersion: '1.0' };

function ask(
  world: ShardWorld,
  version: number,
  request: ApiVersionsRequestInput = version >= 3 ? named : {},
): ApiVersionsResponse {
  return new WorldConnection(world).call('ApiVersions', version, request);
}

for (let version = 0; version <= 5; version += 1)
  test(`v${version}: every API that has a handler, in its versions`, async () => {
    const world = await ShardWorld.start();
    const { errorCode, apiKeys } = ask(world, version);
    assert.equal(errorCode, ErrorCode.NONE);
    assert.deepEqual(
      apiKeys.map(({ apiKey, minVersion, maxVersion }) => [apiKey, minVersion, maxVersion]),
      world.registry
        .served()
        .map(({ apiKey, minVersion, maxVersion }) => [apiKey, minVersion, maxVersion]),
    );
    assert(apiKeys.length >= 12);
  });

test('trap 2: Produce is advertised from 0 on, which v0-2 answer to', async () => {
  const world = await ShardWorld.start();
  const { apiKeys } = ask(world, 3);
  const versions = (key: number): number[] =>
    apiKeys
      .filter(({ apiKey }) => apiKey === key)
      .flatMap(({ minVersion, maxVersion }) => [minVersion, maxVersion]);
  assert.deepEqual(versions(ApiKey.Produce), [0, 13]);
  assert.deepEqual(versions(ApiKey.Fetch), [4, 18]);
  assert.deepEqual(versions(ApiKey.InitProducerId), [0, 5], 'v6 is not stable');
});

test('trap 4: the versions that carry topic ids are all there', async () => {
  const world = await ShardWorld.start();
  const { apiKeys } = ask(world, 3);
  const newest = new Map(apiKeys.map(({ apiKey, maxVersion }) => [apiKey, maxVersion]));
  assert((newest.get(ApiKey.Metadata) ?? 0) >= 10);
  assert((newest.get(ApiKey.Fetch) ?? 0) >= 13);
  assert((newest.get(ApiKey.Produce) ?? 0) >= 13);
  assert((newest.get(ApiKey.DeleteTopics) ?? 0) >= 6);
});

test('trap 1: the answer has response header 0 in every version, flexible ones included', async () => {
  const world = await ShardWorld.start();
  for (let version = 0; version <= 5; version += 1) {
    const sent = new WorldConnection(world).send('ApiVersions', version, version >= 3 ? named : {});
    const bytes = sent.bytes();
    // Size, correlation id, and at once the error code: no tag section between.
    const reader = new Reader(bytes, 8);
    const value = codecFor('ApiVersionsResponse', version).decode(reader);
    assert.deepEqual([value.errorCode, reader.remaining], [ErrorCode.NONE, 0]);
  }
});

for (const version of [6, 99, 32_767, -1])
  test(`trap 1: v${version} is answered in v0 with error 35 and the range of this API, and the connection stays`, async () => {
    const world = await ShardWorld.start();
    const client = new WorldConnection(world);
    const frame = Buffer.alloc(60);
    frame.writeInt16BE(ApiKey.ApiVersions, 0);
    frame.writeInt16BE(version, 2);
    frame.writeInt32BE(4_242, 4);
    frame.writeInt16BE(-1, 8);
    const context = client.dispatch(frame);
    assert.equal(client.failure, null);
    const bytes = Buffer.from(context.responseBytes as Uint8Array);
    assert.deepEqual([bytes.readInt32BE(0), bytes.readInt32BE(4)], [bytes.length - 4, 4_242]);
    const reader = new Reader(bytes, 8);
    const answer = codecFor('ApiVersionsResponse', 0).decode(reader);
    assert.equal(reader.remaining, 0);
    assert.equal(answer.errorCode, ErrorCode.UNSUPPORTED_VERSION);
    assert.deepEqual(
      answer.apiKeys.map(({ apiKey, minVersion, maxVersion }) => [apiKey, minVersion, maxVersion]),
      [[18, 0, 5]],
    );
  });

test('trap 3: features with minimum version 0 from v4 on only, finalized ones with an epoch', async () => {
  const world = await ShardWorld.start();
  await world.host.request(
    registration(1, {
      features: [
        { name: 'metadata.version', minSupportedVersion: 7, maxSupportedVersion: 33 },
        { name: 'kraft.version', minSupportedVersion: 0, maxSupportedVersion: 1 },
      ],
    }),
  );
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  const supported = (version: number): string[] =>
    ask(world, version).supportedFeatures.map(({ name }) => name);
  assert.deepEqual(supported(2), []);
  assert.deepEqual(supported(3), ['metadata.version']);
  assert.deepEqual(new Set(supported(4)), new Set(['kraft.version', 'metadata.version']));
  const { finalizedFeatures, finalizedFeaturesEpoch } = ask(world, 3);
  assert.deepEqual(
    finalizedFeatures.map(({ name, maxVersionLevel }) => [name, maxVersionLevel]),
    [['metadata.version', 33]],
  );
  assert(finalizedFeaturesEpoch >= 0n);
});

test('names of clients (KIP-511): INVALID_REQUEST for odd ones, from v3 on', async () => {
  const world = await ShardWorld.start();
  const code = (clientSoftwareName: string, clientSoftwareVersion: string): number =>
    ask(world, 3, { clientSoftwareName, clientSoftwareVersion }).errorCode;
  for (const good of ['a', 'librdkafka', 'a.b-c', '9'])
    assert.equal(code(good, '2.3.0-RC1'), ErrorCode.NONE, good);
  for (const bad of ['', '-a', 'a-', 'a b', '.', 'ä', 'a\n', `${'a'.repeat(30_000)}!`]) {
    assert.equal(code(bad, '1'), ErrorCode.INVALID_REQUEST, bad.slice(0, 10));
    assert.equal(code('a', bad), ErrorCode.INVALID_REQUEST, bad.slice(0, 10));
  }
  assert.deepEqual(
    ask(world, 3, { clientSoftwareName: '', clientSoftwareVersion: '' }).apiKeys,
    [],
  );
});

test('v5 (KIP-1242): whoever means another cluster or another node is sent to find the right one', async () => {
  const world = await ShardWorld.start();
  const code = (rest: ApiVersionsRequestInput): number =>
    ask(world, 5, { ...named, ...rest }).errorCode;
  assert.equal(code({}), ErrorCode.NONE);
  assert.equal(code({ clusterId, nodeId: 1 }), ErrorCode.NONE);
  assert.equal(code({ clusterId: 'another' }), ErrorCode.REBOOTSTRAP_REQUIRED);
  assert.equal(code({ clusterId, nodeId: 2 }), ErrorCode.REBOOTSTRAP_REQUIRED);
});

test.run();
