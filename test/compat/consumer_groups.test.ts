/**
 * kafka-consumer-groups: list, describe, reset in every mode, delete. What is expected here was seen of Kafka 4.4,
 * with ids and addresses left out.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import type { BrokerProcess } from '../harness/broker_process.ts';
import { Client, record } from '../harness/client.ts';
import { startBroker } from './exchange.ts';
import { installKcat } from './peers/install.ts';
import { type Program, startJava } from './peers/program_peer.ts';

const test = suite('kafka-consumer-groups');
const tool = 'org.apache.kafka.tools.consumer.group.ConsumerGroupCommand';
const consoleConsumer = 'org.apache.kafka.tools.consumer.ConsoleConsumer';
/** Of the records, one after the other, a second apart. */
const firstMs = Date.UTC(2026, 0, 1);
const isoTime = (index: number): string => new Date(firstMs + index * 1_000).toISOString();

let broker: BrokerProcess;
let java: Program;
const closers: (() => unknown)[] = [];

test.before(async () => {
  broker = await startBroker({ settings: { 'group.initial.rebalance.delay.ms': 0 } });
  closers.push(() => broker.dispose());
  java = await startJava();
  closers.push(() => java.close());
  const client = await Client.connect(broker);
  await client.createTopic('t', 2);
  for (let index = 0; index < 10; index += 1)
    await client.produceOne('t', index % 2, [record(`${index}`, BigInt(firstMs + index * 1_000))]);
  client.close();
  const consume = ['--topic', 't', '--group', 'done', '--from-beginning', '--max-messages', '10'];
  await run(consoleConsumer, [...consume, '--timeout-ms', '30000']);
  await installKcat();
  const settings = ['-X', 'auto.offset.reset=earliest', '-X', 'auto.commit.interval.ms=100'];
  const member = spawn('kcat', ['-b', broker.bootstrap, '-G', 'live', ...settings, 't'], {
    stdio: 'ignore',
  });
  closers.push(() => member.kill());
});

test.after(async () => {
  for (const close of closers.reverse()) await close();
});

/** What a tool wrote, with what it complained of behind it. */
async function run(name: string, args: readonly string[]): Promise<string> {
  const output = join(java.dir, 'output');
  let errors = '';
  try {
    errors = await java.run({
      command: 'tool',
      class: name,
      args: ['--bootstrap-server', broker.bootstrap, ...args],
      input: null,
      output,
    });
  } catch (error) {
    errors = String(error);
  }
  return `${readFileSync(output, 'utf8')}\n${errors}`;
}

