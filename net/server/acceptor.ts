/**
 * A listening socket: accepts, counts, and hands each connection to the thread that will serve it.
 *
 * Thread: main. A connection is accepted paused, its descriptor duplicated, and the original let go, so that the
 * other thread owns a descriptor of its own. (Not paused, this thread would swallow the first bytes; `end` in
 * place of `destroy` would shut the connection down, since both descriptors are the same socket.) Where there is
 * no dup(2), the acceptor runs in the thread that serves and hands over the sockets themselves.
 */
import { createServer, type Server, type Socket } from 'node:net';
import type { ConnectionOrigin } from './connection.ts';
import type { ConnectionCounts } from './connection_counts.ts';
import { type ServerLog, strangersIntervalMs } from './server_log.ts';

/** Where connections go. `closed(id)` must be called for each one once it is gone. */
export type Delivery =
  /** A descriptor for another thread; whoever gets it must wrap it (`ConnectionHost.adopt`) or close it. */
  | {
      type: 'descriptor';
      dup(fd: number): number;
      deliver(fd: number, origin: ConnectionOrigin): void;
    }
  /** The paused socket, for this thread (`ConnectionHost.adoptSocket`). */
  | { type: 'socket'; deliver(socket: Socket, origin: ConnectionOrigin): void };

export interface AcceptorOptions {
  /** The listener's name, such as PLAINTEXT. */
  readonly listener: string;
  readonly host: string;
  /** 0 lets the kernel choose. */
  readonly port: number;
  /** `socket.listen.backlog.size`; Node's 511 if left out. */
  readonly backlog?: number;
  /** Of the whole broker: all its acceptors have the same. */
  readonly counts: ConnectionCounts;
  readonly log: ServerLog;
  readonly delivery: Delivery;
  /** Several threads listen on one port (SO_REUSEPORT); with `delivery` by socket. */
  readonly reusePort?: boolean;
}

/** Ids of connections are unique in the process, whatever listener they came by. */
let nextConnectionId = 1;

export class Acceptor {
  readonly #options: AcceptorOptions;
  readonly #server: Server;
  #port = 0;
  refusedTotal = 0;

  private constructor(options: AcceptorOptions) {
    this.#options = options;
    this.#server = createServer(
      { pauseOnConnect: true, allowHalfOpen: true, noDelay: true, keepAlive: true },
      (socket) => this.#onConnection(socket),
    );
  }

  /** Binds and listens. Rejects with Node's error (EADDRINUSE, EACCES, EADDRNOTAVAIL, …) if that fails. */
  static async listen(options: AcceptorOptions): Promise<Acceptor> {
    const acceptor = new Acceptor(options);
    await acceptor.#listen();
    return acceptor;
  }

  /** The port that it listens on. */
  get port(): number {
    return this.#port;
  }

  /** Of all acceptors. */
  get openCount(): number {
    return this.#options.counts.open;
  }

  /** A connection that was delivered has gone. */
  closed(id: number): void {
    this.#options.counts.remove(id);
  }

  /** Stops listening. Connections that were delivered are none of its business. */
  async close(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
    });
  }

  async #listen(): Promise<void> {
    const { host, port, backlog, reusePort } = this.#options;
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen({ host, port, backlog, reusePort: reusePort === true }, () => {
        this.#server.removeListener('error', reject);
        resolve();
      });
    });
    const address = this.#server.address();
    if (address !== null && typeof address === 'object') this.#port = address.port;
    // Out of descriptors, most likely: the listener stays, and clients try again.
    this.#server.on('error', (error) =>
      this.#warn('accept', { error: error.message }, 'a connection could not be accepted'),
    );
    this.#server.on('drop', () => this.#warn('drop', {}, 'a connection was dropped'));
  }

  #onConnection(socket: Socket): void {
    const address = socket.remoteAddress;
    // Gone before it was looked at.
    if (address === undefined) {
      socket.destroy();
      return;
    }
    const origin: ConnectionOrigin = {
      id: nextConnectionId,
      listener: this.#options.listener,
      remoteAddress: address,
      remotePort: socket.remotePort ?? 0,
    };
    nextConnectionId += 1;
    const { counts, delivery } = this.#options;
    const refusal = counts.refusal(address);
    if (refusal !== null) {
      this.#refuse(socket, address, refusal);
      return;
    }
    counts.add(origin.id, address);
    if (delivery.type === 'socket') {
      delivery.deliver(socket, origin);
      return;
    }
    const fd = delivery.dup(descriptorOf(socket));
    socket.destroy();
    if (fd >= 0) {
      delivery.deliver(fd, origin);
      return;
    }
    this.closed(origin.id);
    this.#warn('dup', { errno: -fd }, 'a connection was closed: its descriptor has no duplicate');
  }

  #refuse(socket: Socket, address: string, refusal: string): void {
    this.refusedTotal += 1;
    const { listener, counts } = this.#options;
    const fields = {
      listener,
      remote: `${address}:${socket.remotePort}`,
      open: counts.open,
      openFromAddress: counts.openFrom(address),
    };
    socket.destroy();
    this.#warn('refused', fields, `connection refused: ${refusal}`);
  }

  #warn(kind: string, fields: object, message: string): void {
    this.#options.log.logLimited(kind, strangersIntervalMs, 'warn', fields, message);
  }
}

/** Node keeps the descriptor on the handle, which has no public name; -1 when there is none. */
function descriptorOf(socket: Socket): number {
  const handle = (socket as Socket & { _handle?: { fd?: number } | null })._handle;
  return handle?.fd ?? -1;
}
