/**
 * All connections of one shard thread: adopts them, shares one read buffer and the request memory among them,
 * gives each its turn, closes the idle ones, and drains them when the broker stops.
 *
 * Thread: the shard's. Concurrency: none. Work that answers have made possible (more frames, writes, reading
 * on) is never done from within a handler, but at the end of the turn, or when the composition calls `flush`.
 */
import { Socket } from 'node:net';
import type { ReadAhead } from '../../engine/read_ahead.ts';
import { SlabAllocator } from '../../engine/thread/slab.ts';
import { Reader } from '../protocol/reader.ts';
import { Connection, type ConnectionOrigin } from './connection.ts';
import { MemoryBudget } from './memory_budget.ts';
import { receiveLimits } from './receive.ts';
import type { Registry } from './registry.ts';
import type { RequestMemory } from './request_frame.ts';
import type { SendFile } from './send.ts';
import type { ServerLog } from './server_log.ts';

export interface HostLimits {
  /** `socket.request.max.bytes`. */
  readonly frameBytesMax: number;
  /** `queued.max.request.bytes`, or a default of ours where Kafka has none: memory of retained requests. */
  readonly requestMemoryBytesMax: number;
  /** `connections.max.idle.ms`; negative for never. */
  readonly idleMsMax: number;
  /** How long a request may arrive too slowly while others wait for memory; 30 s by default. */
  readonly stallMsMax?: number;
}

export interface HostOptions {
  readonly registry: Registry;
  readonly limits: HostLimits;
  readonly log: ServerLog;
  /** sendfile(2), or null to send file ranges through memory. */
  readonly sendFile: SendFile | null;
  /** For file ranges that are not in the page cache; without it, sending them waits for the device. */
  readonly readAhead?: ReadAhead;
  /** Whether requests that keep memory have to wait, because another thread is behind with those that it got. */
  readonly isCongested?: () => boolean;
  /** Told of each connection that has gone, for the acceptor's count. */
  onConnectionClosed(id: number): void;
}

/** Plain counters, for whoever collects metrics. */
export interface HostCounters {
  connectionsOpened: number;
  connectionsIdleClosed: number;
  bytesReceived: number;
  framesReceived: number;
  framesRefused: number;
}

const stallLimits = {
  /** While others wait for memory, a request must arrive with at least so many bytes a second… */
  bytesPerSecondMin: 1024,
  /** …or its connection is closed after so long. */
  msMax: 30_000,
} as const;

export class ConnectionHost {
  readonly registry: Registry;
  readonly limits: HostLimits;
  readonly log: ServerLog;
  readonly memory: RequestMemory;
  /** Every read of a connection without a frame in progress lands here, and is used up before the next one. */
  readonly sharedBuffer: Buffer = Buffer.allocUnsafeSlow(receiveLimits.sharedBufferBytes);
  /** For the header and body of the request that is being dispatched. */
  readonly reader: Reader = new Reader(this.sharedBuffer);
  readonly counters: HostCounters = {
    connectionsOpened: 0,
    connectionsIdleClosed: 0,
    bytesReceived: 0,
    framesReceived: 0,
    framesRefused: 0,
  };
  /** Grows with each end of turn; limits what a connection does between two of them. */
  turn = 0;
  /** Coarse clock of the idle check. */
  tick = 0;
  readonly #options: HostOptions;
  readonly #connections = new Set<Connection>();
  #scheduled: Connection[] = [];
  readonly #heldBack = new Set<Connection>();
  #turnEnd: NodeJS.Immediate | null = null;
  readonly #tickMs: number;
  readonly #timer: NodeJS.Timeout;
  #stopping: boolean = false;
  #onDrained: (() => void) | null = null;

  constructor(options: HostOptions) {
    this.#options = options;
    this.registry = options.registry;
    this.limits = options.limits;
    this.log = options.log;
    const budget = new MemoryBudget(options.limits.requestMemoryBytesMax);
    budget.onRoom = () => this.#scheduleTurnEnd();
    this.memory = { slabs: new SlabAllocator(), budget };
    const idleMs = options.limits.idleMsMax;
    this.#tickMs = idleMs < 0 ? 5_000 : Math.min(5_000, Math.max(10, Math.floor(idleMs / 8)));
    this.#timer = setInterval(() => this.#onTick(), this.#tickMs);
    this.#timer.unref();
  }

  get connectionsCount(): number {
    return this.#connections.size;
  }

