/** What commands say that a broker, or they themselves, refuse: what it is about, what to do, and the exit code. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { Client } from '../../../net/client/client.ts';
import { BrokerProcess, millrace } from '../../harness/broker_process.ts';
import { runCommand } from '../../harness/command_line.ts';

const test = suite('refusals');
let broker: BrokerProcess;

test.before(async () => {
  const settings = { 'auto.create.topics.enable': 'false', 'group.initial.rebalance.delay.ms': 0 };
  broker = await BrokerProcess.start({ launcher: millrace, settings });
  const made = await runCommand(['topic', 'create', 'orders', '-p', '3'], broker.bootstrap);
  assert.equal(made.code, 0, made.err);
});

test.after(() => broker.dispose());

/** Command, exit code, the whole of what is said, and the input. */
const refusals: [args: string[], code: number, said: RegExp, input?: string][] = [
  [
    ['produce', 'nope', 'x'],
    1,
    /^millrace: topic "nope": the cluster has no such topic\n {2}Check the name, or create .*\n$/,
  ],
  [
    ['consume', 'nope'],
    1,
    /^millrace: topic "nope": the cluster has no such topic\n {2}Check .*\n$/,
  ],
  [
    ['produce', 'orders', '-k', 'a'],
    1,
    /^millrace: line 2: produce to orders-\d: .*\n {2}Send smaller messages, or `millrace topic alter <name> --set max\.message\.bytes=<bytes>`\.\n$/,
    `small\n${'x'.repeat(2_000_000)}\n`,
  ],
  [
    ['produce', 'orders', '--jsonl'],
    2,
    /^millrace: line 2: '\{"valu":1\}' is no object with a "value"\.\n {2}With --jsonl .*\n$/,
    '{"value":1}\n{"valu":1}\n',
  ],
  [
    ['produce', 'orders', '-f', 'json'],
    2,
    /^millrace: line 1 is not JSON: .*\n {2}The line is '\{"a":'\. Nothing after it was sent\.\n$/,
    '{"a":\n',
  ],
  [
    ['produce', 'orders', '-p', '9', 'x'],
    1,
    /^millrace: partition 9 of "orders": the topic has partitions 0 to 2\n {2}Choose one/,
  ],
  [
    ['config', 'alter', 'topic', 'orders', '--set', 'retention.msec=1'],
    1,
    /^millrace: .*"orders": .*retention\.msec.*\n {2}All settings .*millrace config describe/,
  ],
  [
    ['config', 'describe', 'broker', '99'],
    1,
    /^millrace: broker 99 is not among the cluster's brokers: 1\.\n {2}It may be down/,
  ],
  [
    ['group', 'describe', 'nobody'],
    1,
    /^millrace: .*"nobody": .*\n {2}Check .*millrace group list/,
  ],
];

test('each names the thing and what to do', async () => {
  await Promise.all(
    refusals.map(async ([args, expected, said, input]) => {
      const { code, out, err } = await runCommand(args, broker.bootstrap, input);
      assert.match(err, said, args.join(' '));
      assert.deepEqual([code, out], [expected, ''], args.join(' '));
    }),
  );
});

test('as JSON, too', async () => {
  const { code, err } = await runCommand(['consume', 'nope', '--json'], broker.bootstrap);
  const { error } = JSON.parse(err) as { error: { code: string; remedy: string } };
  assert.deepEqual([code, error.code], [1, 'UNKNOWN_TOPIC_OR_PARTITION']);
  assert.match(error.remedy, /^Check the name/);
});

test('a group with members is neither moved nor deleted', async () => {
  await using client = new Client({ bootstrap: broker.bootstrap });
  for (const protocol of ['classic', 'consumer'] as const) {
    const group = `live-${protocol}`;
    await using consumer = client.consumer({ group, topics: ['orders'], protocol });
    await consumer.ready();
    const commands = [
      ['group', 'reset', group, '--topic', 'orders', '--to', 'earliest', '--execute'],
      ['group', 'delete', group],
    ];
    for (const args of commands) {
      const { code, err } = await runCommand(args, broker.bootstrap);
      assert.match(err, new RegExp(`^millrace: .*"${group}"`), args.join(' '));
      assert.match(err, /\n {2}Stop the consumers of the group first\.\n$/, args.join(' '));
      assert.equal(code, 1, args.join(' '));
    }
  }
});

test('a message larger than clients send by default is up to the topic', async () => {
  const allow = ['topic', 'alter', 'orders', '--set', 'max.message.bytes=5000000'];
  assert.equal((await runCommand(allow, broker.bootstrap)).code, 0);
  const large = 'x'.repeat(3_000_000);
  const { code, err } = await runCommand(['produce', 'orders'], broker.bootstrap, `${large}\n`);
  assert.deepEqual([code, err], [0, '']);
  const read = await runCommand(['consume', 'orders', '--from', 'earliest'], broker.bootstrap);
  assert(read.out.includes(large));
});

test.run();
