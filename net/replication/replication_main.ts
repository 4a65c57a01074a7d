/**
 * Entry of the replication thread: makes it when main says with what.
 *
 * Thread: the worker's. Main sends it what it sends the shards.
 */
import { parentPort } from 'node:worker_threads';
import { nodeClock } from '../../engine/node_ports.ts';
import { supervised } from '../../engine/thread/supervised_thread.ts';
import { createLogger } from '../logger.ts';
import type { ShardData, ShardThreadData, ToShard } from '../shard_messages.ts';
import { Replication } from './replication.ts';

function run(): void {
  const port = parentPort;
  if (port === null) throw new Error('replication runs on a worker thread');
  let replication: Replication | null = null;
  const supervision = supervised(async () => replication?.stop(graceMs));
  const { logger, graceMs, fabric } = supervision.data as ShardThreadData;

  const start = async (data: ShardData): Promise<void> => {
    const started = new Replication({
      data,
      clock: nodeClock,
      logger: createLogger(logger),
      port,
      fabric,
    });
    replication = started;
    await started.ready;
    supervision.ready();
  };
  port.on('message', (message: ToShard) => {
    if (message.type === 'shard.start') void start(message.data);
    else if (message.type === 'shard.placed') replication?.place(message.topics);
    else if (message.type === 'shard.serve') replication?.serve();
    // The others are the shards' alone, or the quorum's, see `QuorumClient`.
  });
}

run();