  /**
   * Takes over a connected TCP descriptor that belongs to nobody else (see `Acceptor`). From now on it is closed
   * by this thread only. Null, and a line in the log, if the descriptor is no good any more.
   */
  adopt(fd: number, origin: ConnectionOrigin): Connection | null {
    const { sendFile, readAhead = null } = this.#options;
    return this.#open(origin, (connection) => {
      const socket = new Socket({
        fd,
        allowHalfOpen: true,
        readable: true,
        writable: true,
        onread: {
          buffer: () => connection.nextBuffer(),
          // It is one of the Buffers that the line above gave.
          callback: (length, buffer) => connection.onRead(length, buffer as Buffer),
        },
      });
      return { socket, fd, sendFile, readAhead };
    });
  }

  /**
   * Takes over a socket of this thread, for transports that have no descriptor of their own to read from: a
   * listener in the shard itself, or TLS. It must be paused, with `allowHalfOpen`, and nothing read from it yet.
   */
  adoptSocket(socket: Socket, origin: ConnectionOrigin): Connection | null {
    return this.#open(origin, (connection) => {
      socket.on('data', (chunk: Buffer) => {
        if (!connection.onRead(chunk.length, chunk)) socket.pause();
      });
      socket.resume();
      return { socket, fd: -1, sendFile: null, readAhead: this.#options.readAhead ?? null };
    });
  }

  /**
   * Whether a request that keeps memory may not run now; if so, the connection is pumped in a turn when it may again,
   * and there is one: whoever is behind ends a turn of this thread when it has caught up.
   */
  holdsBack(connection: Connection): boolean {
    if (this.#options.isCongested?.() !== true) return false;
    this.#heldBack.add(connection);
    return true;
  }

  /** Has the connection pumped at the end of this turn. */
  schedule(connection: Connection): void {
    if (connection.scheduled) return;
    connection.scheduled = true;
    this.#scheduled.push(connection);
    this.#scheduleTurnEnd();
  }

  /**
   * Ends the turn here and now: sends what was answered and goes on with what waited. Call it from the event
   * loop's level only (as the last thing of a callback that has answered many requests), never from a handler.
   */
  flush(): void {
    if (this.#turnEnd !== null) clearImmediate(this.#turnEnd);
    this.#turnEnd = null;
    this.turn += 1;
    const { budget } = this.memory;
    if (budget.waitingCount > 0) budget.grantWaiting();
    if (this.#heldBack.size > 0) this.#letGo();
    const scheduled = this.#scheduled;
    this.#scheduled = [];
    for (const connection of scheduled) {
      connection.scheduled = false;
      connection.pump();
    }
  }

  /** Takes no further request, whoever sends it; those that run go on. The first half of `stop`. */
  drain(): void {
    this.#stopping = true;
    for (const connection of this.#connections) connection.drain();
  }

  /**
   * Drains if that has not been done, waits up to `graceMs` for answers to those that run and for their sending, and
   * closes everything. Expire parked requests between `drain` and `stop`, or they use up the time.
   */
  async stop(graceMs: number): Promise<void> {
    if (!this.#stopping) this.drain();
    if (this.#connections.size > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, graceMs);
        this.#onDrained = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    for (const connection of [...this.#connections]) connection.close('the broker stops', true);
    clearInterval(this.#timer);
    if (this.#turnEnd !== null) clearImmediate(this.#turnEnd);
    this.#turnEnd = null;
  }

  /** For connections: this one has gone. */
  onClosed(connection: Connection, reason: string, expected: boolean): void {
    this.#connections.delete(connection);
    this.#heldBack.delete(connection);
    if (expected) this.log.debug({ connection: connection.id, reason }, 'connection closed');
    this.#options.onConnectionClosed(connection.id);
    if (this.#stopping && this.#connections.size === 0) this.#onDrained?.();
  }

  #open(
    origin: ConnectionOrigin,
    open: ConstructorParameters<typeof Connection>[2],
  ): Connection | null {
    try {
      const connection = new Connection(this, origin, open);
      this.#connections.add(connection);
      this.counters.connectionsOpened += 1;
      if (this.#stopping) connection.drain();
      return connection;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      const remote = `${origin.remoteAddress}:${origin.remotePort}`;
      this.log.debug({ listener: origin.listener, remote, reason }, 'connection gone before use');
      this.#options.onConnectionClosed(origin.id);
      return null;
    }
  }

  #letGo(): void {
    if (this.#options.isCongested?.() === true) return;
    const held = [...this.#heldBack];
    this.#heldBack.clear();
    for (const connection of held) this.schedule(connection);
  }

  #scheduleTurnEnd(): void {
    this.#turnEnd ??= setImmediate(() => this.flush());
  }

  #onTick(): void {
    this.tick += 1;
    const { idleMsMax } = this.limits;
    const idleTicks =
      idleMsMax < 0 ? Number.POSITIVE_INFINITY : Math.ceil(idleMsMax / this.#tickMs);
    const stallTicks = Math.ceil((this.limits.stallMsMax ?? stallLimits.msMax) / this.#tickMs);
    const stallBytes = (stallLimits.bytesPerSecondMin * this.#tickMs) / 1_000;
    for (const connection of this.#connections) {
      connection.checkProgress(idleTicks, stallTicks, stallBytes);
    }
    this.memory.slabs.trim(1);
  }
}
