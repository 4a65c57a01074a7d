import assert from 'node:assert/strict';
import { suite } from 'uvu';
import type { BrokerConfig } from '../../../net/config/broker_config.ts';
import {
  ConfigSource,
  type DescribedConfig,
  describeBroker,
  describeClusterDefaults,
  describeGroup,
  describeTopic,
} from '../../../net/config/describe.ts';
import { brokerKeys, groupKeys, topicKeys } from '../../../net/config/key_table.ts';
import { loadBrokerConfig } from '../../../net/config/load.ts';

const test = suite('describe');

function broker(...sets: string[]): BrokerConfig {
  const surroundings = { cwd: '/', hostname: 'h', memoryBytes: 2 ** 33 };
  return loadBrokerConfig({ sets, surroundings }).config as BrokerConfig;
}

function one(all: readonly DescribedConfig[], name: string): DescribedConfig {
  const found = all.filter((config) => config.name === name);
  assert.equal(found.length, 1, name);
  return found[0] as DescribedConfig;
}

test('every key but the internal ones is told', () => {
  const names = (all: readonly DescribedConfig[]): Set<string> =>
    new Set(all.map(({ name }) => name));
  const publicNames = (table: ReturnType<typeof brokerKeys>): Set<string> =>
    new Set([...table.values()].filter((key) => !key.internal).map(({ name }) => name));
  assert.deepEqual(names(describeTopic(new Map(), broker())), publicNames(topicKeys()));
  assert.deepEqual(names(describeGroup(broker())), publicNames(groupKeys()));
  const expected = publicNames(brokerKeys()).add('inter.broker.protocol.version');
  // Kafka does not tell of what cannot stand in a file until somebody sets it.
  for (const { name, dynamicOnly } of brokerKeys().values()) if (dynamicOnly) expected.delete(name);
  assert.deepEqual(names(describeBroker(broker())), expected);
});

test('a default of a topic comes from the broker key behind it', () => {
  const config = one(describeTopic(new Map(), broker()), 'retention.ms');
  assert.equal(config.value, '1209600000');
  assert.equal(config.source, ConfigSource.default);
  assert.equal(config.readOnly, false);
  assert.equal(config.type, 5);
  // As Kafka, which begins with log.retention.ms.
  assert.deepEqual(config.synonyms, []);
});

test('a setting of the broker shows through, in the unit of the topic key', () => {
  const config = one(describeTopic(new Map(), broker('log.retention.hours=2')), 'retention.ms');
  assert.equal(config.value, '7200000');
  // As Kafka, which knows of log.retention.ms alone here.
  assert.deepEqual([config.source, config.synonyms], [ConfigSource.default, []]);
});

test('an override of the topic comes first', () => {
  const overrides = new Map([['retention.ms', '5']]);
  const config = one(describeTopic(overrides, broker('log.retention.ms=6')), 'retention.ms');
  assert.deepEqual([config.value, config.source], ['5', ConfigSource.topic]);
  assert.deepEqual(config.synonyms, [
    { name: 'retention.ms', value: '5', source: ConfigSource.topic },
    { name: 'log.retention.ms', value: '6', source: ConfigSource.staticBroker },
    { name: 'log.retention.hours', value: '336', source: ConfigSource.default },
  ]);
});

test('a topic key without a broker key has no synonyms', () => {
  const config = one(describeTopic(new Map(), broker()), 'remote.storage.enable');
  assert.deepEqual([config.value, config.synonyms], ['false', []]);
});

test('broker settings tell where they come from, and are read-only unless Kafka can change them', () => {
  const all = describeBroker(broker('num.partitions=3', 'log.retention.ms=6'));
  const partitions = one(all, 'num.partitions');
  assert.deepEqual([partitions.value, partitions.source, partitions.readOnly], ['3', 4, true]);
  assert.deepEqual(partitions.synonyms, [
    { name: 'num.partitions', value: '3', source: ConfigSource.staticBroker },
    { name: 'num.partitions', value: '1', source: ConfigSource.default },
  ]);
  const retention = one(all, 'log.retention.hours');
  assert.deepEqual([retention.value, retention.source], ['336', ConfigSource.default]);
  assert.deepEqual(retention.synonyms, [
    { name: 'log.retention.hours', value: '336', source: ConfigSource.default },
  ]);
  assert.equal(one(all, 'message.max.bytes').readOnly, false);
  assert.equal(one(all, 'log.dirs').value, null);
  assert.equal(one(all, 'node.id').value, '1');
  assert.equal(one(all, 'log.durability').value, 'fsync');
});

