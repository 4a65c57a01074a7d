/**
 * Runs a shard on this worker thread: makes it when main says with what, and takes connections once it is ready.
 *
 * Thread: the worker's. A connection that arrives before the logs of all shards are open waits, or its first request
 * would find no topics.
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
  let isServing = false;
  const waiting: Array<ToShard & { type: 'shard.connection' }> = [];
  const supervision = supervised(async () => shard?.stop(graceMs));
  const { logger, graceMs, fabric } = supervision.data as ShardThreadData;

  const start = async (data: ShardData): Promise<void> => {
    const started = new Shard({ data, ports, logger: createLogger(logger), port, fabric });
    shard = started;
    await started.ready;
    supervision.ready();
    setTimeout(flushCompileCache, compileCacheDelayMs).unref();
  };
  port.on('message', (message: ToShard) => {
    switch (message.type) {
      case 'shard.start':
        void start(message.data);
        break;
      case 'shard.placed':
        shard?.place(message.topics);
        break;
      case 'shard.serve':
        isServing = true;
        for (const { fd, origin } of waiting.splice(0)) shard?.adopt(fd, origin);
        break;
      case 'shard.connection':
        if (isServing) shard?.adopt(message.fd, message.origin);
        else waiting.push(message);
        break;
      case 'shard.failDir':
        shard?.failDirectory(message.path, message.reason);
        break;
      case 'shard.logStartsStored':
        shard?.logStartsStored(message.number, message.failed);
        break;
      case 'shard.cleaner':
        if (shard === null) message.port.close();
        else shard.clean(message.port);
        break;
      case 'shard.close':
        shard?.closeLogs();
        break;
      // The others are the quorum's, see `QuorumClient`.
    }
  });
}
