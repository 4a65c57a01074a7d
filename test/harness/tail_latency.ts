/**
 * A tail: one small message each millisecond, acknowledged when it is durable, and a consumer that waits for it. Tells
 * how long both took from when the message was sent.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, record, textOf } from './client.ts';
import type { Endpoint } from './connection.ts';
import { decodeRecords } from './fetched_records.ts';

export interface TailLatencies {
  /** Milliseconds at the 99th percentile. */
  readonly produceP99: number;
  readonly consumeP99: number;
  readonly messages: number;
}

/** Runs the tail of partition 0 of a topic for `phaseMs` and until `work` is done. */
export async function measureTail(
  endpoint: Endpoint,
  topic: string,
  phaseMs: number,
  work: Promise<unknown>,
): Promise<TailLatencies> {
  const producer = await Client.connect(endpoint);
  const consumer = await Client.connect(endpoint);
  const firstOffset = await producer.endOffset(topic, 0);
  const sentAt: number[] = [];
  const produced: number[] = [];
  const consumed: number[] = [];
  /** How many to wait for, once that is known. */
  const goal = { messages: Number.POSITIVE_INFINITY };
  const consuming = consume(consumer, topic, firstOffset, (index) => {
    consumed.push(performance.now() - sentAt[index]!);
    return consumed.length === goal.messages;
  });
  let isWorkDone: boolean = false;
  const done = (): void => {
    isWorkDone = true;
  };
  work.then(done, done);
  const acknowledged: Promise<void>[] = [];
  const startMs = performance.now();
  while (performance.now() - startMs < phaseMs || !isWorkDone) {
    const due = Math.floor(performance.now() - startMs);
    while (sentAt.length < due) {
      const index = sentAt.length;
      const nowMs = performance.now();
      sentAt.push(nowMs);
      acknowledged.push(
        producer.produceOne(topic, 0, [record(`${index}`)]).then(() => {
          produced.push(performance.now() - nowMs);
        }),
      );
    }
    await sleep(1);
  }
  await Promise.all(acknowledged);
  // The consumer may be past the others, and this one ends its wait.
  const last = sentAt.push(performance.now());
  goal.messages = last;
  await producer.produceOne(topic, 0, [record(`${last - 1}`)]);
  await consuming;
  await work;
  producer.close();
  consumer.close();
  return {
    produceP99: percentile99(produced),
    consumeP99: percentile99(consumed),
    messages: sentAt.length,
  };
}

/** Calls `seen` for each message in order, with its number, until it says that this was the last. */
async function consume(
  client: Client,
  topic: string,
  firstOffset: number,
  seen: (index: number) => boolean,
): Promise<void> {
  for (let offset = firstOffset; ; ) {
    const { records } = await client.fetchOne(topic, 0, offset, { maxWaitMs: 1_000 });
    const found = decodeRecords(records ?? new Uint8Array(0), offset);
    for (const { value } of found.records) if (seen(Number(textOf(value)))) return;
    offset = found.nextOffset;
  }
}

function percentile99(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * 0.99))] ?? Number.NaN;
}
