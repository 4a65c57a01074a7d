/**
 * A broker that compacts all the time, under load, read from the start again and again, and killed (-9) as soon as files
 * of a cleaning lie in the directory. Whatever a reader sees is true; in the end the log is compacted, and the topic can
 * be deleted in the middle of a cleaning and made again.
 *
 *   node test/scenario/compaction.test.ts [--rounds 50] [--seed N]
 */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, watch } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import { BrokerProcess } from '../harness/broker_process.ts';
import { Client } from '../harness/client.ts';
import { ConnectionLostError } from '../harness/connection.ts';
import { KeyedHistory, type KeyedRecord } from '../harness/keyed_history.ts';
import { runScenario, type ScenarioRun, scenarioOptions } from '../harness/scenario_options.ts';
import type { Random } from '../harness/split_mix.ts';

const options = scenarioOptions();
const rounds = options.rounds ?? 12;
const topic = 'table';
const keys = 3_000;
const deadlineMs = 60_000;
const waitMs = 6_000;
const recordsInTheEnd = 20_000;

const settings = {
  'log.segment.bytes': 1_048_576,
  'log.cleaner.backoff.ms': 50,
  'log.cleaner.min.cleanable.ratio': 0.01,
  'log.cleaner.delete.retention.ms': 500,
  // Slow, so that there is a middle to be killed in.
  'log.cleaner.io.max.bytes.per.second': 8_000_000,
  'log.flush.offset.checkpoint.interval.ms': 300,
};

const test = suite('compaction');

test(`${rounds} rounds of kill -9 in the middle of cleanings`, async () => {
  await runScenario(options, async (run) => {
    const broker = await BrokerProcess.start({ dataDir: run.dataDir, settings });
    try {
      await killLoop(broker, run);
    } finally {
      await broker.dispose();
    }
  });
});

async function killLoop(broker: BrokerProcess, { random, dataDir }: ScenarioRun): Promise<void> {
  const dir = join(dataDir, `${topic}-0`);
  const admin = await Client.connect(broker);
  await admin.createTopic(topic, 1, { 'cleanup.policy': 'compact' });
  admin.close();
  const history = new KeyedHistory();
  let inTheMiddle = 0;
  for (let round = 0; round < rounds; round += 1) {
    const client = await Client.connect(broker);
    let isOver = false;
    const parts = Promise.all([
      load(broker, history, random, () => isOver),
      read(broker, history, () => isOver),
    ]);
    // What they find is looked at below, when the broker is gone.
    parts.catch(() => {});
    await waitForCleaning(dir, random);
    await broker.kill();
    isOver = true;
    if (/cleaned|swap/.test(filesIn(dir).join())) inTheMiddle += 1;
    await parts;
    client.close();
    await broker.restart();
    await readOnce(broker, history);
  }
  assert(history.size > rounds * 100);
  assert(inTheMiddle > 0, 'no kill came in the middle of a cleaning');
  await load(broker, history, random, () => history.size > recordsInTheEnd);
  await waitForCompaction(broker, history);
  await deleteWhileCleaning(broker, dir, history, random);
}

function filesIn(dir: string): string[] {
  return existsSync(dir) ? readdirSync(dir) : [];
}

/** Until files of a cleaning are there, of a kind that is drawn. */
async function waitForCleaning(dir: string, random: Random): Promise<void> {
  const kind = ['.cleaned', '.swap', '.deleted'][random(3)] as string;
  const seen = Promise.withResolvers<void>();
  const watcher = watch(dir, (_event, name) => {
    if (name?.endsWith(kind) === true) seen.resolve();
  });
  const timer = setTimeout(seen.resolve, waitMs);
  await seen.promise;
  clearTimeout(timer);
  watcher.close();
}

function makeRecords(history: KeyedHistory, random: Random, sent: number): KeyedRecord[] {
  return Array.from({ length: 1 + random(40) }, (_, at) => {
    const key = `key-${random(random(2) === 0 ? keys : 50)}`;
    const isTombstone = random(10) === 0;
    const value = `${history.size}-${sent}-${at}`.padEnd(100 + random(900), '.');
    return { key, value: isTombstone ? null : value };
  });
}

