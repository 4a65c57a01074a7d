/**
 * Numbers as messages: 0, 1, 2, … sent in order over several partitions, and the check that each arrived once and in its
 * partition's order. Both take the same memory however many there are.
 */
import assert from 'node:assert/strict';
import type { Producer } from '../../net/client/client.ts';
import type { Client as RawClient } from './client.ts';
import { decodeRecords } from './fetched_records.ts';

const batchOf = 500;
/** Sends that are not awaited yet, at most. */
const pendingMax = 20_000;

/** Sends numbers, and calls `between` now and then. All are delivered when it returns. */
export async function sendNumbers(
  producer: Producer,
  topic: string,
  count: number,
  between: (sent: number) => Promise<void> | void = () => undefined,
): Promise<void> {
  let pending: Promise<unknown>[] = [];
  for (let at = 0; at < count; at += 1) {
    // Half of them by a key, half without: both ways of choosing a partition.
    const key = at % 2 === 0 ? null : `key ${at % 7}`;
    pending.push(producer.send({ topic, key, value: `${at}` }));
    if ((at + 1) % batchOf !== 0) continue;
    await between(at + 1);
    if (pending.length < pendingMax) continue;
    await Promise.all(pending);
    pending = [];
  }
  await Promise.all(pending);
}

/** Every number is there once, and within a partition they rise. `readers` has who reads each partition. */
export async function assertNumbers(
  readers: readonly RawClient[],
  topic: string,
  count: number,
): Promise<void> {
  const sources = readers.map((raw, partition) => readNumbers(raw, topic, partition));
  await assertMerged(sources, count);
}

/**
 * Merges partitions, given as runs of numbers: each number from 0 to `count` - 1 must be the next of one of them. A number
 * that is missing, or stands behind a larger one, is then the next of none; one that comes again stays in the way.
 */
export async function assertMerged(
  sources: readonly AsyncIterator<readonly number[]>[],
  count: number,
): Promise<void> {
  const heads = sources.map((source) => ({ source, run: [] as readonly number[], at: 0 }));
  const headOf = async (head: (typeof heads)[number]): Promise<number | undefined> => {
    while (head.at === head.run.length) {
      const next = await head.source.next();
      if (next.done === true) return undefined;
      head.run = next.value;
      head.at = 0;
    }
    return head.run[head.at];
  };
  let due = 0;
  for (let isMoving = true; isMoving; ) {
    isMoving = false;
    for (const head of heads)
      while ((await headOf(head)) === due) {
        // Runs of a partition are long: no await for each number of them.
        while (head.run[head.at] === due) {
          head.at += 1;
          due += 1;
        }
        isMoving = true;
      }
  }
  const next = await Promise.all(heads.map(headOf));
  assert.deepEqual([due, next], [count, heads.map(() => undefined)], 'due, and what comes instead');
}

async function* readNumbers(
  raw: RawClient,
  topic: string,
  partition: number,
): AsyncGenerator<readonly number[], undefined> {
  const end = await raw.endOffset(topic, partition);
  for (let next = 0; next < end; ) {
    const options = { maxWaitMs: 1_000, partitionMaxBytes: 1 << 20 };
    const { records } = await raw.fetchOne(topic, partition, next, options);
    const found = decodeRecords(records ?? new Uint8Array(0), next);
    assert.ok(found.nextOffset > next, `${topic}-${partition}: nothing at ${next} of ${end}`);
    yield found.records.map(({ value }) => Number(Buffer.from(value ?? []).toString()));
    next = found.nextOffset;
  }
  return undefined;
}