/** The lines of the tool's tables as cells, ids and addresses replaced; nothing of stack traces. */
async function groups(...args: string[]): Promise<string[][]> {
  const text = await run(tool, args);
  return text
    .split('\n')
    .filter((line) => line.trim() !== '' && !/^\s+at |^\s*Warn: |^Peer|^\[|SLF4J/.test(line))
    .map((line) =>
      line
        .replace(/rdkafka-[\w-]+/g, 'MEMBER')
        .replace(/127\.0\.0\.1:\d+/g, 'BROKER')
        .trim()
        .split(/\s+/),
    );
}

async function eventually<T>(look: () => Promise<T>, isRight: (value: T) => boolean): Promise<T> {
  for (let tries = 0; ; tries += 1) {
    const value = await look();
    if (isRight(value) || tries === 30) return value;
    await sleep(500);
  }
}

const offsets = ['GROUP', 'TOPIC', 'PARTITION', 'CURRENT-OFFSET', 'LOG-END-OFFSET', 'LAG'];
const owner = ['CONSUMER-ID', 'HOST', 'CLIENT-ID'];
const inactive = (group: string): string[] =>
  `Consumer group '${group}' has no active members.`.split(' ');

test('list, with states and a filter', async () => {
  const stable = await eventually(
    () => groups('--list', '--state'),
    (lines) => lines.some((line) => line[1] === 'Stable'),
  );
  assert.deepEqual(stable, [
    ['GROUP', 'STATE'],
    ['done', 'Empty'],
    ['live', 'Stable'],
  ]);
  assert.deepEqual(await groups('--list'), [['done'], ['live']]);
  assert.deepEqual(await groups('--list', '--state', 'Empty'), [
    ['GROUP', 'STATE'],
    ['done', 'Empty'],
  ]);
  assert.deepEqual(await groups('--list', '--type'), [
    ['GROUP', 'TYPE'],
    ['done', 'Classic'],
    ['live', 'Classic'],
  ]);
});

test('describe a group without members', async () => {
  assert.deepEqual(await groups('--describe', '--group', 'done'), [
    [...offsets, ...owner],
    ['done', 't', '0', '5', '5', '0', '-', '-', '-'],
    ['done', 't', '1', '5', '5', '0', '-', '-', '-'],
    inactive('done'),
  ]);
  assert.deepEqual(await groups('--describe', '--group', 'done', '--state'), [
    ['GROUP', 'COORDINATOR', '(ID)', 'ASSIGNMENT-STRATEGY', 'STATE', '#MEMBERS'],
    ['done', 'BROKER', '(1)', '-', 'Empty', '0'],
    inactive('done'),
  ]);
});

test('describe a group with a member', async () => {
  const live = await eventually(
    () => groups('--describe', '--group', 'live'),
    (lines) => lines.length === 3 && lines.every((line) => line[5] !== '-'),
  );
  assert.deepEqual(live, [
    [...offsets, ...owner],
    ['live', 't', '0', '5', '5', '0', 'MEMBER', '/127.0.0.1', 'rdkafka'],
    ['live', 't', '1', '5', '5', '0', 'MEMBER', '/127.0.0.1', 'rdkafka'],
  ]);
  assert.deepEqual(await groups('--describe', '--group', 'live', '--state'), [
    ['GROUP', 'COORDINATOR', '(ID)', 'ASSIGNMENT-STRATEGY', 'STATE', '#MEMBERS'],
    ['live', 'BROKER', '(1)', 'range', 'Stable', '1'],
  ]);
  const members = await groups('--describe', '--group', 'live', '--members', '--verbose');
  assert.deepEqual(members[1], [
    'live',
    'MEMBER',
    '/127.0.0.1',
    'rdkafka',
    '2',
    '-',
    't:0,1',
    '-',
    '-',
  ]);
});

test('a group that is not there, and one that is in use', async () => {
  const text = (lines: string[][]): string => lines.map((line) => line.join(' ')).join('\n');
  const unknown = text(await groups('--describe', '--group', 'nobody'));
  assert.match(unknown, /GroupIdNotFoundException: Group nobody not found/);
  const inUse = text(await groups('--delete', '--group', 'live'));
  assert.match(inUse, /'live' could not be deleted due to: .*The group is not empty/);
  const reset = ['--reset-offsets', '--group', 'live', '--topic', 't', '--to-earliest'];
  const active = text(await groups(...reset, '--execute'));
  assert.match(active, /can only be reset if the group 'live' is inactive.*Stable/);
});

/** New offsets of partitions 0 and 1 after a reset. */
async function reset(...mode: string[]): Promise<number[]> {
  const lines = await groups('--reset-offsets', '--group', 'done', '--topic', 't', ...mode);
  assert.deepEqual(lines[0], ['GROUP', 'TOPIC', 'PARTITION', 'NEW-OFFSET'], lines.join('\n'));
  return lines
    .slice(1)
    .sort((a, b) => Number(a[2]) - Number(b[2]))
    .map((line) => Number(line[3]));
}

async function currentOffsets(): Promise<number[]> {
  const lines = await groups('--describe', '--group', 'done');
  return lines.filter((line) => line[0] === 'done').map((line) => Number(line[3]));
}

test('reset in every mode', async () => {
  assert.deepEqual(await reset('--to-earliest', '--dry-run'), [0, 0]);
  assert.deepEqual(await currentOffsets(), [5, 5]);
  assert.deepEqual(await reset('--to-earliest', '--execute'), [0, 0]);
  assert.deepEqual(await currentOffsets(), [0, 0]);
  assert.deepEqual(await reset('--to-latest', '--execute'), [5, 5]);
  assert.deepEqual(await reset('--to-offset', '3', '--execute'), [3, 3]);
  assert.deepEqual(await reset('--to-offset', '99', '--execute'), [5, 5]);
  assert.deepEqual(await reset('--shift-by', '-2', '--execute'), [3, 3]);
  assert.deepEqual(await reset('--to-current', '--execute'), [3, 3]);
  // Record 4 is partition 0's third, and partition 1 has the next one.
  assert.deepEqual(await reset('--to-datetime', isoTime(4), '--execute'), [2, 2]);
  assert.deepEqual(await reset('--by-duration', 'PT1S', '--execute'), [5, 5]);
  assert.deepEqual(await currentOffsets(), [5, 5]);
  const plan = join(java.dir, 'plan.csv');
  writeFileSync(plan, 't,0,1\nt,1,4\n');
  const lines = await groups(
    '--reset-offsets',
    '--group',
    'done',
    '--from-file',
    plan,
    '--execute',
  );
  assert.equal(lines.length, 3);
  assert.deepEqual(await currentOffsets(), [1, 4]);
});

test('reset one partition of a topic that the group has never read', async () => {
  const client = await Client.connect(broker);
  await client.createTopic('u', 2);
  client.close();
  const lines = await groups(
    '--reset-offsets',
    '--group',
    'done',
    '--topic',
    'u:1',
    '--to-latest',
    '--execute',
  );
  assert.deepEqual(lines[1], ['done', 'u', '1', '0']);
});

test('delete offsets, then the group', async () => {
  const lines = await groups('--delete-offsets', '--group', 'done', '--topic', 't');
  assert.deepEqual(
    lines.filter((line) => line[0] === 't').sort((a, b) => Number(a[1]) - Number(b[1])),
    [
      ['t', '0', 'Successful'],
      ['t', '1', 'Successful'],
    ],
  );
  const deleted = await groups('--delete', '--group', 'done');
  assert.match(deleted[0]?.join(' ') ?? '', /\('done'\) was successful/);
  assert.deepEqual(await groups('--list'), [['live']]);
});

test.run();
