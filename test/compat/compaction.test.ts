/**
 * The same records into Millrace and into a real Kafka, both of which compact as fast as they can: what is left must be
 * the same. Then Kafka's own tool reads our cleaned files, and each broker takes over the other's directory.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import type { RecordInput } from '../../engine/batch/encode.ts';
import { BrokerProcess } from '../harness/broker_process.ts';
import { Client, type ProducerIdentity } from '../harness/client.ts';
import { type Random, splitMix } from '../harness/split_mix.ts';
import { kafkaLauncher } from './kafka_broker.ts';
import { type Program, startJava } from './peers/program_peer.ts';

const test = suite('compaction');
const topic = 'table';
const settings = {
  'log.segment.bytes': 1_048_576,
  'log.index.interval.bytes': 1_024,
  'log.cleaner.backoff.ms': 100,
  'log.cleaner.min.cleanable.ratio': 0.001,
  'log.initial.task.delay.ms': 100,
};
const deadlineMs = 90_000;
/** Share of what was sent that may be left: 4,060 keys, and the segment that takes appends, which is not cleaned. */
const leftShareMax = 0.5;
const startMs = Date.now() - 60_000;

interface Side {
  /** The partitions' directories lie in it. */
  readonly logs: string;
  readonly dataDir: string;
  broker: BrokerProcess;
}

const sides: Side[] = [];
/** Records that each side has been sent. */
let sent = 0;

async function start(isKafka: boolean, logs: string): Promise<BrokerProcess> {
  // Kafka's launcher puts the data below the directory that it is given.
  const options = isKafka
    ? { launcher: kafkaLauncher(), dataDir: join(logs, '..') }
    : { dataDir: logs };
  return BrokerProcess.start({ settings, ...options });
}

test.before(async () => {
  for (const isKafka of [false, true]) {
    const home = mkdtempSync(join(tmpdir(), 'millrace-compaction-'));
    const logs = join(home, 'logs');
    mkdirSync(logs);
    const broker = await start(isKafka, logs);
    sides.push({ logs, dataDir: home, broker });
  }
});

test.after(async () => {
  for (const { broker, dataDir } of sides) {
    await broker.dispose();
    rmSync(dataDir, { recursive: true, force: true });
  }
});

function record(random: Random, number: number): RecordInput {
  const key = `key-${random(random(4) === 0 ? 4_000 : 60)}`;
  const isTombstone = random(8) === 0;
  const header = { key: Buffer.from('h'), value: Buffer.from('x') };
  return {
    key: Buffer.from(key),
    value: isTombstone ? null : Buffer.from(`${number}`.padEnd(random(600), '.')),
    timestamp: BigInt(startMs + number + random(50)),
    headers: random(10) === 0 ? [header] : [],
  };
}

/** The same batches for every side: segments end at the same offsets then. Returns how many records they have. */
async function write({ broker }: Side, seed: number, batches: number): Promise<number> {
  const random = splitMix(seed);
  const client = await Client.connect(broker);
  const known = (await client.metadata()).topics.some(({ name }) => name === topic);
  if (!known) await client.createTopic(topic, 1, { 'cleanup.policy': 'compact' });
  const { producerId, producerEpoch } = await initProducerId(client);
  let baseSequence = 0;
  let count = 0;
  for (let batch = 0; batch < batches; batch += 1) {
    const records = Array.from({ length: 1 + random(60) }, (_, at) =>
      record(random, batch * 100 + at),
    );
    count += records.length;
    const codec = random(5) as 0 | 1 | 2 | 3 | 4;
    const isIdempotent = random(2) === 0;
    const producer = isIdempotent ? { producerId, producerEpoch, baseSequence } : {};
    if (isIdempotent) baseSequence += records.length;
    await client.produceOne(topic, 0, { records, codec, ...producer });
  }
  client.close();
  return count;
}

async function writeBoth(seed: number, batches: number): Promise<void> {
  const [count = 0] = await Promise.all(sides.map((side) => write(side, seed, batches)));
  sent += count;
}

/** Kafka says for a while after its start that it is not ready yet. */
async function initProducerId(client: Client): Promise<ProducerIdentity> {
  for (let left = 100; ; left -= 1) {
    try {
      return await client.initProducerId();
    } catch (error) {
      if (left === 0) throw error;
      await sleep(200);
    }
  }
}

