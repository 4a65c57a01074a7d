/**
 * A place where a broker listens, and the connection to it: opened when somebody wants it, once for all that do, and after
 * a failure not before a back-off has passed.
 *
 * Thread: the client's.
 */
import type { ConnectionOptions, Endpoint } from './call.ts';
import { BrokerConnection } from './connection.ts';
import { ClientCode, MillraceError } from './errors.ts';
import { Backoff, sleep } from './retry.ts';

export class BrokerLink {
  readonly endpoint: Endpoint;
  readonly #options: ConnectionOptions;
  readonly #backoff: Backoff = new Backoff();
  readonly #closing: AbortController = new AbortController();
  #connection: BrokerConnection | null = null;
  #opening: Promise<BrokerConnection> | null = null;
  #notBeforeMs = 0;

  constructor(endpoint: Endpoint, options: ConnectionOptions) {
    this.endpoint = endpoint;
    this.#options = options;
  }

  /** The connection, if it stands. */
  get open(): BrokerConnection | null {
    return this.#connection?.isOpen === true ? this.#connection : null;
  }

  /** Attempts that have failed since the last one that did not. */
  get failures(): number {
    return this.#backoff.failures;
  }

  /** How long the next attempt would wait, in milliseconds. */
  get waitMs(): number {
    return Math.max(0, this.#notBeforeMs - performance.now());
  }

  /** The connection, once it stands. Throws what `BrokerConnection.open` throws. */
  connect(): Promise<BrokerConnection> {
    const { open } = this;
    if (open !== null) return Promise.resolve(open);
    this.#opening ??= this.#open().finally(() => {
      this.#opening = null;
    });
    return this.#opening;
  }

  close(): void {
    this.#closing.abort(new MillraceError(ClientCode.CLOSED, 'the client was closed'));
    this.#connection?.close();
  }

  async #open(): Promise<BrokerConnection> {
    const { signal } = this.#closing;
    signal.throwIfAborted();
    const { waitMs } = this;
    if (waitMs > 0) await sleep(waitMs, signal);
    try {
      const connection = await BrokerConnection.open(this.endpoint, this.#options, signal);
      this.#connection = connection;
      this.#backoff.reset();
      // One that breaks at once, again and again, must not be opened in a loop.
      this.#notBeforeMs = performance.now() + this.#backoff.next() / 2;
      this.#backoff.reset();
      return connection;
    } catch (error) {
      this.#notBeforeMs = performance.now() + this.#backoff.next();
      throw error;
    }
  }
}
