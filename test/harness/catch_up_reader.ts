/**
 * A consumer that reads a partition from its start to its end as fast as it comes, on a thread of its own, each time
 * that it is told to. It looks at nothing but sizes, so that it takes little of the processors from what is measured.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createConnection } from 'node:net';
import { parentPort, Worker, workerData } from 'node:worker_threads';
import { ApiKey } from '../../net/protocol/api_key.gen.ts';
import { encodeRequestFrame } from '../../net/protocol/frame.ts';
import type { Endpoint } from './connection.ts';

export interface CatchUpTarget {
  readonly endpoint: Endpoint;
  readonly topic: string;
  /** The partition holds so many batches, each of so many bytes and records. */
  readonly batches: number;
  readonly batchBytes: number;
  readonly batchRecords: number;
}

export class CatchUpReader {
  readonly #worker: Worker;

  constructor(target: CatchUpTarget) {
    this.#worker = new Worker(new URL(import.meta.url), { workerData: target });
  }

  /** Reads everything once and returns the number of bytes. Rejects when that fails. */
  async read(): Promise<number> {
    this.#worker.postMessage('read');
    const [bytes] = await once(this.#worker, 'message');
    return bytes as number;
  }

  async stop(): Promise<void> {
    await this.#worker.terminate();
  }
}

/** Asks for one batch at a time, as a client with the usual limit of 1 MiB gets them. */
function fetchFrame({ topic, batchBytes, batchRecords }: CatchUpTarget, batch: number): Uint8Array {
  const partition = {
    partition: 0,
    fetchOffset: batch * batchRecords,
    partitionMaxBytes: batchBytes,
  };
  const header = { apiKey: ApiKey.Fetch, apiVersion: 12, correlationId: batch, clientId: 'reader' };
  return encodeRequestFrame<'Fetch'>(header, 'FetchRequest', {
    maxWaitMs: 500,
    minBytes: 1,
    maxBytes: 50 << 20,
    sessionId: 0,
    sessionEpoch: -1,
    topics: [{ topic, partitions: [partition] }],
    forgottenTopicsData: [],
  }).bytes;
}

async function readAll(target: CatchUpTarget): Promise<number> {
  const { endpoint, batches, batchBytes } = target;
  let total = 0;
  let batch = 0;
  /** Of the answer: its size as far as it is known, and what has come of it with that. */
  let size = Buffer.alloc(0);
  let received = 0;
  const socket = createConnection({
    ...endpoint,
    noDelay: true,
    onread: {
      buffer: Buffer.alloc(256 * 1024),
      callback: (length, buffer) => {
        if (size.length < 4)
          size = Buffer.concat([size, buffer.subarray(0, Math.min(length, 4 - size.length))]);
        received += length;
        if (size.length < 4 || received < 4 + size.readInt32BE(0)) return true;
        assert.equal(received, 4 + size.readInt32BE(0));
        assert(received > batchBytes, `${received} bytes do not hold batch ${batch}`);
        total += received;
        batch += 1;
        size = Buffer.alloc(0);
        received = 0;
        if (batch < batches) socket.write(fetchFrame(target, batch));
        else socket.destroy();
        return true;
      },
    },
  });
  socket.write(fetchFrame(target, 0));
  await once(socket, 'close');
  assert.equal(batch, batches, 'the connection broke');
  return total;
}

if (parentPort !== null && workerData !== null) {
  const port = parentPort;
  port.on('message', () => {
    void readAll(workerData as CatchUpTarget).then((bytes) => port.postMessage(bytes));
  });
}
