import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import type { BrokerConfig } from '../../../net/config/broker_config.ts';
import { type LoadedConfig, loadBrokerConfig } from '../../../net/config/load.ts';

const test = suite('load');

const surroundings = { cwd: '/srv', hostname: 'mill', memoryBytes: 2 ** 33 };

function load(...sets: string[]): LoadedConfig {
  return loadBrokerConfig({ sets, surroundings });
}

function accepted(...sets: string[]): BrokerConfig {
  const { config, errors } = load(...sets);
  assert.deepEqual(errors, []);
  return config as BrokerConfig;
}

test('no configuration is a single node on loopback with its data in ./data, without a warning', () => {
  const { config, errors, warnings } = load();
  assert.deepEqual([errors, warnings], [[], []]);
  const listener = { name: 'PLAINTEXT', protocol: 'PLAINTEXT', host: '127.0.0.1', port: 9092 };
  assert.deepEqual(config?.listeners, [listener]);
  assert.deepEqual(config?.advertisedListeners, [listener]);
  assert.deepEqual(config?.logDirs, ['/srv/data']);
  assert.equal(config?.metadataLogDir, '/srv/data');
  assert.equal(config?.nodeId, 1);
  assert.equal(config?.durability, 'fsync');
  assert.equal(config?.logDefaults.retentionMs, 14 * 24 * 3_600_000);
  assert.equal(config?.queuedMaxRequestBytes, 512 * 2 ** 20);
  assert.deepEqual(config?.explicit, {});
});

test('a configuration can be posted to threads', () => {
  const config = accepted('max.connections.per.ip.overrides=10.0.0.1:5,[::1]:7');
  assert.deepEqual(structuredClone(config), config);
  assert.deepEqual(config.maxConnectionsPerIpOverrides, { '10.0.0.1': 5, '::1': 7 });
});

/** Settings that are refused, and the whole text that says so. */
const refusals: [string[], string[]][] = [
  [
    ['num.partitions=x'],
    ['num.partitions=x (--set): allowed: a whole number from 1 to 2147483647.'],
  ],
  [
    ['auto.create.topics.enable=yes'],
    ['auto.create.topics.enable=yes (--set): allowed: true or false.'],
  ],
  [['log.durability=maybe'], ['log.durability=maybe (--set): allowed: one of fsync, os.']],
  [
    ['log.cleanup.policy=compact,squeeze'],
    [
      'log.cleanup.policy=compact,squeeze (--set): allowed: a comma-separated list of compact, delete, each once.',
    ],
  ],
  [
    ['compression.type=zstd'],
    [
      'compression.type=zstd (--set): not supported yet in this version: batches are stored with the compression they came with. Allowed: producer.',
    ],
  ],
  [
    ['controller.quorum.voters=1@a:9093,2@b:9093'],
    [
      "listeners=PLAINTEXT://127.0.0.1:9092 (default): a node of a cluster needs a listener for the controllers' quorum as well. Allowed: one more, such as CONTROLLER://:9093.",
    ],
  ],
  [
    ['controller.quorum.voters=2@a:9093'],
    [
      'controller.quorum.voters=2@a:9093 (--set): a single voter must be this node. Allowed: 1@host:port, all voters of a cluster, or leave it out.',
    ],
  ],
  [
    ['controller.quorum.bootstrap.servers=a:1,b:1'],
    [
      'controller.quorum.bootstrap.servers=a:1,b:1 (--set): several are not supported yet in this version. Allowed: one, this node, or leave it out and set controller.quorum.voters.',
    ],
  ],
  [
    ['process.roles=broker'],
    [
      'process.roles=broker (--set): not supported yet in this version: a node is broker and controller in one. Allowed: broker,controller.',
    ],
  ],
  [
    ['node.id=1', 'broker.id=2'],
    ['broker.id=2 (--set): node.id=1 says otherwise. Allowed: one of the two.'],
  ],
  [
    ['authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer'],
    [
      'authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer (--set): Millrace has no authorization yet, everybody who connects may do everything. Allowed: leave it out.',
    ],
  ],
  [
    ['super.users=User:a'],
    ['super.users=User:a (--set): Millrace has no authorization yet. Allowed: leave it out.'],
  ],
  [
    ['security.inter.broker.protocol=SSL'],
    [
      'security.inter.broker.protocol=SSL (--set): Millrace has no TLS and no SASL yet. Allowed: PLAINTEXT.',
    ],
  ],
  [
    ['queued.max.request.bytes=1000'],
    [
      'queued.max.request.bytes=1000 (--set): a request of socket.request.max.bytes=104857600 would never fit. Allowed: -1, or at least that.',
    ],
  ],
  [
    ['log.retention.hours=0'],
    ['log.retention.hours=0 (--set): allowed: -1 for ever, or at least 1.'],
  ],
  [
    ['log.dirs=a,./a'],
    ['log.dirs=a,./a (--set): two of these are the same directory. Allowed: each once.'],
  ],
  [
    ['log.dirs=a', 'metadata.log.dir=b'],
    ['metadata.log.dir=b (--set): allowed: one of the data directories (a).'],
  ],
  [
    ['max.connections.per.ip.overrides=10.0.0.1'],
    [
      'max.connections.per.ip.overrides=10.0.0.1 (--set): allowed: address:number, comma-separated.',
    ],
  ],
  [['abc'], ['--set abc: allowed: key=value.']],
  [['=abc'], ['--set =abc: allowed: key=value.']],
];

