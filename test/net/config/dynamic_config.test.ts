/** Settings of brokers at run time: KIP-226. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import type { BrokerConfig } from '../../../net/config/broker_config.ts';
import {
  checkDynamicConfigs,
  listDefault,
  withOverrides,
  withoutEffect,
} from '../../../net/config/dynamic_config.ts';
import { brokerKeys } from '../../../net/config/key_table.ts';
import { loadBrokerConfig } from '../../../net/config/load.ts';
import { MetadataImage } from '../../../replication/metadata/image.ts';

const test = suite('dynamic_config');

function errorOf(resourceName: string, name: string, value: string): string | null {
  return checkDynamicConfigs(resourceName, [{ name, value }], new Set([name])).error;
}

function imageWith(
  cluster: Record<string, string>,
  broker: Record<string, string>,
  id = '1',
): MetadataImage {
  const image = new MetadataImage('cluster');
  const of = (resourceName: string, configs: Record<string, string>) =>
    Object.entries(configs).map(([name, value]) => ({
      type: 'ConfigRecord' as const,
      resourceType: 4,
      resourceName,
      name,
      value,
    }));
  const records = [...of('', cluster), ...of(id, broker)];
  image.follow({
    snapshot: false,
    firstOffset: 0,
    lastOffset: records.length,
    epoch: 1,
    leaderId: 1,
    records,
  });
  return image;
}

function start(...sets: string[]): BrokerConfig {
  return loadBrokerConfig({ sets }).config as BrokerConfig;
}

test('precedence: this broker, all brokers, the file, the default', () => {
  const config = start('message.max.bytes=3000', 'log.segment.bytes=2000000');
  const read = (cluster: Record<string, string>, broker: Record<string, string>): number =>
    withOverrides(config, imageWith(cluster, broker), assert.fail).logDefaults.maxMessageBytes;
  assert.equal(read({}, {}), 3_000);
  assert.equal(read({ 'message.max.bytes': '4000' }, {}), 4_000);
  assert.equal(read({ 'message.max.bytes': '4000' }, { 'message.max.bytes': '5000' }), 5_000);
  const segment = withOverrides(config, imageWith({}, {}), assert.fail).logDefaults.segmentBytes;
  assert.equal(segment, 2_000_000);
  assert.equal(withOverrides(start(), imageWith({}, {}), assert.fail).minInsyncReplicas, 1);
});

test('a time in milliseconds wins over one in hours from the file', () => {
  const config = withOverrides(
    start('log.retention.hours=2', 'log.roll.hours=3'),
    imageWith({ 'log.retention.ms': '70' }, { 'log.roll.ms': '80' }),
    assert.fail,
  );
  assert.deepEqual([config.logDefaults.retentionMs, config.logDefaults.segmentMs], [70, 80]);
});

test('the settings of another broker do not count', () => {
  const image = imageWith({}, { 'message.max.bytes': '4000' }, '2');
  const config = withOverrides(start(), image, assert.fail);
  assert.equal(config.logDefaults.maxMessageBytes, 1_048_588);
});

test('limits of connections and replicas, and what was set, are taken over', () => {
  const broker = { 'max.connections.per.ip.overrides': '10.0.0.1:3', 'max.connections': '9' };
  const image = imageWith({ 'min.insync.replicas': '2', 'max.connections.per.ip': '7' }, broker);
  const config = withOverrides(start(), image, assert.fail);
  assert.deepEqual(
    [
      config.minInsyncReplicas,
      config.maxConnectionsPerIp,
      config.maxConnections,
      config.maxConnectionsPerIpOverrides,
    ],
    [2, 7, 9, { '10.0.0.1': 3 }],
  );
  assert.deepEqual(config.overrides.broker, broker);
});

test('what this version cannot follow is left out and told', () => {
  const problems: string[] = [];
  const config = withOverrides(
    start('message.max.bytes=3000'),
    imageWith({ 'message.max.bytes': 'many', 'num.partitions': '3', 'my.plugin.key': 'x' }, {}),
    (problem) => problems.push(problem),
  );
  assert.equal(config.logDefaults.maxMessageBytes, 3_000);
  assert.equal(config.numPartitions, 1);
  assert.equal(problems.length, 3);
  assert.deepEqual(config.overrides, { cluster: {}, broker: {} });
});

test('texts are normalised, and what was not altered is let pass', () => {
  const configs = [
    { name: 'log.retention.ms', value: ' +5 ' },
    { name: 'my.plugin.key', value: 'x' },
  ];
  const { error, values } = checkDynamicConfigs('1', configs, new Set(['log.retention.ms']));
  assert.equal(error, null);
  assert.deepEqual(
    [...values],
    [
      ['log.retention.ms', '5'],
      ['my.plugin.key', 'x'],
    ],
  );
});

test('a key that is fixed at start is refused, whatever the value', () => {
  for (const key of brokerKeys().values()) {
    const value = key.defaultText ?? 'a';
    const error = errorOf('1', key.name, value);
    if (key.readOnly)
      assert.match(error ?? '', /^Cannot update these configs dynamically: \[.*restart$/, key.name);
  }
});

test('refusals name the key and what to do instead', () => {
  const cases: [string, string, string, RegExp][] = [
    [
      '1',
      'log.retention.mss',
      '1',
      /^Unknown broker config name: .*Did you mean log\.retention\.ms\?$/,
    ],
    ['1', 'retention.ms', '1', /For a broker it is log\.retention\.ms$/],
    ['1', 'no.such.key.at.all', '1', /^Unknown broker config name: no\.such\.key\.at\.all$/],
    [
      '1',
      'listener.name.x.ssl.keystore.type',
      'a',
      /settings for one listener are not supported yet/,
    ],
    [
      '1',
      'log.retention.ms',
      'x',
      /^Invalid value x for configuration log\.retention\.ms: allowed: /,
    ],
    ['1', 'compression.type', 'gzip', /not supported yet in this version. Allowed: producer$/],
    [
      '1',
      'ssl.keystore.type',
      'a',
      /^These security configs .*listener prefix: \[ssl\.keystore\.type\]$/,
    ],
    ['1', 'listeners', 'PLAINTEXT://:1', /dynamically: \[listeners\]/],
    ['', 'principal.builder.class', 'a', /at default cluster level, broker id must be specified/],
    ['1', 'max.connections.per.ip.overrides', 'x', /allowed: address:number/],
  ];
  for (const [resource, name, value, pattern] of cases)
    assert.match(errorOf(resource, name, value) ?? 'no error', pattern);
  assert.equal(errorOf('', 'log.retention.ms', '1'), null);
});

test('keys without effect are known', () => {
  assert.deepEqual(withoutEffect(['num.io.threads', 'message.max.bytes']), ['num.io.threads']);
});

test('only lists have a default to append to', () => {
  assert.equal(listDefault(2, 'cleanup.policy'), 'delete');
  assert.equal(listDefault(4, 'log.cleanup.policy'), 'delete');
  assert.equal(listDefault(2, 'retention.ms'), undefined);
  assert.equal(listDefault(2, 'no.such.key'), undefined);
});

test.run();
