/**
 * kill -9 in the middle of deletions: producers write, clients delete records on every shard, and retention takes
 * segments, all the time. After each restart no partition begins before where a client was told that it begins, or where
 * one has seen it begin, and what is left follows on without a gap up to what was acknowledged.
 *
 *   node test/scenario/deletion.test.ts [--rounds 100] [--seed N]
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { BrokerProcess } from '../harness/broker_process.ts';
import { Client, record } from '../harness/client.ts';
import { ConnectionLostError } from '../harness/connection.ts';
import type { FetchedRecord } from '../harness/fetched_records.ts';
import { runScenario, type ScenarioRun, scenarioOptions } from '../harness/scenario_options.ts';

const options = scenarioOptions();
const rounds = options.rounds ?? 8;
const partitions = [0, 1, 2, 3, 4, 5];
const topic = 't';

const settings = {
  'num.shards': 3,
  'log.segment.bytes': 1_048_576,
  'log.retention.check.interval.ms': 100,
  'log.segment.delete.delay.ms': 100,
  'log.flush.offset.checkpoint.interval.ms': 300,
};

const test = suite('deletion');

/** What one partition must be like. */
class Partition {
  /** Nothing below it may be seen again. */
  start = 0;
  /** Everything below it was acknowledged. */
  end = 0;
}

const all: readonly Partition[] = partitions.map(() => new Partition());
const counts = { deletions: 0, retained: 0, records: 0 };

test(`${rounds} rounds of kill -9: what was deleted stays deleted, and the rest stays`, async () => {
  await runScenario(options, async (run) => {
    const broker = await BrokerProcess.start({ dataDir: run.dataDir, settings });
    try {
      const admin = await Client.connect(broker);
      await admin.createTopic(topic, partitions.length, { 'retention.bytes': '2500000' });
      admin.close();
      for (let round = 0; round < rounds; round += 1) await killOnce(broker, run);
      assert(counts.deletions > rounds && counts.retained > 0, JSON.stringify(counts));
    } finally {
      await broker.dispose();
    }
  });
});

async function killOnce(broker: BrokerProcess, { random }: ScenarioRun): Promise<void> {
  const clients = await Promise.all(partitions.map(() => Client.connect(broker)));
  const work = partitions.flatMap((partition) => [
    until(() => produce(clients[partition]!, partition)),
    // By a connection of another shard than the producer's, most of the time.
    until(() => deleteSome(clients[(partition + 1) % clients.length]!, partition, random)),
  ]);
  await sleep(1_200 + random(800));
  await broker.kill();
  await Promise.all(work);
  for (const client of clients) client.close();
  await broker.restart();
  const client = await Client.connect(broker);
  for (const partition of partitions) await check(client, partition);
  client.close();
}

/** Again and again until the broker is gone. */
async function until(run: () => Promise<void>): Promise<void> {
  try {
    for (;;) await run();
  } catch (error) {
    if (!(error instanceof ConnectionLostError)) throw error;
  }
}

async function produce(client: Client, partition: number): Promise<void> {
  const batch = [record('x'.repeat(150_000))];
  const baseOffset = await client.produceOne(topic, partition, batch);
  const state = all[partition]!;
  state.end = Math.max(state.end, baseOffset + 1);
  counts.records += 1;
}

async function deleteSome(
  client: Client,
  partition: number,
  random: ScenarioRun['random'],
): Promise<void> {
  await sleep(random(40));
  const state = all[partition]!;
  const seen = await startOf(client, partition);
  assert(seen >= state.start, `partition ${partition} begins at ${seen}, before ${state.start}`);
  if (seen > state.start) counts.retained += 1;
  state.start = Math.max(state.start, seen);
  const offset = BigInt(seen + random(3));
  const { topics } = await client.request('DeleteRecords', {
    topics: [{ name: topic, partitions: [{ partitionIndex: partition, offset }] }],
    timeoutMs: 10_000,
  });
  const answer = topics[0]!.partitions[0]!;
  if (answer.errorCode === ErrorCode.OFFSET_OUT_OF_RANGE) return;
  assert.equal(answer.errorCode, ErrorCode.NONE);
  counts.deletions += 1;
  state.start = Math.max(state.start, Number(answer.lowWatermark));
}

function startOf(client: Client, partition: number): Promise<number> {
  return client.listOffset(topic, partition, -2n).then(({ offset }) => Number(offset));
}

async function check(client: Client, partition: number): Promise<void> {
  const state = all[partition]!;
  const start = await startOf(client, partition);
  assert(start >= state.start, `partition ${partition} begins at ${start}, before ${state.start}`);
  while ((await client.endOffset(topic, partition)) < state.end) await sleep(5);
  const records = await readFrom(client, partition, start);
  if (records === null) return check(client, partition);
  for (const [at, { offset }] of records.entries())
    assert.equal(Number(offset), start + at, `partition ${partition}`);
  assert(start + records.length >= state.end, `partition ${partition} ends too early`);
  state.start = start;
}

/** Null: retention has moved the log start meanwhile. */
async function readFrom(
  client: Client,
  partition: number,
  start: number,
): Promise<FetchedRecord[] | null> {
  try {
    return await client.readAll(topic, partition, start);
  } catch (error) {
    if ((await startOf(client, partition)) > start) return null;
    throw error;
  }
}

test.run();
