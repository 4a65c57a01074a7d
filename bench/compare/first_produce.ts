/** Clients of the life works: how long until a broker takes records. */
import { buildBatch } from './batch.ts';
import type { RunningBroker } from './broker.ts';
import { sleep } from './children.ts';
import { createTopic, produceError, produceFrame } from './requests.ts';
import { WireClient } from './wire_client.ts';

const RETRY_MS = 5;

/**
 * Tries until a record for partition 0 of `topic` is acknowledged, and resolves with the clock
 * (`performance.now`) at that moment. With `create` the topic is made first, with one partition. Throws
 * when the broker's process ends or after `timeoutMs`.
 */
export async function untilFirstProduce(
  broker: RunningBroker,
  topic: string,
  create: boolean,
  timeoutMs: number,
): Promise<number> {
  const deadline = performance.now() + timeoutMs;
  let last: unknown = 'nothing tried';
  while (performance.now() < deadline) {
    broker.assertAlive();
    const client = await WireClient.connect(broker.port, 1_000).catch((error: unknown) => {
      last = error;
      return null;
    });
    if (client === null) {
      await sleep(RETRY_MS);
      continue;
    }
    try {
      const at = await produceOnce(client, topic, create, deadline);
      if (at !== null) return at;
    } catch (error) {
      last = error;
    } finally {
      client.close();
    }
    await sleep(RETRY_MS);
  }
  throw new Error(`${broker.spec.name}: no produce acknowledged in ${timeoutMs} ms (${last})`);
}

async function produceOnce(
  client: WireClient,
  topic: string,
  create: boolean,
  deadline: number,
): Promise<number | null> {
  if (create && (await createTopic(client, topic, { partitions: 1 })) !== 0) return null;
  const frame = produceFrame(topic, 0, buildBatch(1, 100, Date.now()), 1);
  while (performance.now() < deadline) {
    const body = await client.call(Buffer.from(frame), 60_000);
    if (produceError(body) === 0) return performance.now();
    await sleep(RETRY_MS);
  }
  return null;
}

/**
 * Produces one record to each of the `partitions` partitions, again to those that answer with an error,
 * until all have taken theirs. Throws after `timeoutMs`.
 */
export async function produceToAll(
  port: number,
  topic: string,
  partitions: number,
  timeoutMs: number,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  const client = await WireClient.connect(port);
  const batch = buildBatch(1, 100, Date.now());
  let left = Array.from({ length: partitions }, (_, index) => index);
  try {
    while (left.length > 0) {
      left = await produceRound(client, topic, left, batch);
      if (performance.now() > deadline)
        throw new Error(`${left.length} of ${partitions} partitions took no record in time`);
      if (left.length > 0) await sleep(RETRY_MS);
    }
  } finally {
    client.close();
  }
}

/** Resolves with the partitions that answered with an error. */
function produceRound(
  client: WireClient,
  topic: string,
  partitions: readonly number[],
  batch: Buffer,
): Promise<number[]> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('no answers in 120 s')), 120_000);
    const failed: number[] = [];
    let open = partitions.length;
    client.onFailure((error) => {
      clearTimeout(timer);
      reject(error);
    });
    client.cork();
    for (const partition of partitions)
      client.send(produceFrame(topic, partition, batch, 1), (body) => {
        if (produceError(body) !== 0) failed.push(partition);
        open -= 1;
        if (open > 0) return;
        clearTimeout(timer);
        resolve(failed);
      });
    client.uncork();
  });
}
