/**
 * Runs a shard on this worker thread: takes its messages from main, in order, once it is ready.
 *
 * Thread: the worker's. A connection that arrives before the logs are open waits, or its first request would
 * find no topics.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { createLogger } from './logger.ts';
import { Shard, type ShardPorts } from './shard.ts';
import type { ShardData, ToShard } from './shard_messages.ts';

/** Starts the shard that `workerData` (ShardData) describes, over the given disk, clock and randomness. */
export function runShard(ports: ShardPorts): void {
  const port = parentPort;
  if (port === null) throw new Error('a shard runs on a worker thread');
  const data = workerData as ShardData;
  const shard = new Shard({ data, ports, logger: createLogger(data.logger), port });
  let isReady = false;
  const waiting: ToShard[] = [];
  const handle = (message: ToShard): void => {
    if (message.type === 'shard.connection') shard.adopt(message.fd, message.origin);
    else void shard.stop(message.graceMs);
  };
  port.on('message', (message: { readonly type: string }) => {
    if (message.type !== 'shard.connection' && message.type !== 'shard.stop') return;
    if (isReady) handle(message as ToShard);
    else waiting.push(message as ToShard);
  });
  void shard.ready.then(() => {
    isReady = true;
    for (const message of waiting) handle(message);
  });
}
