/**
 * What a broker has when it is one of several: the listener for the quorum, connections to the others, the way to the
 * controller, and its life as the controller sees it. A node that is alone has none of it.
 *
 * Thread: main. Order: `listen`, then the quorum is opened over `links`, then `join`; `register` when the logs are open,
 * and `serve` when everything else is. `leave` comes before the listeners for clients close, `close` at the very end.
 */
import type { RegisterBrokerRequest } from '../replication/metadata/controller_api.ts';
import type { MetadataDelta, MetadataRecord, Voter } from '../replication/metadata/records.ts';
import type { RaftReply, RaftRequest } from '../replication/raft/messages.ts';
import { BrokerLifecycle } from './broker_lifecycle.ts';
import type { BrokerConfig } from './config/broker_config.ts';
import type { Logger } from './logger.ts';
import { ControllerChannel } from './peer/controller_channel.ts';
import { ControllerListener, type ControllerService } from './peer/controller_listener.ts';
import type { PeerAddress } from './peer/peer_connection.ts';
import { PeerLinks } from './peer/peer_links.ts';
import type { QuorumReply, QuorumRequest } from './quorum_api.ts';
import type { LeaderWatcher, QuorumHost } from './quorum_host.ts';
import { reportUndecided } from './recovery_report.ts';

/** The quorum, once it is open. */
export interface OpenedQuorum {
  readonly host: QuorumHost;
  /** Answers what other members ask. */
  handle(request: RaftRequest, done: (reply: RaftReply) => void): void;
}

export interface ClusterNodeOptions {
  readonly config: BrokerConfig;
  readonly logger: Logger;
  readonly clusterId: () => string;
  /** The longest that a thread of this process has been silent. */
  readonly silentMs: () => number;
}

const limits = {
  /** Between two lines that say that nothing happens. */
  waitingLineMs: 10_000,
  /** One question to the leader. */
  describeMs: 2_000,
  /** For answers on their way when the listener closes. What waits there, as fetches do, is never answered. */
  closeGraceMs: 50,
} as const;

export class ClusterNode implements ControllerService, LeaderWatcher {
  readonly links: PeerLinks;
  readonly #options: ClusterNodeOptions;
  readonly #listener: ControllerListener;
  readonly #opened = Promise.withResolvers<OpenedQuorum>();
  #quorum: OpenedQuorum | null = null;
  #channel: ControllerChannel | null = null;
  #lifecycle: BrokerLifecycle | null = null;
  #isClosing: boolean = false;

  constructor(options: ClusterNodeOptions) {
    const { config, logger } = options;
    this.#options = options;
    this.links = new PeerLinks({
      nodeId: config.nodeId,
      voters: config.quorum.voters,
      logger,
      addressOf: (nodeId) => this.#addressOf(nodeId),
      onRefused: (nodeId) => this.#quorum?.host.brokerUnreachable(nodeId),
    });
    this.#listener = new ControllerListener(config, this, logger);
  }

  get nodeId(): number {
    return this.#options.config.nodeId;
  }