test('bad values are refused with key, value, place and what is allowed', () => {
  for (const [sets, errors] of refusals) {
    const loaded = load(...sets);
    assert.deepEqual([loaded.errors, loaded.config], [errors, null]);
  }
});

test('everything that is wrong is said at once', () => {
  const every = refusals.filter(([sets]) => sets.length === 1).map(([sets]) => sets[0] as string);
  const independent = every.filter((text) => !/^(queued|controller)/.test(text));
  const { errors } = load(...independent);
  assert.equal(errors.length, independent.length, errors.join('\n'));
});

test('an unknown key is a warning that names the nearest known one', () => {
  const { config, warnings } = load('num.partition=3', 'no.such.thing.at.all=1');
  assert.equal(config?.numPartitions, 1);
  assert.deepEqual(warnings, [
    'Unknown key num.partition (--set) is ignored. Did you mean num.partitions?',
    'Unknown key no.such.thing.at.all (--set) is ignored.',
  ]);
});

test('keys without effect are named in one warning, and their values do not matter', () => {
  const { config, warnings } = load(
    'num.io.threads=many',
    'background.threads=5',
    'group.coordinator.threads=3',
  );
  assert.deepEqual(warnings, [
    'No effect in this version of Millrace: num.io.threads, background.threads, group.coordinator.threads.',
  ]);
  assert.equal(config?.explicit['num.io.threads'], 'many');
});

test('settings for TLS and SASL get a warning of their own', () => {
  assert.deepEqual(load('ssl.keystore.location=/k').warnings, [
    'No TLS and no SASL yet, connections are plain text without authentication. No effect: ssl.keystore.location.',
  ]);
});

test('keys of older versions, of topics and of one listener are explained', () => {
  const { warnings } = load(
    'zookeeper.connect=a:1',
    'retention.ms=1',
    'listener.name.x.ssl.key.type=1',
  );
  assert.deepEqual(warnings, [
    'zookeeper.connect (--set) has no effect: Kafka dropped it in 4.0, Millrace has no ZooKeeper.',
    'retention.ms (--set) is a setting of topics. For the whole broker it is log.retention.ms.',
    'listener.name.x.ssl.key.type (--set) has no effect: settings for one listener are not supported yet.',
  ]);
});

