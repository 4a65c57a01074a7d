/**
 * The threads of a broker that share its fabric: the shards and, in a cluster, the replication thread behind them.
 *
 * Thread: main. They load their modules as soon as they are made, and begin to work when they are told to.
 */
import type { SupervisedThread, Supervisor } from '../engine/thread/supervisor.ts';
import type { BrokerConfig } from './config/broker_config.ts';
import { createFabric, type FabricMemory, fabricTransfers } from './fabric/fabric_memory.ts';
import type { Logger } from './logger.ts';
import type { FromReplication } from './replication/replication_messages.ts';
import type { FromShard, ShardThreadData, ToShard } from './shard_messages.ts';

export interface BrokerThreadsOptions {
  readonly config: BrokerConfig;
  readonly supervisor: Supervisor;
  readonly logger: Logger;
  /** The module of a shard. */
  readonly shardEntry: URL;
  /** For answers to running requests at a stop. */
  readonly graceMs: number;
  /** `thread`: its number in the fabric. */
  readonly onMessage: (message: FromShard | FromReplication, thread: number) => void;
  readonly onExit: (thread: number) => void;
}

const replicationEntry = new URL('./replication/replication_main.ts', import.meta.url);

export class BrokerThreads {
  /** By number in the fabric. */
  readonly all: readonly SupervisedThread[];
  readonly shards: readonly SupervisedThread[];
  readonly #options: BrokerThreadsOptions;

  constructor(options: BrokerThreadsOptions) {
    this.#options = options;
    const { config } = options;
    const fabric = createFabric(config.shards, threadCount(config) > config.shards);
    this.all = fabric.map((memory) => this.#spawn(memory));
    this.shards = this.all.slice(0, config.shards);
  }

  tell(message: ToShard): void {
    for (const { worker } of this.all) worker.postMessage(message);
  }

  #spawn(fabric: FabricMemory): SupervisedThread {
    const { config, supervisor, logger, shardEntry, graceMs, onMessage, onExit } = this.#options;
    const isShard = fabric.shard < config.shards;
    const name = isShard ? `shard ${fabric.shard}` : 'replication';
    const data: ShardThreadData = { logger: { ...logger.options, thread: name }, graceMs, fabric };
    const entry = isShard ? shardEntry : replicationEntry;
    const thread = supervisor.spawn({ name, entry, data, transfer: fabricTransfers(fabric) });
    const { worker } = thread;
    worker.on('message', (message: FromShard | FromReplication) =>
      onMessage(message, fabric.shard),
    );
    worker.on('exit', () => onExit(fabric.shard));
    return thread;
  }
}

/** Of the fabric. Only a broker that has others beside it follows any, and needs a thread for that. */
export function threadCount({ shards, quorum }: BrokerConfig): number {
  return shards + (quorum.voters.length > 0 ? 1 : 0);
}
