/**
 * The connections of one client: for each broker one, and one more for each lane that has requests which wait at the
 * broker, as fetches and joins do, since a broker answers a connection's requests one after the other.
 *
 * Thread: the client's.
 */
import { BrokerLink } from './broker_link.ts';
import type { ConnectionOptions, Endpoint } from './call.ts';
import type { BrokerConnection } from './connection.ts';
import { ClientCode, MillraceError } from './errors.ts';
import type { BrokerInfo, MetadataCache } from './metadata.ts';
import { abortable } from './retry.ts';

/** Requests that are answered at once share one connection for each broker. */
export const mainLane = '';

export class BrokerLinks {
  readonly #bootstrap: readonly BrokerLink[];
  readonly #options: ConnectionOptions;
  readonly #metadata: MetadataCache;
  readonly #links = new Map<string, BrokerLink>();
  #reached: boolean = false;

  constructor(bootstrap: readonly Endpoint[], options: ConnectionOptions, metadata: MetadataCache) {
    this.#bootstrap = bootstrap.map((endpoint) => new BrokerLink(endpoint, options));
    this.#options = options;
    this.#metadata = metadata;
  }

  /** Whether any broker has ever been reached. */
  get hasReached(): boolean {
    return this.#reached;
  }

  /** The connection to a broker, if it stands. */
  openTo(brokerId: number, lane: string = mainLane): BrokerConnection | null {
    const broker = this.#metadata.brokers.get(brokerId);
    return broker === undefined ? null : this.#link(broker, lane).open;
  }

  /** The connection to a broker, once it stands; one attempt. Throws a MillraceError. */
  async to(brokerId: number, lane: string, signal?: AbortSignal): Promise<BrokerConnection> {
    const broker = this.#metadata.brokers.get(brokerId);
    if (broker === undefined)
      throw new MillraceError(
        ClientCode.BROKER_UNREACHABLE,
        `broker ${brokerId} is not among the cluster's brokers`,
        { remedy: 'It may be down: wait, or look at `millrace cluster-info`.' },
      );
    const link = this.#link(broker, lane);
    try {
      return await this.#connect(link, signal);
    } catch (error) {
      throw this.#withAdvice(error, broker);
    }
  }

  /** A connection to whichever broker; each is tried once. Throws the error of the one that failed for a reason that stays. */
  async any(signal?: AbortSignal): Promise<BrokerConnection> {
    const known = [...this.#metadata.brokers.values()].map((one) => this.#link(one, mainLane));
    const open = known.filter((link) => link.open !== null);
    if (open.length > 0) {
      const load = (link: BrokerLink): number => link.open?.inFlight ?? 0;
      const least = open.reduce((a, b) => (load(b) < load(a) ? b : a));
      return least.open as BrokerConnection;
    }
    // Those that failed last come last; the rest in any order, so that clients spread over the brokers.
    const closed = [...known, ...this.#bootstrap]
      .map((link) => ({ link, order: link.waitMs + Math.random() }))
      .sort((a, b) => a.order - b.order);
    let reason: unknown = null;
    for (const { link } of closed) {
      try {
        return await this.#connect(link, signal);
      } catch (error) {
        signal?.throwIfAborted();
        const stays = reason instanceof MillraceError && !reason.isRetriable;
        if (!stays) reason = error;
      }
    }
    throw reason;
  }

  close(): void {
    for (const link of [...this.#bootstrap, ...this.#links.values()]) link.close();
    this.#links.clear();
  }

  async #connect(link: BrokerLink, signal?: AbortSignal): Promise<BrokerConnection> {
    const connection = await abortable(link.connect(), signal);
    this.#reached = true;
    return connection;
  }

  #link(broker: BrokerInfo, lane: string): BrokerLink {
    const key = `${broker.id}/${lane}`;
    const known = this.#links.get(key);
    if (known !== undefined) {
      const { host, port } = known.endpoint;
      if (host === broker.host && port === broker.port) return known;
      known.close();
    }
    // The bootstrap connection goes on as the broker's own, where both are the same address.
    const index = lane === mainLane ? this.#bootstrapAt(broker) : -1;
    const link =
      index >= 0 && !this.#isUsed(this.#bootstrap[index] as BrokerLink)
        ? (this.#bootstrap[index] as BrokerLink)
        : new BrokerLink({ host: broker.host, port: broker.port }, this.#options);
    this.#links.set(key, link);
    return link;
  }

  #bootstrapAt({ host, port }: Endpoint): number {
    return this.#bootstrap.findIndex(
      ({ endpoint }) => endpoint.host === host && endpoint.port === port,
    );
  }

  #isUsed(link: BrokerLink): boolean {
    for (const used of this.#links.values()) if (used === link) return true;
    return false;
  }

  /** Where the address is not one that the user gave, the advice is about who gave it. */
  #withAdvice(error: unknown, broker: BrokerInfo): unknown {
    if (!(error instanceof MillraceError) || error.code !== ClientCode.BROKER_UNREACHABLE)
      return error;
    if (this.#bootstrapAt(broker) >= 0) return error;
    return new MillraceError(error.code, `broker ${broker.id}: ${error.message}`, {
      cause: error,
      remedy:
        'The cluster itself names this address: if the broker runs, check its advertised.listeners.',
    });
  }
}

/**
 * `host:port`, several with commas between them or as an array; `[::1]:9092` for IPv6. The port is 9092 where none is given.
 *
 * @throws MillraceError INVALID_ARGUMENT
 */
export function parseBootstrap(bootstrap: string | readonly string[]): Endpoint[] {
  const list = typeof bootstrap === 'string' ? bootstrap.split(',') : bootstrap;
  const endpoints = list.map((entry) => {
    const match = /^(?:\w+:\/\/)?(?:\[([^\]]+)\]|([^:/\s]+))(?::(\d{1,5}))?$/.exec(entry.trim());
    const host = match?.[1] ?? match?.[2];
    const port = Number(match?.[3] ?? 9092);
    if (host === undefined || port < 1 || port > 65_535)
      throw new MillraceError(
        ClientCode.INVALID_ARGUMENT,
        `bootstrap: ${JSON.stringify(entry)} is not host:port`,
        { remedy: "Give host and port, for example 'localhost:9092'." },
      );
    return { host, port };
  });
  if (endpoints.length > 0) return endpoints;
  throw new MillraceError(ClientCode.INVALID_ARGUMENT, 'bootstrap: no broker is given', {
    remedy: "Give host and port, for example 'localhost:9092'.",
  });
}