/** Produces until the broker is gone. */
async function load(
  broker: BrokerProcess,
  history: KeyedHistory,
  random: Random,
  isOver: () => boolean,
): Promise<void> {
  const client = await Client.connect(broker);
  for (let sent = 0; !isOver(); sent += 1) {
    const records = makeRecords(history, random, sent);
    const codec = random(3) === 0 ? (random(5) as 0 | 1 | 2 | 3 | 4) : 0;
    const batch = {
      codec,
      records: records.map(({ key, value }) => ({
        key: Buffer.from(key),
        value: value === null ? null : Buffer.from(value),
        timestamp: BigInt(Date.now()),
      })),
    };
    history.sent(records);
    try {
      history.acknowledged(await client.produceOne(topic, 0, batch), records);
    } catch (error) {
      if (!(error instanceof ConnectionLostError)) throw error;
      break;
    }
  }
  client.close();
}

/** Reads from the start, again and again, until the broker is gone. */
async function read(
  broker: BrokerProcess,
  history: KeyedHistory,
  isOver: () => boolean,
): Promise<void> {
  while (!isOver()) {
    try {
      await readOnce(broker, history);
    } catch (error) {
      const isGone =
        error instanceof ConnectionLostError ||
        (error as NodeJS.ErrnoException).code === 'ECONNREFUSED';
      if (!isGone) throw error;
      return;
    }
  }
}

/** Returns how many records there were. */
async function readOnce(broker: BrokerProcess, history: KeyedHistory): Promise<number> {
  const client = await Client.connect(broker);
  try {
    const reading = history.startReading();
    await client.readEach(topic, 0, ({ offset, key, value }) => {
      assert(key !== null);
      const text = value === null ? null : Buffer.from(value).toString();
      reading.see(offset, { key: Buffer.from(key).toString(), value: text });
    });
    reading.end(true);
    return reading.count;
  } finally {
    client.close();
  }
}

/** Some record of every key, and what lies in the segment that takes appends: no more stays. */
async function waitForCompaction(broker: BrokerProcess, history: KeyedHistory): Promise<void> {
  const most = history.livingKeys + 6_000;
  const untilMs = performance.now() + deadlineMs;
  let count = await readOnce(broker, history);
  while (count > most && performance.now() < untilMs) {
    await sleep(100);
    count = await readOnce(broker, history);
  }
  assert(count <= most, `${count} of ${history.size} records are left, ${most} at most`);
  assert(history.size > most);
}

async function deleteWhileCleaning(
  broker: BrokerProcess,
  dir: string,
  history: KeyedHistory,
  random: Random,
): Promise<void> {
  let isOver = false;
  const loading = load(broker, history, random, () => isOver);
  await waitForCleaning(dir, random);
  isOver = true;
  await loading;
  const client = await Client.connect(broker);
  await client.request('DeleteTopics', {
    topics: [{ name: topic, topicId: 'AAAAAAAAAAAAAAAAAAAAAA' }],
    topicNames: [topic],
    timeoutMs: 30_000,
  });
  await client.createTopic(topic, 1, { 'cleanup.policy': 'compact' });
  assert.equal(await client.endOffset(topic, 0), 0);
  assert.equal(await client.produceOne(topic, 0, [{ key: Buffer.from('a'), value: null }]), 0);
  client.close();
  const { code } = await broker.stop();
  assert.equal(code, 0, broker.output);
  assert.deepEqual(
    filesIn(dir).filter((name) => /cleaned|swap|deleted/.test(name)),
    [],
  );
  const checkpoint = join(dir, '..', 'cleaner-offset-checkpoint');
  // There is none when the machine was too busy for any cleaning to come to its end.
  const isClean = existsSync(checkpoint) && readFileSync(checkpoint, 'utf8').includes(topic);
  assert(!isClean, 'the new topic begins uncleaned');
}

test.run();
