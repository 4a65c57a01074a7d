/**
 * The listeners named in `controller.listener.names`: what the members of the metadata quorum, brokers that forward
 * requests, and tools ask of this node as a member or as the leader.
 *
 * Thread: main, with a connection host of its own: frames are bounded and checked as on the listeners for clients.
 * Connections that said which node they come from are remembered: the end of one is news of that node.
 */
import type { RaftReply, RaftRequest } from '../../replication/raft/messages.ts';
import type { BrokerConfig } from '../config/broker_config.ts';
import type { Listener } from '../config/listeners.ts';
import type { Logger } from '../logger.ts';
import type { QuorumReply, QuorumRequest } from '../quorum_api.ts';
import { Acceptor } from '../server/acceptor.ts';
import { ConnectionCounts } from '../server/connection_counts.ts';
import { ConnectionHost } from '../server/connection_host.ts';
import { makeControllerRegistry } from './controller_apis.ts';

/** What the node does for those who connect. */
export interface ControllerService {
  readonly nodeId: number;
  readonly clusterId: () => string;
  /** A request of the quorum's. `done` is called once, perhaps much later. */
  raft(request: RaftRequest, done: (reply: RaftReply) => void): void;
  /** A request to the leader. This node's own answer counts: NOT_CONTROLLER unless it leads. */
  request(request: QuorumRequest): Promise<QuorumReply>;
  /** Another node has said something. */
  heard(nodeId: number): void;
  /** A connection on which the node said something is gone. */
  lost(nodeId: number): void;
}

export class ControllerListener {
  readonly #config: BrokerConfig;
  readonly #logger: Logger;
  readonly #service: ControllerService;
  readonly #counts: ConnectionCounts;
  readonly #host: ConnectionHost;
  readonly #acceptors: Acceptor[] = [];
  /** Node by connection id. */
  readonly #nodeOf = new Map<number, number>();

  constructor(config: BrokerConfig, service: ControllerService, logger: Logger) {
    this.#config = config;
    this.#logger = logger;
    this.#service = service;
    this.#counts = new ConnectionCounts({
      connectionsMax: config.maxConnections,
      connectionsPerIpMax: config.maxConnectionsPerIp,
    });
    this.#host = new ConnectionHost({
      registry: makeControllerRegistry(service, (connectionId, nodeId) =>
        this.#heard(connectionId, nodeId),
      ),
      limits: {
        frameBytesMax: config.socketRequestMaxBytes,
        requestMemoryBytesMax: config.queuedMaxRequestBytes,
        idleMsMax: config.connectionsMaxIdleMs,
      },
      log: logger,
      sendFile: null,
      onConnectionClosed: (id) => this.#closed(id),
    });
  }

  /** Port of the first one that was opened; 0 before. */
  get port(): number {
    return this.#acceptors[0]?.port ?? 0;
  }

  /** Binds them all. Rejects with Node's error (EADDRINUSE, …) when one cannot be bound. */
  async listen(): Promise<void> {
    for (const listener of this.#config.controllerListeners)
      this.#acceptors.push(await this.#accept(listener));
  }

  /** Whether a connection is open on which the node has said something. */
  hasCaller(nodeId: number): boolean {
    return [...this.#nodeOf.values()].includes(nodeId);
  }

  /** Stops listening and closes all connections, after `graceMs` even those with requests that run. */
  async close(graceMs: number): Promise<void> {
    // An acceptor that serves its sockets itself has ended when the last of them has.
    const closed = this.#acceptors.map((acceptor) => acceptor.close());
    await this.#host.stop(graceMs);
    await Promise.all(closed);
  }

  #accept({ name, host, port }: Listener): Promise<Acceptor> {
    return Acceptor.listen({
      listener: name,
      host,
      port,
      counts: this.#counts,
      log: this.#logger,
      delivery: {
        type: 'socket',
        deliver: (socket, origin) => {
          this.#host.adoptSocket(socket, origin);
        },
      },
    });
  }

  #heard(connectionId: number, nodeId: number): void {
    if (nodeId === this.#service.nodeId || this.#nodeOf.get(connectionId) === nodeId) return;
    this.#nodeOf.set(connectionId, nodeId);
    this.#service.heard(nodeId);
  }

  #closed(connectionId: number): void {
    this.#counts.remove(connectionId);
    const nodeId = this.#nodeOf.get(connectionId);
    if (nodeId === undefined) return;
    this.#nodeOf.delete(connectionId);
    this.#service.lost(nodeId);
  }
}
