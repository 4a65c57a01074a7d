/** Kafka's command line tools: the console clients, and those that operators use to look at a broker. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { clientSuite } from './client_suite.ts';
import { type Program, startJava } from './peers/program_peer.ts';

const { test, client } = clientSuite('console');
const dir = mkdtempSync(join(tmpdir(), 'millrace-console-'));
let tools: Program | null = null;

/** Runs a tool against the broker and returns what it wrote to standard output. */
async function run(className: string, args: readonly string[]): Promise<string> {
  tools ??= await startJava();
  const output = join(dir, 'output');
  const all = ['--bootstrap-server', client().broker.bootstrap, ...args];
  await tools.run({ command: 'tool', class: className, args: all, input: null, output });
  return readFileSync(output, 'utf8');
}

const topics = (...args: string[]): Promise<string> =>
  run('org.apache.kafka.tools.TopicCommand', args);

test('kafka-topics lists, describes and deletes', async () => {
  await topics(
    '--create',
    '--topic',
    'seen',
    '--partitions',
    '3',
    '--config',
    'retention.ms=60000',
  );
  assert.match(await topics('--list'), /^seen$/m);
  const description = await topics('--describe', '--topic', 'seen');
  assert.match(description, /Topic: seen\s.*PartitionCount: 3\s+ReplicationFactor: 1/);
  assert.match(description, /Configs: .*retention\.ms=60000/);
  assert.equal(
    description.match(/Partition: \d\s+Leader: \d+\s+Replicas: \d+\s+Isr: \d+/g)?.length,
    3,
  );
  await topics('--delete', '--topic', 'seen');
  assert.doesNotMatch(await topics('--list'), /^seen$/m);
});

test('kafka-configs describes topics and brokers with where each value comes from', async () => {
  await topics('--create', '--topic', 'configured', '--config', 'max.message.bytes=2000000');
  const describe = ['--describe', '--all', '--entity-type'];
  const ofTopic = await run('org.apache.kafka.tools.ConfigCommand', [
    ...describe,
    'topics',
    '--entity-name',
    'configured',
  ]);
  assert.match(
    ofTopic,
    /max\.message\.bytes=2000000 .*DYNAMIC_TOPIC_CONFIG:max\.message\.bytes=2000000/,
  );
  assert.match(ofTopic, /retention\.ms=\d+/);
  const listing = await topics('--describe', '--topic', 'configured');
  const broker = /Leader: (\d+)/.exec(listing)?.[1] ?? '';
  const ofBroker = await run('org.apache.kafka.tools.ConfigCommand', [
    ...describe,
    'brokers',
    '--entity-name',
    broker,
  ]);
  for (const key of ['default.replication.factor', 'num.partitions', 'log.dirs', 'listeners']) {
    assert.match(ofBroker, new RegExp(`^ *${key.replaceAll('.', '\\.')}=`, 'm'));
  }
});

test('kafka-get-offsets and kafka-broker-api-versions read what they need', async () => {
  const { peer } = client();
  await peer.create('counted', 1);
  const record = { key: '6b', value: '76', headers: [], timestamp: 0 };
  const mode = { codec: 'lz4', acks: 'all', idempotent: true } as const;
  // Two runs, so that the second record is later for sure.
  await peer.produce('counted', 0, mode, [record]);
  await peer.produce('counted', 0, mode, [record]);
  const offsets = 'org.apache.kafka.tools.GetOffsetShell';
  assert.equal(await run(offsets, ['--topic', 'counted']), 'counted:0:2\n');
  assert.equal(await run(offsets, ['--topic', 'counted', '--time', 'earliest']), 'counted:0:0\n');
  assert.equal(
    await run(offsets, ['--topic', 'counted', '--time', 'max-timestamp']),
    'counted:0:1\n',
  );
  const versions = await run('org.apache.kafka.tools.BrokerApiVersionsCommand', []);
  assert.match(versions, /Produce\(0\): \d+ to \d+ \[usable: \d+\]/);
});

test.after(async () => {
  await tools?.close();
  rmSync(dir, { recursive: true, force: true });
});

test.run();
