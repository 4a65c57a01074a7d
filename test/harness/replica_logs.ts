/**
 * The copies of a partition, as they are on the brokers' disks: all batches of all segments in their order. Where copies
 * roll their segments is each broker's own matter, the batches are not.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { baseOffsetOf, leaderEpochOf, sizeOf } from '../../engine/batch/header.ts';
import type { BrokerProcess } from './broker_process.ts';
import { laneName, type Target } from './load.ts';

const lookAgainMs = 100;
/** Base offset and length of a batch stand before what its length counts. */
const prefixBytes = 12;

/** Waits until all copies are equal, byte for byte, and throws where they differ when they do not become so in time. */
export async function assertEqualReplicas(
  brokers: readonly BrokerProcess[],
  targets: readonly Target[],
  timeoutMs: number,
): Promise<number> {
  const deadline = performance.now() + timeoutMs;
  let bytes = 0;
  for (const target of targets) {
    for (;;) {
      const copies = brokers.map(({ dataDir }) => logBytes(dataDir, target));
      const [first] = copies;
      assert(first !== undefined);
      if (copies.every((copy) => copy.equals(first))) {
        bytes += first.length;
        break;
      }
      assert(performance.now() < deadline, differences(target, copies));
      await sleep(lookAgainMs);
    }
  }
  return bytes;
}

function logBytes(dataDir: string, target: Target): Buffer {
  const directory = join(dataDir, laneName(target));
  const segments = readdirSync(directory)
    .filter((name) => name.endsWith('.log'))
    .sort();
  return Buffer.concat(segments.map((name) => readFileSync(join(directory, name))));
}

function differences(target: Target, copies: readonly Buffer[]): string {
  const lists = copies.map(batches);
  const length = Math.max(...lists.map((list) => list.length));
  for (let at = 0; at < length; at += 1) {
    const texts = lists.map((list) => list[at] ?? 'nothing');
    if (new Set(texts).size > 1)
      return `${laneName(target)}: copies differ at batch ${at}: ${texts.join(' | ')}`;
  }
  return `${laneName(target)}: copies differ within a batch`;
}

function batches(bytes: Buffer): string[] {
  const found: string[] = [];
  for (let at = 0; at + prefixBytes < bytes.length; at += sizeOf(bytes, at))
    found.push(
      `offset ${baseOffsetOf(bytes, at)}, epoch ${leaderEpochOf(bytes, at)}, ${sizeOf(bytes, at)} bytes`,
    );
  return found;
}
