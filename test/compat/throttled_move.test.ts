/**
 * A partition that kafka-reassign-partitions moves with `--throttle` (KIP-73) takes the time that its bytes and the rate
 * say, and none of the throttle is left when the tool has verified the move.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import type { Client } from '../harness/client.ts';
import { Cluster } from '../harness/cluster.ts';
import { isKafka } from './exchange.ts';
import { kafkaLauncher } from './kafka_broker.ts';
import { startJava } from './peers/program_peer.ts';
import { Tools } from './tool_comparison.ts';

const test = suite('throttled moves');
const topic = 'moved';
const movedBytes = 18 << 20;
const batchBytes = 256 << 10;
const slowly = 2 << 20;
const faster = 3;
const pollMs = 20;
const patienceMs = 120_000;
/** An answer goes over the rate by its own size at most: small ones keep to it closely. */
const settings = {
  'replica.fetch.max.bytes': batchBytes,
  'replica.fetch.response.max.bytes': batchBytes,
};

let cluster: Cluster;
let tools: Tools;
const closers: (() => Promise<void>)[] = [];

test.before(async () => {
  const java = await startJava();
  closers.push(() => java.close());
  tools = new Tools(java);
  const launcher = isKafka ? { launcher: () => kafkaLauncher() } : {};
  cluster = await Cluster.start({ settings, ...launcher });
  closers.push(() => cluster.dispose());
});

test.after(async () => {
  for (const close of closers) await close();
});

function run(name: string, ...args: string[]): Promise<string[]> {
  const { bootstrap } = cluster;
  return tools.run({ bootstrap, dataDir: '', cluster }, name, args);
}

async function replicas(client: Client): Promise<readonly number[]> {
  const { topics } = await client.metadata([topic]);
  return topics[0]?.partitions[0]?.replicaNodes ?? [];
}

async function until(isSo: () => Promise<boolean>, what: string): Promise<void> {
  const deadline = performance.now() + patienceMs;
  while (!(await isSo())) {
    assert(performance.now() < deadline, `still not: ${what}`);
    await sleep(pollMs);
  }
}

/** Moves the partition to a broker, and returns the milliseconds from when that begins to when it is done. */
async function move(client: Client, to: number, rate: number): Promise<number> {
  const plan = join(tools.dir, `to-${to}.json`);
  const partitions = [{ topic, partition: 0, replicas: [to] }];
  writeFileSync(plan, JSON.stringify({ version: 1, partitions }));
  const file = ['--reassignment-json-file', plan];
  const asked = run('kafka-reassign-partitions', ...file, '--execute', '--throttle', String(rate));
  await until(async () => (await replicas(client)).includes(to), 'the move has begun');
  const begun = performance.now();
  assert.equal((await asked).at(-1), 'ends with success');
  await until(async () => (await replicas(client)).length === 1, 'the move is done');
  const ms = performance.now() - begun;
  const said = await run('kafka-reassign-partitions', ...file, '--verify');
  assert.match(said.join('\n'), /Reassignment of partition moved-0 is completed/);
  return ms;
}

test('it takes as long as its bytes at that rate do, and three times the rate a third of it', async () => {
  await run('kafka-topics', '--create', '--topic', topic, '--replica-assignment', '1');
  const client = await cluster.client(1);
  closers.unshift(async () => client.close());
  const value = new Uint8Array(batchBytes - 200);
  for (let bytes = 0; bytes < movedBytes; bytes += batchBytes)
    await client.produceOne(topic, 0, [{ value }]);
  const slowMs = await move(client, 2, slowly);
  const fastMs = await move(client, 3, faster * slowly);
  const rates = [slowMs, fastMs].map((ms) => Math.round((movedBytes * 1_000) / ms));
  console.log(
    `${movedBytes} bytes in ${Math.round(slowMs)} and ${Math.round(fastMs)} ms: ${rates} bytes per second`,
  );
  // The last answer is not waited for, and the end of a move is seen a little late.
  assert(
    rates[0]! < 1.2 * slowly && rates[1]! < 1.2 * faster * slowly,
    `faster than allowed: ${rates}`,
  );
  const ratio = slowMs / fastMs;
  assert(
    ratio > faster / 2 && ratio < faster * 1.3,
    `one took ${ratio} times as long as the other`,
  );
});

test('nothing of the throttle is left', async () => {
  for (const [type, name] of [
    ['topics', topic],
    ['brokers', '1'],
    ['brokers', '2'],
    ['brokers', '3'],
  ] as const) {
    const said = await run(
      'kafka-configs',
      '--describe',
      '--entity-type',
      type,
      '--entity-name',
      name,
    );
    assert.doesNotMatch(said.join('\n'), /throttled/);
  }
});

test.run();
