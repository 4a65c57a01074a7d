/**
 * Kafka's own kafka-dump-log reads every file of our data directory without a complaint: after a clean stop, and after
 * kill -9 and the recovery that follows.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import type { BrokerProcess } from '../harness/broker_process.ts';
import { assertSame, type Sent } from './dataset.ts';
import { isKafka, peers, startBroker, wantedOf } from './exchange.ts';
import { smallSegments, writeMixedLoad } from './load.ts';
import type { Peer } from './peers/peer.ts';
import { type Program, startJava } from './peers/program_peer.ts';

const test = suite('dump_log');
let broker: BrokerProcess;
let peer: Peer;
let java: Program;
const sent: Sent[] = [];
const closers: (() => Promise<void>)[] = [];

test.before(async () => {
  broker = await startBroker({ settings: smallSegments });
  closers.push(() => broker.dispose());
  peer = await peers.java(broker.bootstrap);
  closers.push(() => peer.close());
  java = await startJava();
  closers.push(() => java.close());
});

test.after(async () => {
  for (const close of closers.reverse()) await close();
});

/** SIGTERM; a JVM counts the signal into its exit code even when it has closed everything. */
async function stopCleanly(): Promise<void> {
  const { code } = await broker.stop();
  assert(code === 0 || code === 143, `exit code ${code}:\n${broker.output}`);
}

/** Files of the data directory by kind, absolute. */
function filesOf(pattern: RegExp): string[] {
  const names = readdirSync(broker.dataDir, { recursive: true, encoding: 'utf8' });
  return names.filter((name) => pattern.test(name)).map((name) => join(broker.dataDir, name));
}

/** Runs kafka-dump-log over files; fails on anything that it complains of. */
async function dump(files: readonly string[], ...options: string[]): Promise<string> {
  assert(files.length > 0, 'there is nothing to dump');
  const output = join(java.dir, 'dump');
  const errors = await java.run({
    command: 'tool',
    class: 'org.apache.kafka.tools.DumpLogSegments',
    args: ['--files', files.join(','), ...options],
    input: null,
    output,
  });
  assert.equal(withoutQuirk(errors).trim(), '');
  const text = readFileSync(output, 'utf8');
  const complaint =
    /^.*(?:isvalid: false|mismatch|Non-consecutive|out of order|corrupt|Found|Exception|Error).*$/im.exec(
      text,
    );
  assert.equal(complaint?.[0], undefined);
  return text;
}

/**
 * With --deep-iteration the tool calls the first record of every segment but a partition's first "non-consecutive", in
 * Kafka's own directories as well. Left out only where that record's offset is the one that the file is named after.
 */
function withoutQuirk(errors: string): string {
  const quirk = /^Non-consecutive offsets in .*\/0*(\d+)\.log\n {2}-1 is followed by \1$/gm;
  return errors.replace(quirk, '').replace(/^.*\b(?:INFO|WARN)\b.*$/gm, '');
}

/** Dumps everything in every way, and counts the records. */
async function dumpAll(): Promise<void> {
  const isMetadata = (path: string): boolean => path.includes('__cluster_metadata');
  const logs = filesOf(/\.log$/).filter((path) => !isMetadata(path));
  const text = await dump(logs, '--deep-iteration');
  const records = text.match(/^\| offset: /gm)?.length ?? 0;
  assert.equal(
    records,
    sent.reduce((count, one) => count + one.records.length, 0),
  );

  // Kafka does not trim the indexes of its metadata log when it stops, and its own tool minds.
  const isChecked = (path: string): boolean => !(isKafka && isMetadata(path));
  const indexes = filesOf(/\.(?:index|timeindex)$/).filter(isChecked);
  const checked = await dump(indexes, '--index-sanity-check');
  assert.equal(checked.match(/^\/.*(?:passed sanity check|is empty)\.$/gm)?.length, indexes.length);
  await dump(
    indexes.filter((path) => !isMetadata(path)),
    '--verify-index-only',
  );
  await dump(indexes.filter((path) => !isMetadata(path)));

  const snapshots = filesOf(/\.snapshot$/).filter((path) => !isMetadata(path));
  assert.match(await dump(snapshots), /producerId: \d+ producerEpoch: \d+/);
  const metadata = await dump(
    filesOf(/__cluster_metadata-0.*\.log$/),
    '--cluster-metadata-decoder',
  );
  // What was there before the last snapshot but one is only in the snapshots.
  assert.match(metadata, /"type":"[A-Z_]+_RECORD"/);
  const checkpoints = filesOf(/__cluster_metadata-0.*\.checkpoint$/);
  const states = await dump(checkpoints, '--cluster-metadata-decoder');
  assert.match(states, /"type":"TOPIC_RECORD"/);
  assert.match(states, /SnapshotHeader.*lastContainedLogTimestamp/);
  assert.match(states, /SnapshotFooter/);
}

test('after a mixed load and a clean stop', async () => {
  sent.push(...(await writeMixedLoad(peer, 'first', 3_000)));
  await stopCleanly();
  assert(filesOf(/-large-0.*\.log$/).length > 1, 'the load was to roll segments');
  await dumpAll();
});

test('after kill -9 and the recovery from it', async () => {
  await broker.restart();
  sent.push(...(await writeMixedLoad(peer, 'second', 1_000)));
  await broker.kill();
  await broker.restart();
  assertSame(sent, await peer.consume(wantedOf(sent)), peer.name);
  await stopCleanly();
  await dumpAll();
});

test.run();
