import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type { BrokerConfig } from '../../../net/config/broker_config.ts';
import { loadBrokerConfig } from '../../../net/config/load.ts';
import {
  describeConfigs,
  describeConfigsHandler,
} from '../../../net/handlers/32_describe_configs.ts';
import { codecFor } from '../../../net/protocol/codec.ts';
import type { MessageTypes } from '../../../net/protocol/messages.gen.ts';
import { Reader } from '../../../net/protocol/reader.ts';
import { Writer } from '../../../net/protocol/writer.ts';
import { MetadataImage } from '../../../replication/metadata/image.ts';

const test = suite('describe_configs');

type Request = MessageTypes['DescribeConfigsRequest'];

function services(): Parameters<typeof describeConfigs>[1] {
  const image = new MetadataImage('cluster');
  const topicId = 'AAAAAAAAAAAAAAAAAAAAAQ';
  image.apply({
    snapshot: false,
    firstOffset: 0,
    lastOffset: 1,
    epoch: 1,
    leaderId: 1,
    records: [
      { type: 'TopicRecord', name: 'orders', topicId },
      {
        type: 'ConfigRecord',
        resourceType: 2,
        resourceName: 'orders',
        name: 'retention.ms',
        value: '5',
      },
    ],
  });
  const { config } = loadBrokerConfig({ sets: ['node.id=4', 'num.partitions=2'] });
  return { nodeId: 4, image, config: config as BrokerConfig };
}

function ask(
  resourceType: number,
  resourceName: string,
  keys: string[] | null = null,
): ReturnType<typeof describeConfigs>['results'][number] {
  const request: Request = {
    resources: [{ resourceType, resourceName, configurationKeys: keys }],
    includeSynonyms: true,
    includeDocumentation: true,
  };
  const { results } = describeConfigs(request, services());
  assert.equal(results.length, 1);
  const result = results[0] as (typeof results)[number];
  assert.deepEqual([result.resourceType, result.resourceName], [resourceType, resourceName]);
  return result;
}

test('a topic is described with its overrides', () => {
  const { errorCode, configs } = ask(2, 'orders');
  assert.equal(errorCode, ErrorCode.NONE);
  const retention = configs.find(({ name }) => name === 'retention.ms');
  assert.equal(retention?.value, '5');
  assert.equal(retention?.configSource, 1);
  assert.equal(retention?.configType, 5);
  assert.deepEqual(retention?.synonyms, [{ name: 'retention.ms', value: '5', source: 1 }]);
  assert(configs.length > 30);
});

test('only the keys asked for are in the answer, an empty list asks for all', () => {
  assert.deepEqual(
    ask(2, 'orders', ['segment.ms', 'x']).configs.map(({ name }) => name),
    ['segment.ms'],
  );
  assert(ask(2, 'orders', []).configs.length > 30);
});

test('this broker is described, the whole cluster has nothing of its own', () => {
  const partitions = ask(4, '4').configs.find(({ name }) => name === 'num.partitions');
  assert.deepEqual(
    [partitions?.value, partitions?.configSource, partitions?.readOnly],
    ['2', 4, true],
  );
  assert.deepEqual(ask(4, '').configs, []);
  assert.deepEqual(ask(8, '4').configs, []);
});

test('groups have the defaults for groups', () => {
  const { errorCode, configs } = ask(32, 'g', ['consumer.session.timeout.ms']);
  assert.deepEqual([errorCode, configs[0]?.value], [ErrorCode.NONE, '45000']);
});

test('what cannot be described is refused as in Kafka', () => {
  const { INVALID_REQUEST, INVALID_TOPIC_EXCEPTION, UNKNOWN_TOPIC_OR_PARTITION } = ErrorCode;
  const cases: [number, string, number, string | null][] = [
    [2, 'nobody', UNKNOWN_TOPIC_OR_PARTITION, null],
    [4, '5', INVALID_REQUEST, 'Unexpected broker id, expected 4 or empty string, but received 5'],
    [4, 'x', INVALID_REQUEST, 'Broker id must be an integer, but it is: x'],
    [8, '', INVALID_REQUEST, 'Broker id must not be empty'],
    [8, '5', INVALID_REQUEST, 'Unexpected broker id, expected 4 but received 5'],
    [16, '', INVALID_REQUEST, 'Client metrics subscription name must not be empty'],
    [32, '', INVALID_REQUEST, 'Group name must not be empty'],
    [0, 'a', INVALID_REQUEST, 'Unexpected resource type 0 for resource a'],
  ];
  for (const [type, name, code, message] of cases) {
    const result = ask(type, name);
    assert.deepEqual([result.errorCode, result.errorMessage, result.configs], [code, message, []]);
  }
  assert.equal(ask(2, 'not/valid').errorCode, INVALID_TOPIC_EXCEPTION);
});

test('synonyms and documentation come only if asked for', () => {
  const request: Request = {
    resources: [{ resourceType: 4, resourceName: '4', configurationKeys: null }],
    includeSynonyms: false,
    includeDocumentation: false,
  };
  for (const config of describeConfigs(request, services()).results[0]?.configs ?? []) {
    assert.deepEqual([config.synonyms, config.documentation], [[], null]);
  }
});

test('every version can be encoded and read back', () => {
  const handler = describeConfigsHandler(services());
  const request: Request = {
    resources: [
      { resourceType: 2, resourceName: 'orders', configurationKeys: null },
      { resourceType: 4, resourceName: '4', configurationKeys: null },
    ],
    includeSynonyms: true,
    includeDocumentation: true,
  };
  const response = describeConfigs(request, services());
  for (let version = handler.minVersion; version <= handler.maxVersion; version += 1) {
    const codec = codecFor('DescribeConfigsResponse', version);
    const writer = new Writer();
    codec.encode(writer, response);
    const { bytes } = writer.finish();
    const decoded = codec.decode(new Reader(bytes, 0, bytes.length));
    assert.equal(decoded.results[1]?.configs.length, response.results[1]?.configs.length);
    assert.equal(decoded.results[0]?.configs[0]?.configType, version >= 3 ? 7 : 0);
  }
});

test.run();