test('passwords are never told', () => {
  const all = describeBroker(broker('ssl.keystore.password=hunter2'));
  const config = one(all, 'ssl.keystore.password');
  assert.deepEqual([config.value, config.sensitive, config.type], [null, true, 9]);
  assert.deepEqual(config.synonyms, [
    { name: 'ssl.keystore.password', value: null, source: ConfigSource.staticBroker },
  ]);
  assert(!JSON.stringify(all).includes('hunter2'));
});

test('a group has the defaults that the broker has for groups', () => {
  const all = describeGroup(broker('group.consumer.session.timeout.ms=46000'));
  const timeout = one(all, 'consumer.session.timeout.ms');
  assert.deepEqual([timeout.value, timeout.source], ['46000', ConfigSource.staticBroker]);
  const reset = one(all, 'share.auto.offset.reset');
  assert.deepEqual(reset.synonyms, [
    { name: 'share.auto.offset.reset', value: 'latest', source: ConfigSource.default },
  ]);
});

test('what is set at run time comes before the file, for this broker before that for all', () => {
  const start = broker('log.retention.hours=2', 'message.max.bytes=5000');
  const config: BrokerConfig = {
    ...start,
    overrides: {
      cluster: { 'log.retention.ms': '7', 'message.max.bytes': '6000' },
      broker: { 'log.retention.ms': '8' },
    },
  };
  const { dynamicBroker, dynamicDefaultBroker, staticBroker } = ConfigSource;
  const retention = one(describeBroker(config), 'log.retention.ms');
  assert.deepEqual([retention.value, retention.source], ['8', dynamicBroker]);
  assert.deepEqual(retention.synonyms, [
    { name: 'log.retention.ms', value: '8', source: dynamicBroker },
    { name: 'log.retention.ms', value: '7', source: dynamicDefaultBroker },
    { name: 'log.retention.hours', value: '2', source: staticBroker },
    { name: 'log.retention.hours', value: '336', source: ConfigSource.default },
  ]);
  const size = one(describeTopic(new Map(), config), 'max.message.bytes');
  assert.deepEqual([size.value, size.source], ['6000', dynamicDefaultBroker]);
  assert.deepEqual(size.synonyms, [
    { name: 'message.max.bytes', value: '6000', source: dynamicDefaultBroker },
    { name: 'message.max.bytes', value: '5000', source: staticBroker },
    { name: 'message.max.bytes', value: '1048588', source: ConfigSource.default },
  ]);
  assert.deepEqual(
    describeClusterDefaults(config).map(({ name, value, source }) => [name, value, source]),
    [
      ['log.retention.ms', '7', dynamicDefaultBroker],
      ['message.max.bytes', '6000', dynamicDefaultBroker],
    ],
  );
});

test('only the keys asked for are told', () => {
  const wanted = new Set(['retention.ms', 'node.id', 'no.such.key']);
  const names = (all: readonly DescribedConfig[]): string[] => all.map(({ name }) => name);
  assert.deepEqual(names(describeTopic(new Map(), broker(), wanted)), ['retention.ms']);
  assert.deepEqual(names(describeBroker(broker(), wanted)), ['node.id']);
  assert.deepEqual(describeGroup(broker(), wanted), []);
});

test('keys without effect say so', () => {
  const all = describeBroker(broker());
  assert.equal(
    one(all, 'num.io.threads').documentation,
    'Known from Kafka, without effect in this version of Millrace.',
  );
  assert.match(one(all, 'background.threads').documentation, / Without effect in this version/);
  assert.match(one(all, 'num.partitions').documentation, /^Partitions of a topic/);
});

test.run();