  /** Where the other members find this node. */
  get endpoints(): Voter['endpoints'] {
    const { quorum, advertisedControllerListeners } = this.#options.config;
    const [listener] = advertisedControllerListeners;
    if (listener === undefined) return [];
    const { name, host, port } = listener;
    const own = quorum.voters.find(({ nodeId }) => nodeId === this.nodeId);
    if (own !== undefined) return [{ name, host: own.host, port: own.port }];
    return [{ name, host, port: port === 0 ? this.#listener.port : port }];
  }

  /** -1 before the registration. */
  get brokerEpoch(): number {
    return this.#lifecycle?.brokerEpoch ?? -1;
  }

  /** Binds the listeners for the quorum. What comes before the quorum is open waits for that. */
  async listen(): Promise<void> {
    await this.#listener.listen();
    const { config, logger } = this.#options;
    const voters = config.quorum.voters.map(({ nodeId }) => nodeId);
    const role = voters.includes(config.nodeId) ? 'a voter' : 'an observer';
    logger.info(
      { controllerPort: this.#listener.port },
      `node ${config.nodeId} is ${role} of the metadata quorum of nodes ${voters.join(', ')}`,
    );
  }

  /**
   * Takes part in the quorum, and waits until there is a leader and this node knows everything that was committed until
   * now. Never rejects; it takes as long as it takes.
   */
  async join(quorum: OpenedQuorum): Promise<void> {
    const { clusterId, logger } = this.#options;
    const { host } = quorum;
    const { nodeId, links } = this;
    this.#quorum = quorum;
    const channel = new ControllerChannel({ nodeId, host, links, clusterId });
    this.#channel = channel;
    host.watch(channel);
    host.watch(this);
    host.forwardBy((request, timeoutMs) => channel.request(request as never, timeoutMs));
    this.#opened.resolve(quorum);
    const timer = setInterval(() => this.#sayWaiting(host), limits.waitingLineMs);
    try {
      for (;;) {
        const reply = await channel.request<'describeQuorum'>(
          { type: 'describeQuorum' },
          limits.describeMs,
        );
        if (this.#isClosing) return;
        if (reply.result === null) continue;
        await host.applied(reply.result.highWatermark - 1);
        break;
      }
    } finally {
      clearInterval(timer);
    }
    logger.info({ clusterId: clusterId() }, 'caught up with the metadata of the cluster');
  }

  /** Registers the broker, fenced. Rejects with a text for people when the controller will not have it. */
  async register(registration: RegisterBrokerRequest): Promise<void> {
    const { config, logger, silentMs } = this.#options;
    const { host } = this.#quorum!;
    this.#lifecycle = new BrokerLifecycle({
      controller: this.#channel!,
      registration,
      heartbeatIntervalMs: config.quorum.brokerHeartbeatIntervalMs,
      sessionTimeoutMs: config.quorum.brokerSessionTimeoutMs,
      appliedOffset: () => host.appliedOffset,
      silentMs,
      canBeLetGo: () => config.quorum.voters.some(({ nodeId }) => this.#isThere(nodeId)),
      offlineLogDirs: () => [],
      logger,
    });
    const brokerEpoch = await this.#lifecycle.register();
    void host
      .applied(brokerEpoch)
      .then(() => reportUndecided(host.image, registration.damagedReplicas, logger));
  }

  /** Everything is open: resolves when the controller has unfenced the broker. */
  async serve(): Promise<void> {
    this.#lifecycle!.setReady();
    await this.#lifecycle!.unfenced;
  }

  /** Gives the leadership of partitions and of the quorum to others. Never rejects. */
  async leave(): Promise<void> {
    const { config, logger } = this.#options;
    const startedMs = performance.now();
    if (config.quorum.controlledShutdownEnable) await this.#lifecycle?.shutDown();
    this.#lifecycle?.close();
    await this.#quorum?.host.resign();
    const ms = Math.round(performance.now() - startedMs);
    logger.info(`gave leadership to others in ${ms} ms`);
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    this.#lifecycle?.close();
    this.links.close();
    await this.#listener.close(limits.closeGraceMs);
  }

  raft(request: RaftRequest, done: (reply: RaftReply) => void): void {
    const quorum = this.#quorum;
    if (quorum !== null) quorum.handle(request, done);
    else void this.#opened.promise.then((opened) => opened.handle(request, done));
  }

  async request(request: QuorumRequest): Promise<QuorumReply> {
    const { host } = this.#quorum ?? (await this.#opened.promise);
    return host.request(request as never);
  }

  clusterId(): string {
    return this.#options.clusterId();
  }

  heard(nodeId: number): void {
    this.links.heard(nodeId);
  }

  /** Its process may be gone: if so, a new connection is refused, and the controller hears of it. */
  lost(nodeId: number): void {
    if (!this.#isClosing) this.links.probe(nodeId);
  }

  onLeaderChanged(leaderId: number, epoch: number): void {
    const { logger } = this.#options;
    if (leaderId === this.nodeId) logger.info({ epoch }, 'this node leads the metadata quorum');
    else if (leaderId !== -1) logger.info({ epoch }, `node ${leaderId} leads the metadata quorum`);
    else logger.warn({ epoch }, 'the metadata quorum has no leader');
  }

  /** Brokers that died with the last controller, or unseen by it, are not to be waited for. */
  onElected(): void {
    for (const broker of this.#quorum!.host.image.brokers.values())
      if (!broker.fenced && broker.id !== this.nodeId) this.links.probe(broker.id);
  }

  /**
   * Metadata was committed. A broker that shuts down is let go when all others know who leads instead of it, and that they
   * say with their heartbeats.
   */
  onDelta({ lastOffset, records }: MetadataDelta): void {
    const host = this.#quorum?.host;
    if (host === undefined || this.#lifecycle === null) return;
    for (const record of records) this.#sayFenced(record);
    for (const broker of host.image.brokers.values())
      if (broker.inControlledShutdown && !broker.fenced && broker.id !== this.nodeId) {
        void host.applied(lastOffset).then(() => this.#lifecycle?.hasten());
        return;
      }
  }

  /** A leader calls nobody once it is known: those who have restarted since it knows by their calls alone. */
  #isThere(nodeId: number): boolean {
    return this.links.isReached(nodeId) || this.#listener.hasCaller(nodeId);
  }

  #addressOf(nodeId: number): PeerAddress | null {
    const { interBrokerListenerName } = this.#options.config;
    const endpoints = this.#quorum?.host.image.broker(nodeId)?.endpoints ?? [];
    const own = endpoints.find(({ name }) => name === interBrokerListenerName) ?? endpoints[0];
    return own ?? null;
  }

  #sayFenced(record: MetadataRecord): void {
    const { logger } = this.#options;
    if (record.type !== 'BrokerRegistrationChangeRecord') return;
    if (record.brokerId === this.nodeId || record.fenced === 0) return;
    if (record.fenced === 1) logger.warn(`broker ${record.brokerId} is fenced: others lead for it`);
    else logger.info(`broker ${record.brokerId} is unfenced`);
  }

  #sayWaiting(host: QuorumHost): void {
    const { config, logger } = this.#options;
    if (host.leaderId !== -1) {
      logger.info('waiting for the metadata of the cluster');
      return;
    }
    const others = config.quorum.voters.filter(({ nodeId }) => nodeId !== this.nodeId);
    const silent = others.filter(({ nodeId }) => !this.links.isReached(nodeId));
    const names = silent.map(({ nodeId, host: at, port }) => `node ${nodeId} at ${at}:${port}`);
    logger.warn(
      names.length === 0
        ? 'waiting for a leader of the metadata quorum'
        : `waiting for the metadata quorum: not reached yet: ${names.join(', ')}`,
    );
  }
}