async function readAll({ broker }: Side): Promise<string[]> {
  const client = await Client.connect(broker);
  const lines: string[] = [];
  await client.readEach(topic, 0, ({ offset, timestamp, key, value, headers }) => {
    const text = value === null ? 'null' : Buffer.from(value).toString();
    lines.push(`${offset} ${timestamp} ${Buffer.from(key!).toString()} ${text} ${headers.length}`);
  });
  client.close();
  return lines;
}

/** A difference of thousands of lines helps nobody. */
function assertSame(found: readonly string[], wanted: readonly string[]): void {
  const at = found.findIndex((line, index) => line !== wanted[index]);
  if (at >= 0) assert.equal(found[at], wanted[at], `line ${at} of ${found.length}`);
  assert.equal(found.length, wanted.length);
}

/** Says whether all segments but the one that takes appends have been cleaned, so that nothing changes any more. */
function isCleaned({ logs }: Side): boolean {
  const files = readdirSync(join(logs, `${topic}-0`)).filter((name) => name.endsWith('.log'));
  const activeBase = Math.max(...files.map((name) => Number.parseInt(name, 10)));
  return firstDirtyOffset(logs) === activeBase;
}

function firstDirtyOffset(logs: string): number {
  const path = join(logs, 'cleaner-offset-checkpoint');
  const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
  return Number(/^table 0 (\d+)$/m.exec(text)?.[1] ?? -1);
}

/** Waits until both have cleaned all that they may, and compares what is left. */
async function assertSameInTheEnd(): Promise<void> {
  const untilMs = performance.now() + deadlineMs;
  while (!sides.every(isCleaned)) {
    const reached = sides.map(({ logs }) => firstDirtyOffset(logs));
    assert(performance.now() < untilMs, `cleaned up to ${reached.join(' and ')} only`);
    await sleep(100);
  }
  const [ours, theirs] = await Promise.all(sides.map(readAll));
  assertSame(ours!, theirs!);
  assert(ours!.length < sent * leftShareMax, `${ours!.length} of ${sent} records are left`);
}

test('what is left of the same records is the same', async () => {
  await writeBoth(1, 1_500);
  await assertSameInTheEnd();
  await writeBoth(2, 700);
  await assertSameInTheEnd();
});

test('kafka-dump-log reads the cleaned files without a complaint', async () => {
  const side = sides[0]!;
  await side.broker.stop();
  const dir = join(side.logs, `${topic}-0`);
  const checkpoint = readFileSync(join(side.logs, 'cleaner-offset-checkpoint'), 'utf8');
  assert.match(checkpoint, /^0\n1\ntable 0 [1-9]\d*\n$/);
  const java = await startJava();
  try {
    const names = readdirSync(dir).filter((name) => /\.(?:log|index|timeindex)$/.test(name));
    const logs = names.filter((name) => name.endsWith('.log'));
    const text = await dump(java, dir, logs, '--deep-iteration', '--print-data-log');
    assert.match(text, /isvalid: true/);
    assert.match(text, /deleteHorizonMs: OptionalLong\[\d+\]/);
    await dump(java, dir, names, '--index-sanity-check');
  } finally {
    await java.close();
  }
});

async function dump(
  java: Program,
  dir: string,
  names: readonly string[],
  ...options: string[]
): Promise<string> {
  const output = join(java.dir, 'dump');
  const files = names.map((name) => join(dir, name)).join(',');
  const args = ['--files', files, ...options];
  const tool = 'org.apache.kafka.tools.DumpLogSegments';
  await java.run({ command: 'tool', class: tool, args, input: null, output });
  const text = readFileSync(output, 'utf8');
  const complaint = /^.*(?:isvalid: false|mismatch|out of order|corrupt|Exception|Error).*$/im.exec(
    text,
  );
  assert.equal(complaint?.[0], undefined);
  return text;
}

test('Millrace takes over what Kafka has cleaned and cleans on, and Kafka takes it back', async () => {
  const [ours, theirs] = sides as [Side, Side];
  const before = await readAll(theirs);
  await theirs.broker.kill();
  ours.broker = await start(false, ours.logs);
  theirs.broker = await start(false, theirs.logs);
  assertSame(await readAll(ours), before);
  assertSame(await readAll(theirs), before);
  await writeBoth(3, 700);
  await assertSameInTheEnd();
  const after = await readAll(ours);
  await theirs.broker.kill();
  theirs.broker = await start(true, theirs.logs);
  assertSame(await readAll(theirs), after);
});

test.run();
