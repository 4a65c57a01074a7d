/**
 * Runs a shard on this worker thread: makes it when main says with what, and takes connections once it is ready.
 *
 * Thread: the worker's. A connection that arrives before the logs are open waits, or its first request would
 * find no topics.
 */
import { flushCompileCache } from 'node:module';
import { parentPort } from 'node:worker_threads';
import { supervised } from '../engine/thread/supervised_thread.ts';
import { createLogger } from './logger.ts';
import { Shard, type ShardPorts } from './shard.ts';
import type { ShardData, ShardThreadData, ToShard } from './shard_messages.ts';

/** A killed process never writes the compile cache: it is written once here, away from the first requests. */
const compileCacheDelayMs = 2_000;

/** Starts the shard over the given disk, clock and randomness. */
export function runShard(ports: ShardPorts): void {
  const port = parentPort;
  if (port === null) throw new Error('a shard runs on a worker thread');
  let shard: Shard | null = null;
  let isReady = false;
  const waiting: Array<ToShard & { type: 'shard.connection' }> = [];
  const supervision = supervised(async () => shard?.stop(graceMs));
  const { logger, graceMs } = supervision.data as ShardThreadData;

  const start = async (data: ShardData): Promise<void> => {
    const started = new Shard({ data, ports, logger: createLogger(logger), port });
    shard = started;
    await started.ready;
    isReady = true;
    supervision.ready();
    for (const { fd, origin } of waiting) started.adopt(fd, origin);
    setTimeout(flushCompileCache, compileCacheDelayMs).unref();
  };
  port.on('message', (message: ToShard) => {
    if (message.type === 'shard.start') void start(message.data);
    else if (message.type !== 'shard.connection') return;
    else if (isReady) shard?.adopt(message.fd, message.origin);
    else waiting.push(message);
  });
}
