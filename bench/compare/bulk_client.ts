/**
 * The raw produce client of the throughput works: batches that were encoded once, over several connections, so that
 * what it costs is the copy into the socket. It shows what a broker can take where librdkafka is the bottleneck.
 */
import { buildBatch } from './batch.ts';
import { produceError, produceFrame } from './requests.ts';
import { WireClient } from './wire_client.ts';

export interface BulkLoad {
  messages: number;
  messageBytes: number;
  /** Messages in each request; the last one has fewer. */
  messagesPerBatch: number;
  connections: number;
  /** Requests of a connection that are unanswered at the same time. */
  inFlight: number;
  /** Partitions of the topic, which the requests take in turn. */
  partitions: number;
  acks: 1 | -1;
}

/** How many messages each request has: all the same, but for the last. */
export function batchSizes(messages: number, messagesPerBatch: number): number[] {
  const sizes = new Array<number>(Math.floor(messages / messagesPerBatch)).fill(messagesPerBatch);
  const rest = messages % messagesPerBatch;
  return rest === 0 ? sizes : [...sizes, rest];
}

/** Produces all messages; resolves with the wall time in milliseconds from the first request to the last answer. */
export async function produceBulk(port: number, topic: string, load: BulkLoad): Promise<number> {
  const sizes = batchSizes(load.messages, load.messagesPerBatch);
  const batches = new Map(
    [...new Set(sizes)].map((size) => [size, buildBatch(size, load.messageBytes, Date.now())]),
  );
  const connecting = Array.from({ length: load.connections }, () => WireClient.connect(port));
  const clients = await Promise.all(connecting);
  try {
    const started = performance.now();
    await new Promise<void>((resolve, reject) => {
      let sent = 0;
      let answered = 0;
      /** Frames by what is in them, ready to be sent again: a frame belongs to its request until the answer. */
      const spare = new Map<string, Buffer[]>();
      const next = (client: WireClient): void => {
        const size = sizes[sent];
        if (size === undefined) return;
        const partition = sent % load.partitions;
        sent += 1;
        const key = `${partition} ${size}`;
        const frames = spare.get(key) ?? [];
        spare.set(key, frames);
        const batch = batches.get(size) as Buffer;
        const frame = frames.pop() ?? produceFrame(topic, partition, batch, load.acks);
        client.send(frame, (body) => {
          const code = produceError(body);
          if (code !== 0) return reject(new Error(`produce failed with error ${code}`));
          frames.push(frame);
          answered += 1;
          if (answered === sizes.length) return resolve();
          next(client);
        });
      };
      for (const client of clients) client.onFailure(reject);
      for (let slot = 0; slot < load.inFlight; slot += 1) clients.forEach(next);
    });
    return performance.now() - started;
  } finally {
    for (const client of clients) client.close();
  }
}
