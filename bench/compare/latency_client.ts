/** The raw produce clients of the latency works: one connection, one record a request. */

import { Histogram } from '../../tools/histogram.ts';
import { buildBatch } from './batch.ts';
import { sleep } from './children.ts';
import { produceError, produceFrame } from './requests.ts';
import { WireClient } from './wire_client.ts';

const VALUE_BYTES = 100;

export interface LatencyResult {
  histogram: Histogram;
  /** Requests answered, and sent but not answered when time was up. */
  answered: number;
  unanswered: number;
  /** From the first request to the last answer, or to the end of waiting. */
  wallMs: number;
}

export interface Target {
  port: number;
  topic: string;
  /** Those of the topic; requests take them in turn. */
  partitions: number;
  acks: 1 | -1;
}

/** Sends a request when the one before is answered, `requests` times or for `limitMs`. */
export async function oneInFlight(
  target: Target,
  requests: number,
  limitMs: number,
): Promise<LatencyResult> {
  const client = await WireClient.connect(target.port);
  const histogram = new Histogram();
  const frames = framesOf(target);
  const started = performance.now();
  try {
    await new Promise<void>((resolve, reject) => {
      client.onFailure(reject);
      let sentAt = 0;
      const onAnswer = (body: Buffer): void => {
        const now = performance.now();
        histogram.record(now - sentAt);
        const code = produceError(body);
        if (code !== 0) reject(new Error(`produce failed with error ${code}`));
        else if (histogram.count >= requests || now - started > limitMs) resolve();
        else next();
      };
      const next = (): void => {
        const frame = frames[histogram.count % frames.length] as Buffer;
        sentAt = performance.now();
        client.send(frame, onAnswer);
      };
      next();
    });
  } finally {
    client.close();
  }
  return {
    histogram,
    answered: histogram.count,
    unanswered: 0,
    wallMs: performance.now() - started,
  };
}

/**
 * Open loop: a request is due every 1 / `perSecond` s for `seconds`, whatever the answers do, and its
 * latency counts from when it was due, so that a stall is charged to all the requests that it held up.
 * Waits at most `graceMs` for late answers; requests unanswered by then are recorded with the time that
 * they had waited, which is less than they would have had.
 */
export async function openLoop(
  target: Target,
  perSecond: number,
  seconds: number,
  graceMs: number,
): Promise<LatencyResult> {
  const client = await WireClient.connect(target.port);
  const histogram = new Histogram();
  const frames = framesOf(target);
  const total = Math.floor(perSecond * seconds);
  const intervalMs = 1_000 / perSecond;
  const started = performance.now();
  let sent = 0;
  let failure: Error | null = null;
  client.onFailure((error) => {
    failure = error;
  });
  const onAnswer = (body: Buffer): void => {
    histogram.record(performance.now() - started - histogram.count * intervalMs);
    const code = produceError(body);
    if (code !== 0) failure = new Error(`produce failed with error ${code}`);
  };
  const giveUpAt = started + seconds * 1_000 + graceMs;
  while (failure === null && histogram.count < total && performance.now() < giveUpAt) {
    const due = Math.min(total, Math.floor((performance.now() - started) / intervalMs) + 1);
    for (; sent < due; sent += 1)
      client.send(Buffer.from(frames[sent % frames.length] as Buffer), onAnswer);
    // Spins through the event loop while requests are due: a timer would be late by a millisecond.
    if (sent < total) await new Promise((resolve) => setImmediate(resolve));
    else await sleep(1);
  }
  const answered = histogram.count;
  client.close();
  if (failure !== null) throw failure as Error;
  const wallMs = performance.now() - started;
  for (let index = answered; index < sent; index += 1)
    histogram.record(wallMs - index * intervalMs);
  return { histogram, answered, unanswered: sent - answered, wallMs };
}

/** A request for each partition. */
function framesOf({ topic, partitions, acks }: Target): Buffer[] {
  const batch = buildBatch(1, VALUE_BYTES, Date.now());
  return Array.from({ length: partitions }, (_, index) => produceFrame(topic, index, batch, acks));
}
