import assert from 'node:assert/strict';
import { suite } from 'uvu';
import type { BrokerConfig } from '../../../net/config/broker_config.ts';
import { topicKeys } from '../../../net/config/key_table.ts';
import { loadBrokerConfig } from '../../../net/config/load.ts';
import {
  checkTopicConfigs,
  logConfigFor,
  minInsyncReplicasFor,
} from '../../../net/config/topic_config.ts';

const test = suite('topic_config');

function broker(...sets: string[]): BrokerConfig {
  const surroundings = { cwd: '/', hostname: 'h', memoryBytes: 2 ** 33 };
  return loadBrokerConfig({ sets, surroundings }).config as BrokerConfig;
}

function errorOf(name: string, value: string | null): string | null {
  return checkTopicConfigs([{ name, value }]).error;
}

test('a topic without settings has those of the broker', () => {
  const config = broker('log.segment.bytes=2000000', 'message.max.bytes=5000', 'log.durability=os');
  const log = logConfigFor(new Map(), config);
  assert.deepEqual(log, config.logDefaults);
  assert.deepEqual(
    [log.segmentBytes, log.maxMessageBytes, log.durability],
    [2_000_000, 5_000, 'os'],
  );
});

test('settings of the topic win, and leave the broker as it was', () => {
  const config = broker();
  const log = logConfigFor(
    new Map([
      ['segment.bytes', '1048576'],
      ['retention.ms', '-1'],
      ['cleanup.policy', 'compact,delete'],
      ['message.timestamp.type', 'LogAppendTime'],
      ['flush.messages', '9223372036854775807'],
      ['min.cleanable.dirty.ratio', '0.1'],
      ['max.decompressed.message.bytes', '1000'],
      ['preallocate', 'true'],
    ]),
    config,
  );
  assert.equal(log.segmentBytes, 1_048_576);
  assert.equal(log.retentionMs, -1);
  assert.deepEqual(log.cleanupPolicy, { compact: true, delete: true });
  assert.equal(log.messageTimestampType, 'LogAppendTime');
  assert.equal(log.flushMessages, Number.MAX_SAFE_INTEGER);
  assert.equal(log.minCleanableDirtyRatio, 0.1);
  assert.equal(log.decompressedMaxBytes, 1_000);
  assert.equal(config.logDefaults.segmentBytes, 1_073_741_824);
});

test('every key that is said to count for the log changes it', () => {
  const elsewhere = new Set([
    'compression.type',
    'follower.replication.throttled.replicas',
    'leader.replication.throttled.replicas',
    'min.insync.replicas',
    'remote.storage.enable',
    'unclean.leader.election.enable',
  ]);
  const others: Record<string, string> = {
    'cleanup.policy': 'compact',
    'message.timestamp.type': 'LogAppendTime',
    'min.cleanable.dirty.ratio': '0.7',
  };
  const config = broker();
  for (const key of topicKeys().values()) {
    if (key.effect === 'none' || elsewhere.has(key.name)) continue;
    const log = logConfigFor(new Map([[key.name, others[key.name] ?? '7654321']]), config);
    assert.notDeepEqual(log, config.logDefaults, key.name);
  }
});

test('min.insync.replicas comes from the topic or the broker', () => {
  assert.equal(minInsyncReplicasFor(new Map(), broker('min.insync.replicas=2')), 2);
  assert.equal(minInsyncReplicasFor(new Map([['min.insync.replicas', '3']]), broker()), 3);
});

test('good settings are taken in normal form', () => {
  const { error, values } = checkTopicConfigs([
    { name: 'retention.ms', value: ' +5 ' },
    { name: 'cleanup.policy', value: 'compact , delete' },
    { name: 'compression.type', value: 'producer' },
    { name: 'remote.storage.enable', value: 'FALSE' },
    { name: 'leader.replication.throttled.replicas', value: '0:1,1:2' },
  ]);
  assert.equal(error, null);
  assert.deepEqual(
    [...values],
    [
      ['retention.ms', '5'],
      ['cleanup.policy', 'compact,delete'],
      ['compression.type', 'producer'],
      ['remote.storage.enable', 'false'],
      ['leader.replication.throttled.replicas', '0:1,1:2'],
    ],
  );
});

test('every default is a good setting', () => {
  for (const key of topicKeys().values()) {
    if (key.defaultText !== null) assert.equal(errorOf(key.name, key.defaultText), null, key.name);
  }
});

test('unknown keys name the nearest, keys of the broker the one of the topic', () => {
  assert.equal(
    errorOf('retention.mss', '1'),
    'Unknown topic config name: retention.mss. Did you mean retention.ms?',
  );
  assert.equal(
    errorOf('log.retention.hours', '1'),
    'Unknown topic config name: log.retention.hours. For a topic it is retention.ms',
  );
  assert.equal(errorOf('colour', 'red'), 'Unknown topic config name: colour');
});

test('bad values are refused with what is allowed', () => {
  const cases: [string, string | null, string][] = [
    [
      'retention.ms',
      'x',
      'Invalid value x for configuration retention.ms: allowed: a whole number from -1 to 9223372036854775807',
    ],
    [
      'segment.bytes',
      '100',
      'Invalid value 100 for configuration segment.bytes: allowed: a whole number from 1048576 to 2147483647',
    ],
    [
      'cleanup.policy',
      'x',
      'Invalid value x for configuration cleanup.policy: allowed: a comma-separated list of compact, delete, each once',
    ],
    [
      'compression.type',
      'lz5',
      'Invalid value lz5 for configuration compression.type: allowed: one of uncompressed, zstd, lz4, snappy, gzip, producer',
    ],
    [
      'compression.type',
      'zstd',
      'Invalid value zstd for configuration compression.type: not supported yet in this version: batches are stored with the compression they came with. Allowed: producer',
    ],
    [
      'remote.storage.enable',
      'true',
      'Invalid value true for configuration remote.storage.enable: not supported by Millrace. Allowed: false',
    ],
    [
      'leader.replication.throttled.replicas',
      '0',
      'Invalid value 0 for configuration leader.replication.throttled.replicas: allowed: *, or partition:brokerId, comma-separated',
    ],
    ['retention.ms', null, 'Null value not supported for topic configs: retention.ms'],
  ];
  for (const [name, value, text] of cases) assert.equal(errorOf(name, value), text);
});

test('compaction lags must not contradict each other', () => {
  const { error, values } = checkTopicConfigs([
    { name: 'min.compaction.lag.ms', value: '10' },
    { name: 'max.compaction.lag.ms', value: '5' },
  ]);
  assert.equal(
    error,
    'conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (5)',
  );
  assert.equal(values.size, 0);
});

test.run();
