/**
 * kafka-delete-records, kafka-get-offsets and kcat say the same of Millrace and of a Kafka beside it: records deleted by
 * hand, and by retention.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import { BrokerProcess, millrace } from '../harness/broker_process.ts';
import { kafkaLauncher } from './kafka_broker.ts';
import { kcat } from './peers/kcat_peer.ts';
import { type Program, startJava } from './peers/program_peer.ts';

const test = suite('delete_records');
const dir = mkdtempSync(join(tmpdir(), 'millrace-delete-records-'));
const settings = {
  'log.retention.check.interval.ms': 1_000,
  'log.segment.delete.delay.ms': 500,
};
/** Ours first. */
let brokers: BrokerProcess[] = [];
let tools: Program | null = null;

test.before(async () => {
  tools = await startJava();
  brokers = await Promise.all([
    BrokerProcess.start({ launcher: millrace, settings }),
    BrokerProcess.start({ launcher: kafkaLauncher(), settings }),
  ]);
});

test.after(async () => {
  await tools?.close();
  for (const broker of brokers) await broker.dispose();
  rmSync(dir, { recursive: true, force: true });
});

type Script = (broker: BrokerProcess) => Promise<unknown>;

/** Runs the script against both, one after the other, and returns what both came to. */
async function both(script: Script): Promise<unknown> {
  const [ours, theirs] = brokers as [BrokerProcess, BrokerProcess];
  const expected = await script(theirs);
  const got = await script(ours);
  assert.deepEqual(got, expected, 'as Kafka');
  return got;
}

async function tool(
  { bootstrap }: BrokerProcess,
  name: string,
  ...args: readonly string[]
): Promise<string[]> {
  const output = join(dir, 'output');
  await tools!.run({
    command: 'tool',
    class: `org.apache.kafka.tools.${name}`,
    args: ['--bootstrap-server', bootstrap, ...args],
    input: null,
    output,
  });
  const lines = readFileSync(output, 'utf8').split('\n');
  return lines.filter((line) => line !== '').sort((a, b) => a.localeCompare(b));
}

const create = (broker: BrokerProcess, topic: string, ...more: readonly string[]) =>
  tool(broker, 'TopicCommand', '--create', '--topic', topic, ...more);

const offsetsOf = (broker: BrokerProcess, topic: string, time: string | number) =>
  tool(broker, 'GetOffsetShell', '--topic', topic, '--time', String(time));

function deleteBefore(
  broker: BrokerProcess,
  partitions: readonly { topic: string; partition: number; offset: number }[],
): Promise<string[]> {
  const file = join(dir, 'offsets.json');
  writeFileSync(file, JSON.stringify({ partitions, version: 1 }));
  return tool(broker, 'DeleteRecordsCommand', '--offset-json-file', file);
}

function put({ bootstrap }: BrokerProcess, topic: string, values: string[], ...more: string[]) {
  const input = Buffer.from(values.map((value) => `${value}\n`).join(''));
  return kcat(['-b', bootstrap, '-P', '-t', topic, '-p', '0', ...more], input);
}

async function read({ bootstrap }: BrokerProcess, topic: string, offset: string): Promise<string> {
  const format = ['-f', '%o %s\n', '-e', '-q'];
  const where = ['-t', topic, '-p', '0', '-o', offset];
  return (await kcat(['-b', bootstrap, '-C', ...where, ...format])).toString();
}

test('records below an offset, up to the high watermark, and what is refused', async () => {
  const got = await both(async (broker) => {
    await create(broker, 'plain', '--partitions', '2');
    await create(broker, 'compacted', '--config', 'cleanup.policy=compact');
    for (const group of [
      ['a', 'b', 'c'],
      ['d', 'e'],
    ])
      await put(broker, 'plain', group);
    const plain = (offset: number, partition = 0) => [{ topic: 'plain', partition, offset }];
    return [
      await deleteBefore(broker, plain(2)),
      await offsetsOf(broker, 'plain', 'earliest'),
      await read(broker, 'plain', 'beginning'),
      // Not once all is deleted: Kafka then answers with a record that is deleted, we say that there is none.
      await offsetsOf(broker, 'plain', 'max-timestamp'),
      await deleteBefore(broker, plain(1)),
      await deleteBefore(broker, plain(99)),
      await deleteBefore(broker, plain(-7)),
      await deleteBefore(broker, [{ topic: 'compacted', partition: 0, offset: 0 }]),
      await deleteBefore(broker, [...plain(-1), ...plain(-1, 1)]),
      await offsetsOf(broker, 'plain', 'earliest'),
      await offsetsOf(broker, 'plain', 'latest'),
      await offsetsOf(broker, 'plain', 0),
      await put(broker, 'plain', ['f']).then(() => read(broker, 'plain', 'beginning')),
    ];
  });
  const text = JSON.stringify(got);
  assert.match(text, /low_watermark: 2/);
  assert.match(text, /2 c\\n3 d\\n4 e\\n/);
  assert.match(text, /low_watermark: 5/);
});

test('retention.ms takes all that is too old, the segment that is written to as well', async () => {
  await both(async (broker) => {
    await create(broker, 'short', '--config', 'retention.ms=1000');
    await put(broker, 'short', ['old', 'older']);
    await untilOffset(broker, 'short', 2);
    await put(broker, 'short', ['young']);
    return [await read(broker, 'short', 'beginning'), await offsetsOf(broker, 'short', 'latest')];
  });
  const [ours] = brokers as [BrokerProcess];
  const names = (): string[] =>
    readdirSync(ours.dataDir, { recursive: true, encoding: 'utf8' }).filter((name) =>
      /short-0.*00000000000000000000\./.test(name),
    );
  const deadline = Date.now() + 60_000;
  while (names().length > 0) {
    assert(Date.now() < deadline, `still there: ${names().join(', ')}`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
});

/** Waits until the partition begins at the offset. */
async function untilOffset(broker: BrokerProcess, topic: string, offset: number): Promise<void> {
  const deadline = Date.now() + 120_000;
  for (;;) {
    const [line] = await offsetsOf(broker, topic, 'earliest');
    if (line === `${topic}:0:${offset}`) return;
    assert(Date.now() < deadline, `begins at ${line}, not at ${offset}`);
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

test('after kill -9 of ours nothing that was deleted is back', async () => {
  const [ours] = brokers as [BrokerProcess];
  await create(ours, 'killed');
  await put(ours, 'killed', ['a', 'b', 'c']);
  await deleteBefore(ours, [{ topic: 'killed', partition: 0, offset: 2 }]);
  await ours.kill();
  await ours.restart();
  assert.deepEqual(await offsetsOf(ours, 'killed', 'earliest'), ['killed:0:2']);
  assert.equal(await read(ours, 'killed', 'beginning'), '2 c\n');
});

test.run();