test('settings that will surprise somebody get a warning', () => {
  const cases: [string, RegExp][] = [
    [
      'message.max.bytes=2000000000',
      /^message.max.bytes=2000000000 can never be reached: socket.request/,
    ],
    ['log.segment.bytes=1048575', /./],
    [
      'log.flush.interval.messages=1',
      /^No effect with log.durability=fsync, which flushes every record/,
    ],
    [
      'default.replication.factor=3',
      /^default.replication.factor=3, but this cluster has one broker/,
    ],
    ['min.insync.replicas=2', /^min.insync.replicas=2, but this cluster has one broker/],
  ];
  for (const [set, text] of cases) {
    const { errors, warnings } = load(set);
    assert.match([...errors, ...warnings][0] as string, text);
  }
  assert.deepEqual(load('log.flush.interval.messages=1', 'log.durability=os').warnings, []);
  assert.deepEqual(load('log.segment.bytes=1048576').warnings, []);
});

test('the smaller unit of a time wins', () => {
  const retention = (...sets: string[]): number => accepted(...sets).logDefaults.retentionMs;
  assert.equal(retention('log.retention.hours=2'), 7_200_000);
  assert.equal(retention('log.retention.hours=2', 'log.retention.minutes=3'), 180_000);
  assert.equal(retention('log.retention.minutes=3', 'log.retention.ms=4'), 4);
  assert.equal(retention('log.retention.hours=-1'), -1);
  assert.equal(accepted('log.roll.hours=1').logDefaults.segmentMs, 3_600_000);
  assert.equal(accepted('log.flush.scheduler.interval.ms=9').logDefaults.flushMs, 9);
});

test('values are read for topics and limits', () => {
  const config = accepted(
    'log.cleanup.policy=compact',
    'log.message.timestamp.type=LogAppendTime',
    'broker.id=7',
    'socket.request.max.bytes=1073741824',
    'log.dirs=/a,b',
    'broker.rack=r1',
  );
  assert.deepEqual(config.logDefaults.cleanupPolicy, { compact: true, delete: false });
  assert.equal(config.logDefaults.messageTimestampType, 'LogAppendTime');
  assert.equal(config.nodeId, 7);
  assert.equal(config.queuedMaxRequestBytes, 1_073_741_824);
  assert.deepEqual(config.logDirs, ['/a', '/srv/b']);
  assert.equal(config.rack, 'r1');
});

test('--set wins over the file, the last of several wins, and errors name file and line', () => {
  const directory = mkdtempSync(join(tmpdir(), 'millrace-config-'));
  try {
    const file = join(directory, 'server.properties');
    writeFileSync(file, '# comment\nnum.partitions=2\nnode.id=0\nbroker.rack=a\nbroker.rack=b\n');
    const sets = ['num.partitions=3', 'num.partitions=4'];
    const { config, warnings } = loadBrokerConfig({ file, sets, surroundings });
    assert.deepEqual([config?.numPartitions, config?.nodeId, config?.rack], [4, 0, 'b']);
    assert.deepEqual(warnings, [
      'broker.rack is set twice (server.properties:4 and server.properties:5): the last one counts.',
    ]);
    writeFileSync(file, '\nnum.partitions=0\n');
    assert.deepEqual(loadBrokerConfig({ file, surroundings }).errors, [
      'num.partitions=0 (server.properties:2): allowed: a whole number from 1 to 2147483647.',
    ]);
    writeFileSync(file, 'a=\\u00\n');
    assert.deepEqual(loadBrokerConfig({ file, surroundings }).errors, [
      `${file}, line 1: \\u00 is no character: \\u takes four hexadecimal digits.`,
    ]);
    assert.deepEqual(loadBrokerConfig({ file: directory, surroundings }).errors, [
      `--config ${directory}: that is a directory, not a file.`,
    ]);
    assert.deepEqual(loadBrokerConfig({ file: `${file}.x`, surroundings }).errors, [
      `--config ${file}.x: there is no such file.`,
    ]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test('the server.properties that Kafka ships is taken as it is', () => {
  const { errors, warnings } = load(...kafkaServerProperties.trim().split('\n'));
  assert.deepEqual(errors, []);
  assert.deepEqual(
    warnings.map((text) => text.slice(0, 30)),
    [
      'No effect in this version of M',
      'Controller listener CONTROLLER',
      'Listener PLAINTEXT on all inte',
    ],
  );
});

/** The settings of config/server.properties in a release of Kafka 4. */
const kafkaServerProperties = `
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
`;

test.run();
