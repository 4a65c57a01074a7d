/**
 * A consumer that catches up on data that is not in the page cache any more leaves the tail alone: with it, the 99th
 * percentiles of a tail of 1,000 messages a second, produced and consumed, are at most twice what they are without it,
 * or 5 ms more. Both are measured in turn, and one round in which that holds is enough: what else runs on the machine only
 * adds, and what it adds changes from round to round, so that no value is held against one of another round.
 *
 *   node test/scenario/cold_reader.test.ts [--bytes N] [--rounds N] [--blocking]
 *
 * `--bytes 2147483648` is the full size. `--blocking` shows what it is good for: the shards wait for the device.
 */
import assert from 'node:assert/strict';
import { closeSync, openSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { suite } from 'uvu';
import { encodeBatch } from '../../engine/batch/encode.ts';
import { native } from '../../engine/native.ts';
import { CatchUpReader, type CatchUpTarget } from '../harness/catch_up_reader.ts';
import { Client } from '../harness/client.ts';
import type { Endpoint } from '../harness/connection.ts';
import { startLocalBroker } from '../harness/local_broker.ts';
import { runScenario } from '../harness/scenario_options.ts';
import { measureTail, type TailLatencies } from '../harness/tail_latency.ts';

const { values } = parseArgs({
  options: {
    bytes: { type: 'string', default: String(256 << 20) },
    rounds: { type: 'string', default: '5' },
    blocking: { type: 'boolean', default: false },
  },
});
const backlogBytes = Number(values.bytes);
const rounds = Number(values.rounds);
const phaseMs = 3_000;
const allowedMs = 5;
const valueBytes = 10_000;
const batchRecords = 100;
const pageBytes = 4096;

interface Round {
  readonly without: TailLatencies;
  readonly with: TailLatencies;
  readonly mebibytesPerSecond: number;
}

const test = suite('cold reader');

test('catching up from the disk leaves the tail alone', async () => {
  await runScenario({ seed: 1, rounds }, async ({ dataDir }) => {
    const seams = values.blocking
      ? { shardEntry: new URL('./blocking_shard.ts', import.meta.url) }
      : {};
    const broker = await startLocalBroker(dataDir, { 'log.segment.bytes': 64 << 20 }, seams);
    const reader = new CatchUpReader(await fill(broker.address));
    const directory = join(dataDir, 'backlog-0');
    // Code that has not run yet is slow.
    await measureTail(broker.address, 'tail', 1_000, reader.read());
    const all: Round[] = [];
    for (let number = 0; number < rounds; number += 1) {
      const round = await measure(broker.address, reader, directory);
      all.push(round);
      console.log(lineOf(round));
    }
    await reader.stop();
    await broker.stop();
    for (const what of ['produceP99', 'consumeP99'] as const) {
      const shares = all.map((round) => round.with[what] / mostMs(round.without[what]));
      const shown = shares.map((share) => share.toFixed(2)).join(', ');
      console.log(`${what} with a cold reader, as a share of what it may be: ${shown}`);
      assert(Math.min(...shares) <= 1, `${what} with a cold reader is too high in every round`);
    }
  });
});

/** Writes the backlog, and says how it is to be read. */
async function fill(endpoint: Endpoint): Promise<CatchUpTarget> {
  const topic = 'backlog';
  const client = await Client.connect(endpoint);
  await client.createTopic(topic);
  await client.createTopic('tail');
  const value = crypto.getRandomValues(new Uint8Array(valueBytes));
  const records = Array.from({ length: batchRecords }, () => ({ value }));
  const { length: batchBytes } = encodeBatch({ records });
  const batches = Math.ceil(backlogBytes / batchBytes);
  for (let sent = 0; sent < batches; sent += 1)
    await client.produceOne(topic, 0, encodeBatch({ records }));
  client.close();
  return { endpoint, topic, batches, batchBytes, batchRecords };
}

/** The tail alone, and then with the reader, which reads all from the disk as often as fits into the time. */
async function measure(
  endpoint: Endpoint,
  reader: CatchUpReader,
  directory: string,
): Promise<Round> {
  const without = await measureTail(endpoint, 'tail', phaseMs, Promise.resolve());
  let bytes = 0;
  let readMs = 0;
  const reading = async (): Promise<void> => {
    const endMs = performance.now() + phaseMs;
    while (performance.now() < endMs) {
      dropCache(directory);
      const startMs = performance.now();
      bytes += await reader.read();
      readMs += performance.now() - startMs;
    }
  };
  const beside = await measureTail(endpoint, 'tail', phaseMs, reading());
  return { without, with: beside, mebibytesPerSecond: bytes / 2 ** 20 / (readMs / 1_000) };
}

/** Has the kernel forget the backlog, and looks whether it did. */
function dropCache(directory: string): void {
  const calls = native();
  assert(calls !== null);
  let pages = 0;
  let cached = 0;
  for (const name of readdirSync(directory).filter((one) => /\.(log|index|timeindex)$/.test(one))) {
    const path = join(directory, name);
    const { size } = statSync(path);
    if (size === 0) continue;
    const fd = openSync(path, 'r+');
    calls.dropCache(fd, 0, 0);
    pages += Math.ceil(size / pageBytes);
    cached += Math.max(0, calls.cachedPages(fd, 0, size));
    closeSync(fd);
  }
  const problem = `${cached} of ${pages} pages are still in the page cache`;
  assert(cached < pages / 100, `${problem}: TMPDIR must name a directory on a disk`);
}

function lineOf({ without, with: beside, mebibytesPerSecond }: Round): string {
  const pair = (what: 'produceP99' | 'consumeP99'): string =>
    `${what} ${without[what].toFixed(2)} -> ${beside[what].toFixed(2)} ms`;
  return `${pair('produceP99')}, ${pair('consumeP99')}, reader ${mebibytesPerSecond.toFixed(0)} MiB/s`;
}

function mostMs(withoutMs: number): number {
  return Math.max(2 * withoutMs, withoutMs + allowedMs);
}

test.run();
