/**
 * The command line against Millrace and against a real Kafka: the same commands, and the same output, but for what only the
 * cluster can choose (ids, addresses, sizes, times).
 */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { BrokerProcess } from '../harness/broker_process.ts';
import { type CommandRun, runCommand } from '../harness/command_line.ts';
import { kafkaLauncher } from './kafka_broker.ts';

const test = suite('cli');
const brokers: BrokerProcess[] = [];

test.before(async () => {
  brokers.push(await BrokerProcess.start());
  brokers.push(await BrokerProcess.start({ launcher: kafkaLauncher() }));
});

test.after(async () => {
  for (const broker of brokers) await broker.dispose();
});

/** What a cluster chooses by itself. */
function withoutChoices({ code, out, err }: CommandRun): CommandRun {
  const cleaned = (text: string): string =>
    text
      .replace(/^id [\w-]{22}$/m, 'id …')
      .replace(/"topicId": "[\w-]{22}"/g, '"topicId": "…"')
      .replace(/"seconds": [\d.]+/, '"seconds": …')
      // A new cluster of Kafka 4 sets it for all brokers (KIP-966).
      .replace(/^min\.insync\.replicas +cluster +1\n/m, '')
      .replace(/ {2,}/g, '  ')
      .replace(/[ \d.]+ (?:ms|s|min)\b/g, ' … s');
  return { code, out: cleaned(out), err: cleaned(err) };
}

/** Runs a command at both; they must say the same. Returns that. */
async function both(args: readonly string[], input = ''): Promise<CommandRun> {
  const runs: CommandRun[] = [];
  for (const { bootstrap } of brokers)
    runs.push(withoutChoices(await runCommand(args, bootstrap, input)));
  assert.deepEqual(runs[0], runs[1], `millrace, then Kafka: ${args.join(' ')}`);
  return runs[0] as CommandRun;
}

/** The same for commands that must succeed. */
async function output(args: readonly string[], input = ''): Promise<string> {
  const { code, out, err } = await both(args, input);
  assert.deepEqual([code, err], [0, ''], args.join(' '));
  return out;
}

test('topics are made, described, changed and deleted', async () => {
  const made = await output([
    'topic',
    'create',
    'orders',
    '-p',
    '3',
    '-s',
    'retention.ms=86400000',
  ]);
  assert.equal(made, 'created orders: 3 partitions, 1 replica each\n');
  assert.match(await output(['topic', 'list']), /^TOPIC .*\norders +3 +1 {2}ok\n$/);
  const described = await output(['topic', 'describe', 'orders']);
  assert.match(described, /^orders {2}3 partitions, 1 replica each, ok\nid …\nretention\.ms=/);
  assert.match(described, /^ +2 +1 +1 +1 +0 +0 +0$/m);
  await output([
    'topic',
    'alter',
    'orders',
    '--unset',
    'retention.ms',
    '-s',
    'max.message.bytes=2000',
  ]);
  assert.match(
    await output(['config', 'describe', 'topic', 'orders']),
    /^max\.message\.bytes +topic +2000$/m,
  );
  assert.equal(
    await output(['topic', 'add-partitions', 'orders', '4']),
    'orders has 4 partitions now\n',
  );
  assert.equal(
    await output(['topic', 'create', 'orders', '--if-not-exists']),
    'orders is there already\n',
  );
  assert.equal(
    await output(['topic', 'create', 'doomed']),
    'created doomed: 1 partition, 1 replica each\n',
  );
  assert.equal(
    await output(['topic', 'delete', 'doomed', 'none', '--if-exists']),
    'deleted doomed\nnone is not there\n',
  );
  const listed = JSON.parse(await output(['topic', 'list', '--json'])) as { name: string }[];
  assert.deepEqual(
    listed.map(({ name }) => name),
    ['orders'],
  );
});

test('messages are sent, and the groups that read them are moved and deleted', async () => {
  const lines = Array.from({ length: 100 }, (_, at) => `key-${at}:value-${at}\n`).join('');
  const args = ['produce', 'orders', '-K', ':', '-z', 'zstd', '--json'];
  assert.match(await output(args, lines), /"messages": 100/);
  const described = JSON.parse(await output(['topic', 'describe', 'orders', '--json'])) as {
    partitionList: { latest: number }[];
  }[];
  // By the key, as every client of Kafka's does it.
  const counts = described[0]?.partitionList.map(({ latest }) => latest) ?? [];
  assert.equal(
    counts.reduce((sum, count) => sum + count, 0),
    100,
  );
  const reset = ['group', 'reset', 'billing', '-t', 'orders:0,1', '--to', '3'];
  const { code, out, err } = await both(reset);
  assert.equal(code, 0);
  assert.match(out, /^TOPIC +PARTITION +NOW +WOULD BE +CHANGE\norders +0 +- +3 +-\n/);
  assert.equal(err, 'nothing was changed; --execute does it\n');
  assert.match(
    (await both(['group', 'describe', 'billing'])).err,
    /^millrace: describing group "billing"/,
  );
  await output([...reset, '--execute']);
  const group = JSON.parse((await both(['group', 'list', '--json'])).out) as { groupId: string }[];
  assert.deepEqual(
    group.map(({ groupId }) => groupId),
    ['billing'],
  );
  const lag = (counts[0] ?? 0) + (counts[1] ?? 0) - 6;
  assert.match(
    await output(['group', 'describe', 'billing']),
    new RegExp(`^total lag: ${lag} records$`, 'm'),
  );
  await output(['group', 'reset', 'billing', '--all-topics', '--by', '-2', '--execute']);
  await output([
    'group',
    'reset',
    'billing',
    '--all-topics',
    '--to-time',
    '2000-01-01',
    '--execute',
  ]);
  assert.equal(await output(['group', 'delete', 'billing']), 'deleted billing\n');
});

