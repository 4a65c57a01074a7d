/**
 * The broker's listening sockets, and what clients are told of them.
 *
 * Thread: main. A connection is handed, as a descriptor, to the shard that has the fewest, and counted until that says
 * that it is closed.
 */
import type { Worker } from 'node:worker_threads';
import { native } from '../engine/native.ts';
import type { BrokerEndpoint } from '../replication/metadata/records.ts';
import type { BrokerConfig } from './config/broker_config.ts';
import type { Listener } from './config/listeners.ts';
import type { Logger } from './logger.ts';
import { Acceptor } from './server/acceptor.ts';
import { ConnectionCounts, type ConnectionLimits } from './server/connection_counts.ts';
import type { ToShard } from './shard_messages.ts';

/** Kafka's `SecurityProtocol` code. */
const plaintext = 0;

interface ShardLoad {
  readonly worker: Worker;
  /** Invariant: its entries in `#shardOf`. */
  connections: number;
}

export class Listeners {
  readonly #config: BrokerConfig;
  readonly #logger: Logger;
  readonly #counts: ConnectionCounts;
  /** In the order of `config.listeners`. */
  readonly #acceptors: Acceptor[] = [];
  readonly #shards: ShardLoad[] = [];
  /** By connection id. */
  readonly #shardOf = new Map<number, ShardLoad>();
  /** The shard that is asked first: among equals, each in turn. */
  #nextShard = 0;

  constructor(config: BrokerConfig, logger: Logger) {
    this.#config = config;
    this.#logger = logger;
    this.#counts = new ConnectionCounts(limitsOf(config));
  }

  /** Takes over limits that were changed at run time. */
  limit(config: BrokerConfig): void {
    this.#counts.limit(limitsOf(config));
  }

  /** Host and real port of the first listener; the port is 0 before `listen`. */
  get address(): { host: string; port: number } {
    const { host } = this.#config.listeners[0]!;
    return { host, port: this.#acceptors[0]?.port ?? 0 };
  }

  /** Binds all listeners. Rejects with Node's error (EADDRINUSE, …) when one cannot be bound. */
  async listen(shards: readonly Worker[]): Promise<void> {
    for (const worker of shards) this.#shards.push({ worker, connections: 0 });
    for (const listener of this.#config.listeners)
      this.#acceptors.push(await this.#accept(listener));
  }

  /** Where clients are sent: the advertised listeners, a port 0 among them being the one that was bound. */
  advertised(): BrokerEndpoint[] {
    return this.#config.advertisedListeners.map(({ name, host, port }, index) => ({
      name,
      host,
      port: port === 0 ? this.#acceptors[index]!.port : port,
      securityProtocol: plaintext,
    }));
  }

  /** A connection that was handed over is gone. */
  closed(connectionId: number): void {
    this.#counts.remove(connectionId);
    const shard = this.#shardOf.get(connectionId);
    if (shard === undefined) return;
    this.#shardOf.delete(connectionId);
    shard.connections -= 1;
  }

  async close(): Promise<void> {
    await Promise.all(this.#acceptors.map((acceptor) => acceptor.close()));
  }

  #accept({ name, host, port }: Listener): Promise<Acceptor> {
    const calls = native();
    if (calls === null)
      throw new Error(
        "the package koffi cannot be loaded. Run 'npm ci --ignore-scripts'; it needs a Linux on x64 or arm64.",
      );
    return Acceptor.listen({
      listener: name,
      host,
      port,
      backlog: this.#config.socketListenBacklogSize,
      counts: this.#counts,
      log: this.#logger,
      delivery: {
        type: 'descriptor',
        dup: calls.dup,
        deliver: (fd, origin) => {
          const message: ToShard = { type: 'shard.connection', fd, origin };
          this.#leastBusy(origin.id).postMessage(message);
        },
      },
    });
  }

  /** The thread with the fewest connections, which gets this one. */
  #leastBusy(connectionId: number): Worker {
    const shards = this.#shards;
    let best = shards[this.#nextShard]!;
    for (const shard of shards) if (shard.connections < best.connections) best = shard;
    best.connections += 1;
    this.#shardOf.set(connectionId, best);
    this.#nextShard = (shards.indexOf(best) + 1) % shards.length;
    return best.worker;
  }
}

function limitsOf(config: BrokerConfig): ConnectionLimits {
  return {
    connectionsMax: config.maxConnections,
    connectionsPerIpMax: config.maxConnectionsPerIp,
    connectionsPerIpOverrides: config.maxConnectionsPerIpOverrides,
  };
}
