/**
 * `millrace log verify` and `log dump` on directories that a real Kafka and Millrace have written: nothing to complain of
 * after a kill and after a clean stop, every record there, and damage named where it was made.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import { BrokerProcess, type Launcher, millrace } from '../harness/broker_process.ts';
import type { Sent } from './dataset.ts';
import { peers } from './exchange.ts';
import { kafkaLauncher } from './kafka_broker.ts';
import { smallSegments, writeMixedLoad } from './load.ts';

interface FoundDamage {
  readonly severity: string;
  readonly path: string;
  readonly position: number;
  readonly fromOffset: number;
}

interface DumpedRecord {
  readonly key: string | null;
  readonly value: string | null;
}

const entry = join(import.meta.dirname, '..', '..', 'tools', 'millrace.ts');

function log(...args: string[]): { readonly code: number | null; readonly out: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [entry, 'log', ...args], {
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  assert.equal(stderr, '');
  return { code: status, out: stdout };
}

/** Nothing but notes, and none that a broker does not explain. */
function assertSound(logs: string, what: string): void {
  const { code, out } = log('verify', logs, '--json');
  assert.equal(code, 0, `${what}:\n${out}`);
}

/** Keys and values of all records that stand in the files of the partitions that were written, in hex. */
function assertDumped(logs: string, sent: readonly Sent[]): void {
  for (const { topic, partition, records } of sent) {
    const path = join(logs, `${topic}-${partition}`);
    const lines = log('dump', path, '--records', '--json', '--format', 'hex')
      .out.trim()
      .split('\n');
    const dumped = lines.flatMap(
      (line) => (JSON.parse(line) as { records: DumpedRecord[] }).records,
    );
    assert.deepEqual(
      dumped.map(({ key, value }) => [key, value]),
      records.map(({ key, value }) => [key, value]),
      `${topic}-${partition}`,
    );
  }
}

/** Damages the middle of the second batch of a segment in the way of a bad disk. */
function damageOne(logs: string): { readonly path: string; readonly position: number } {
  const name = readdirSync(logs).find((one) => one.endsWith('-large-0')) as string;
  const segment = readdirSync(join(logs, name)).find((one) => one.endsWith('.log')) as string;
  const path = join(logs, name, segment);
  const bytes = readFileSync(path);
  const position = bytes.readInt32BE(8) + 12;
  const at = position + 80;
  bytes[at] = ~(bytes[at] as number) & 0xff;
  writeFileSync(path, bytes);
  return { path, position };
}

for (const [name, launcher, sub] of [
  ['kafka', kafkaLauncher, 'logs'],
  ['millrace', (): Launcher => millrace, ''],
] as const) {
  const test = suite(`log verify, ${name}`);
  const dir = mkdtempSync(join(tmpdir(), 'millrace-verify-'));
  const logs = join(dir, sub);
  let sent: readonly Sent[] = [];
  let broker: BrokerProcess;

  test.after(async () => {
    await broker.dispose();
    rmSync(dir, { recursive: true, force: true });
  });

  test('after a kill', async () => {
    const options = { launcher: launcher(), dataDir: dir, settings: smallSegments };
    broker = await BrokerProcess.start(options);
    const peer = await peers.java(broker.bootstrap);
    try {
      sent = await writeMixedLoad(peer, 'load', 2_000);
    } finally {
      await peer.close();
    }
    assertSound(logs, 'while it runs');
    await broker.kill();
    assertSound(logs, 'after a kill');
    assertDumped(logs, sent);
  });

  test('after a clean stop', async () => {
    await broker.restart();
    await broker.stop();
    assertSound(logs, 'after a clean stop');
    assertDumped(logs, sent);
  });

  test('damage is named where it was made, and only it', () => {
    const { path, position } = damageOne(logs);
    const { code, out } = log('verify', logs, '--json');
    assert.equal(code, 4);
    const { findings } = JSON.parse(out) as { findings: FoundDamage[] };
    const bad = findings.filter(({ severity }) => severity !== 'note');
    assert.equal(bad.length, 1, out);
    assert.deepEqual([bad[0]?.path, bad[0]?.position], [path, position]);
  });

  test.run();
}