test('messages are printed from every place and in every form', async () => {
  // The records are of 1970: Kafka looks for what is too old half a minute after its start.
  const kept = ['-p', '2', '--set', 'retention.ms=-1'];
  await output(['topic', 'create', 'greetings', ...kept]);
  const lines = ['one', 'two', 'three'].map(
    (value, at) =>
      `{"key":"k","value":"${value}","partition":1,"timestampMs":${1_000 * (at + 1)},"headers":{"h":"${at}"}}\n`,
  );
  await output(['produce', 'greetings', '--jsonl', '-q'], lines.join(''));
  const consume = (...args: string[]): Promise<string> => output(['consume', 'greetings', ...args]);
  assert.equal(await consume(), 'one\ntwo\nthree\n');
  assert.equal(await consume('--keys', '--from', '1'), 'k\ttwo\nk\tthree\n');
  assert.equal(await consume('--tail', '1'), 'three\n');
  assert.equal(await consume('--from', '1970-01-01T00:00:02Z', '-n', '1'), 'two\n');
  assert.equal(await consume('-p', '0'), '');
  assert.equal(
    await consume('-o', '%t-%p@%o %T %k=%s %h %S%%\\n', '-n', '1'),
    'greetings-1@0 1000 k=one h=0 3%\n',
  );
  assert.equal(await consume('--format', 'hex', '-n', '1'), '6f6e65\n');
  const verbose = await consume('--verbose', '-n', '1');
  assert.equal(verbose, 'greetings-1 @ 0  1970-01-01T00:00:01.000Z  key "k"  h="0"\n  one\n');
  // What comes out goes in again.
  await output(['topic', 'create', 'copy', ...kept]);
  await output(['produce', 'copy', '--jsonl', '-q'], await consume('--jsonl'));
  const copied = await output(['consume', 'copy', '--jsonl']);
  assert.equal(copied.replaceAll('copy', 'greetings'), await consume('--jsonl'));
});

test('a group reads what it has not read', async () => {
  const consume = (...args: string[]): Promise<string> =>
    output(['consume', 'greetings', '--group', 'readers', ...args]);
  assert.equal(await consume('-n', '2'), 'one\ntwo\n');
  assert.equal(await consume(), 'three\n');
  assert.match(await output(['group', 'describe', 'readers']), /^total lag: 0 records$/m);
});

test('a cluster is measured', async () => {
  for (const { bootstrap } of brokers) {
    const bench = async (...args: string[]): Promise<Record<string, number>> => {
      const { code, out, err } = await runCommand(['bench', ...args, '--json'], bootstrap);
      assert.equal(code, 0, err);
      return JSON.parse(out) as Record<string, number>;
    };
    const load = ['--rate', '1000', '--seconds', '1'];
    const produced = await bench('produce', ...load);
    assert(Number(produced['messages']) > 500 && produced['failed'] === 0);
    const consumed = await bench('consume');
    assert.equal(consumed['messages'], produced['messages']);
    const latency = await bench('latency', ...load);
    assert(Number(latency['messages']) > 500 && latency['failed'] === 0);
  }
});

test('settings are described and changed', async () => {
  await output(['config', 'alter', 'topic', 'orders', '--append', 'cleanup.policy=compact']);
  assert.match(
    await output(['config', 'describe', 'topic', 'orders']),
    /^cleanup\.policy +topic {2}delete,compact$/m,
  );
  const bad = await runCommand(
    ['config', 'alter', 'topic', 'orders', '-s', 'retention.ms=soon'],
    brokers[0]?.bootstrap,
  );
  assert.equal(bad.code, 1);
  assert.match(bad.err, /^millrace: changing settings of topic "orders": .*retention\.ms/);
});

/** What is refused by both, and what is said first. */
const refused: [string[], number, RegExp, string?][] = [
  [
    ['topic', 'describe', 'nope'],
    1,
    /^millrace: topic "nope": the cluster has no such topic\n {2}Check/,
  ],
  [['topic', 'delete', 'nope'], 1, /^millrace: deleting topic "nope": /],
  [['topic', 'create', 'two words'], 1, /^millrace: creating topic "two words": /],
  [['topic', 'create', 'x', '-r', '3'], 1, /^millrace: creating topic "x": /],
  [['group', 'describe', 'nobody'], 1, /^millrace: describing group "nobody": /],
  [['group', 'delete', 'nobody'], 1, /^millrace: deleting group "nobody": /],
  [['produce', 'orders', '-k', 'a', '-f', 'json', '{"a":'], 2, /^millrace: line 1 is not JSON: /],
  [
    ['produce', 'orders', '-k', 'a'],
    1,
    /^millrace: .*\n {2}Send smaller messages/,
    'x'.repeat(5_000),
  ],
];

test('what is refused is explained, with the same exit code', async () => {
  for (const [args, expected, text, input] of refused)
    for (const { bootstrap } of brokers) {
      const { code, err } = await runCommand(args, bootstrap, input);
      assert.equal(code, expected, `${args.join(' ')}: ${err}`);
      assert.match(err, text, args.join(' '));
    }
});

test('cluster-info tells the brokers of either', async () => {
  for (const { bootstrap } of brokers) {
    const { code, out } = await runCommand(['cluster-info'], bootstrap);
    assert.equal(code, 0, out);
    assert.match(out, new RegExp(`^ +1 {2}${bootstrap} .* controller$`, 'm'));
    assert.match(out, /^quorum: leader 1, epoch \d+, committed up to \d+$/m);
  }
});

test.run();
