/**
 * Kafka's own tools of administration, the same commands against Millrace and against Kafka: what they print is the same
 * but for the lines that `administration_steps.ts` has a reason for.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import { BrokerProcess, millrace, type Settings } from '../harness/broker_process.ts';
import { type Difference, differences, steps } from './administration_steps.ts';
import { kafkaLauncher } from './kafka_broker.ts';
import { type Program, startJava } from './peers/program_peer.ts';

const test = suite('administration');

/** What a Kafka of one node needs, and Millrace takes as well. */
const settings: Settings = {
  'offsets.topic.replication.factor': 1,
  'transaction.state.log.replication.factor': 1,
  'transaction.state.log.min.isr': 1,
};

const classes: Readonly<Record<string, string>> = {
  'kafka-topics': 'org.apache.kafka.tools.TopicCommand',
  'kafka-configs': 'org.apache.kafka.tools.ConfigCommand',
  'kafka-log-dirs': 'org.apache.kafka.tools.LogDirsCommand',
  'kafka-get-offsets': 'org.apache.kafka.tools.GetOffsetShell',
};

let java: Program;
let kafka: BrokerProcess;
let ours: BrokerProcess;
const closers: (() => Promise<void>)[] = [];
const met = new Set<Difference>();

test.before(async () => {
  java = await startJava();
  closers.push(() => java.close());
  kafka = await BrokerProcess.start({ launcher: kafkaLauncher(), settings });
  closers.push(() => kafka.dispose());
  ours = await BrokerProcess.start({ launcher: millrace, settings });
  closers.push(() => ours.dispose());
});

test.after(async () => {
  for (const close of closers) await close();
});

/** What the command prints, normalised, and how it ends. */
async function run(broker: BrokerProcess, step: string): Promise<string[]> {
  const [tool = '', ...args] = step.split(' ');
  if (tool === 'produce') return produce(broker, args);
  const output = join(java.dir, 'output');
  let errors: string;
  let status = 'ends with success';
  try {
    errors = await java.run({
      command: 'tool',
      class: classes[tool],
      args: ['--bootstrap-server', broker.bootstrap, ...args],
      input: null,
      output,
    });
  } catch (error) {
    errors = (error as Error).message;
    status = /the tool exited with \d+/.exec(errors)?.[0] ?? errors;
  }
  const said = `${readFileSync(output, 'utf8')}\n${errors}`.split('\n').filter(isSaid);
  return [...said.map((line) => normalised(line, broker)), status];
}

async function produce(
  broker: BrokerProcess,
  [topic, partition, time]: string[],
): Promise<string[]> {
  const input = join(java.dir, 'input');
  const record = { key: '6b', value: '76', headers: [], timestamp: Number(time) };
  writeFileSync(input, `${JSON.stringify(record)}\n`);
  await java.run({
    command: 'produce',
    bootstrap: broker.bootstrap,
    topic,
    partition: Number(partition),
    input,
    codec: 'none',
    acks: 'all',
    idempotent: true,
  });
  return [];
}

/** Neither empty, nor of a stack trace, nor of a log, nor of how the peer lets a tool exit. */
function isSaid(line: string): boolean {
  const noise =
    /^\s*$|^\s+(?:at |\.\.\. )|^Caused by: |^\[[\w-]+\] (?:ERROR|WARN) |ToolExit|^exit with |IllegalStateException: the tool exited/;
  return !noise.test(line);
}

/** Without what differs from run to run; partitions of log directories in the order of their names. */
function normalised(line: string, broker: BrokerProcess): string {
  const text = line
    .replaceAll(`${broker.dataDir}/logs`, '<directory>')
    .replaceAll(broker.dataDir, '<directory>')
    .replaceAll(broker.bootstrap, '<address>')
    .replaceAll(/(TopicId: )[\w-]{22}/g, '$1<id>');
  if (!text.startsWith('{"brokers":')) return text;
  const parsed = JSON.parse(text) as {
    brokers: { logDirs: { partitions: { partition: string }[] }[] }[];
  };
  for (const { logDirs } of parsed.brokers)
    for (const { partitions } of logDirs)
      partitions.sort((a, b) => (a.partition < b.partition ? -1 : 1));
  return JSON.stringify(parsed);
}

/** Puts in what only the broker knows. */
async function completed(broker: BrokerProcess, step: string): Promise<string> {
  const topic = /@id\((\w+)\)/.exec(step)?.[1];
  if (topic === undefined) return step;
  const output = join(java.dir, 'output');
  const args = ['--bootstrap-server', broker.bootstrap, '--describe', '--topic', topic];
  await java.run({ command: 'tool', class: classes['kafka-topics'], args, input: null, output });
  const id = /TopicId: ([\w-]{22})/.exec(readFileSync(output, 'utf8'))?.[1];
  assert(id !== undefined, `${topic} has no id`);
  return step.replace(/@id\(\w+\)/, id);
}

/** Takes the lines out that differ for a reason. */
function explained(lines: readonly string[], step: string, side: 'kafka' | 'millrace'): string[] {
  const reasons = differences.filter((one) => one.step.test(step) && one[side] !== undefined);
  return lines.filter((line) => {
    const reason = reasons.find((one) => one[side]?.test(line));
    if (reason !== undefined) met.add(reason);
    return reason === undefined;
  });
}

for (const [index, step] of steps.entries())
  test(`${index + 1}: ${step}`, async () => {
    const expected = await run(kafka, await completed(kafka, step));
    const actual = await run(ours, await completed(ours, step));
    if (actual.join('\n') === expected.join('\n')) return;
    assert.deepEqual(explained(actual, step, 'millrace'), explained(expected, step, 'kafka'));
  });

test('every reason is needed', () => {
  const idle = differences.filter((one) => !met.has(one)).map(({ reason }) => reason);
  assert.deepEqual(idle, []);
});

test.run();
