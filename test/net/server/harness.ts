/** A connection host with a listener and clients in one process, for the tests of this folder. */

import { createRequire } from 'node:module';
import { createConnection, type Socket } from 'node:net';
import type { ReadAhead } from '../../../engine/read_ahead.ts';
import { Acceptor } from '../../../net/server/acceptor.ts';
import { ConnectionCounts } from '../../../net/server/connection_counts.ts';
import { ConnectionHost, type HostLimits } from '../../../net/server/connection_host.ts';
import { Registry } from '../../../net/server/registry.ts';
import type { RequestContext } from '../../../net/server/request_context.ts';
import type { SendFile } from '../../../net/server/send.ts';
import type { ServerLog } from '../../../net/server/server_log.ts';

/** Two APIs for tests: key 0 overlaps and retains its frames, key 3 does neither. */
export const overlapping = 0;
export const exclusive = 3;

interface LogLine {
  level: string;
  fields: Record<string, unknown>;
  message: string;
}

export class TestLog implements ServerLog {
  readonly lines: LogLine[] = [];
  readonly #limited = new Set<string>();

  debug(fields: object, message: string): void {
    this.#add('debug', fields, message);
  }
  error(fields: object, message: string): void {
    this.#add('error', fields, message);
  }
  logLimited(
    key: string,
    _intervalMs: number,
    level: string,
    fields: object,
    message: string,
  ): void {
    if (this.#limited.has(key)) return;
    this.#limited.add(key);
    this.#add(level, fields, message);
  }

  /** Lines of a level, message and fields as one text. */
  texts(level: string): string[] {
    return this.lines
      .filter((line) => line.level === level)
      .map((line) => `${line.message} ${JSON.stringify(line.fields)}`);
  }

  #add(level: string, fields: object, message: string): void {
    this.lines.push({ level, fields: { ...fields }, message });
  }
}

export interface Harness {
  readonly host: ConnectionHost;
  readonly acceptor: Acceptor;
  readonly log: TestLog;
  connect(): Promise<TestClient>;
  stop(): Promise<void>;
}

export interface HarnessOptions {
  readonly limits?: Partial<HostLimits>;
  readonly connectionsMax?: number;
  readonly connectionsPerIpMax?: number;
  readonly sendFile?: SendFile | null;
  readonly readAhead?: ReadAhead;
  /** Hand over sockets, as where there is no dup. */
  readonly bySocket?: boolean;
  onOverlapping?(ctx: RequestContext): void;
  onExclusive?(ctx: RequestContext): void;
}

interface Libc {
  dup(fd: number): number;
  sendfile: SendFile;
}

export const libc: Libc = loadLibc();

export async function startHarness(options: HarnessOptions = {}): Promise<Harness> {
  const registry = new Registry();
  const echo = (ctx: RequestContext): void => ctx.respondRaw(answer(ctx.correlationId));
  registry.register({
    apiKey: overlapping,
    minVersion: 3,
    maxVersion: 8,
    overlaps: true,
    retainsFrame: true,
    handle: options.onOverlapping ?? echo,
  });
  registry.register({
    apiKey: exclusive,
    minVersion: 0,
    maxVersion: 8,
    handle: options.onExclusive ?? echo,
  });
  const log = new TestLog();
  let acceptor: Acceptor | null = null;
  const host = new ConnectionHost({
    registry,
    log,
    limits: {
      frameBytesMax: 100 * 1024 * 1024,
      requestMemoryBytesMax: 64 * 1024 * 1024,
      idleMsMax: 600_000,
      ...options.limits,
    },
    sendFile: options.sendFile === undefined ? libc.sendfile : options.sendFile,
    ...(options.readAhead === undefined ? {} : { readAhead: options.readAhead }),
    onConnectionClosed: (id) => acceptor?.closed(id),
  });
  acceptor = await Acceptor.listen({
    listener: 'PLAINTEXT',
    host: '127.0.0.1',
    port: 0,
    log,
    counts: new ConnectionCounts({
      connectionsMax: options.connectionsMax ?? 10_000,
      connectionsPerIpMax: options.connectionsPerIpMax ?? 10_000,
    }),
    delivery:
      options.bySocket === true
        ? { type: 'socket', deliver: (socket, origin) => void host.adoptSocket(socket, origin) }
        : {
            type: 'descriptor',
            dup: libc.dup,
            deliver: (fd, origin) => void host.adopt(fd, origin),
          },
  });
  const clients: TestClient[] = [];
  const listening = acceptor;
  return {
    host,
    acceptor,
    log,
    connect: async () => {
      const client = await connectClient(listening.port);
      clients.push(client);
      return client;
    },
    stop: async () => {
      for (const client of clients) client.socket.destroy();
      await host.stop(1_000);
      await listening.close();
    },
  };
}

/** A client that keeps what it gets, cut into frames. */
export class TestClient {
  readonly socket: Socket;
  /** Whole frames received, without their sizes. */
  readonly frames: Buffer[] = [];
  ended: boolean = false;
  closed: boolean = false;
  #chunks: Buffer[] = [];
  #chunksBytes = 0;
  #waiting: (() => void)[] = [];

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk: Buffer) => {
      this.#chunks.push(chunk);
      this.#chunksBytes += chunk.length;
      this.#cut();
      this.#wakeAll();
    });
    socket.on('end', () => {
      this.ended = true;
      this.#wakeAll();
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      this.closed = true;
      this.#wakeAll();
    });
  }

  /** Correlation ids of all whole frames received. */
  correlationIds(): number[] {
    return this.frames.map((frame) => frame.readInt32BE(0));
  }

  async until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      if (this.closed) throw new Error('the connection was closed');
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
      });
    }
  }

  async untilFrames(count: number): Promise<number[]> {
    await this.until(() => this.frames.length >= count);
    return this.correlationIds();
  }

  async untilClosed(): Promise<void> {
    while (!this.closed && !this.ended) {
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
      });
    }
  }

  #cut(): void {
    for (;;) {
      const first = this.#chunks[0];
      if (first === undefined || this.#chunksBytes < 4) return;
      const head = first.length >= 4 ? first : Buffer.concat(this.#chunks);
      const end = 4 + head.readInt32BE(0);
      if (this.#chunksBytes < end) return;
      const all = this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks);
      this.frames.push(all.subarray(4, end));
      this.#chunks = all.length > end ? [all.subarray(end)] : [];
      this.#chunksBytes = all.length - end;
    }
  }

  #wakeAll(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }
}

export async function connectClient(port: number, allowHalfOpen = false): Promise<TestClient> {
  const socket = createConnection({ port, host: '127.0.0.1', allowHalfOpen, noDelay: true });
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve);
    socket.once('error', reject);
  });
  return new TestClient(socket);
}

/** A request frame: header version 1 with a null client id, and a body of `bodyBytes` bytes of a pattern. */
export function request(apiKey: number, correlationId: number, bodyBytes = 0): Buffer {
  const frame = Buffer.alloc(4 + 10 + bodyBytes);
  frame.writeInt32BE(10 + bodyBytes, 0);
  frame.writeInt16BE(apiKey, 4);
  frame.writeInt16BE(3, 6);
  frame.writeInt32BE(correlationId, 8);
  frame.writeInt16BE(-1, 12);
  fillPattern(frame.subarray(14), correlationId);
  return frame;
}

/** Bytes that depend on place and seed, so that a frame put together wrongly is noticed. */
export function fillPattern(target: Uint8Array, seed: number): void {
  for (let at = 0; at < target.length; at += 1)
    target[at] = (at * 31 + (at >> 8) * 7 + seed) & 0xff;
}

export function hasPattern(bytes: Uint8Array, seed: number): boolean {
  const wanted = new Uint8Array(bytes.length);
  fillPattern(wanted, seed);
  return Buffer.compare(bytes, wanted) === 0;
}

/** An answer of a correlation id and `bodyBytes` zeros. */
export function answer(correlationId: number, bodyBytes = 0): Buffer {
  const frame = Buffer.alloc(8 + bodyBytes);
  frame.writeInt32BE(4 + bodyBytes, 0);
  frame.writeInt32BE(correlationId, 4);
  return frame;
}

/** Lets the event loop run until the condition holds; the test runner's timeout ends a wait for nothing. */
export async function eventually(condition: () => boolean): Promise<void> {
  while (!condition()) await sleep(1);
}

export async function sleep(ms: number): Promise<void> {
  await new Promise<void>((resolve) => {
    setTimeout(resolve, ms);
  });
}

interface Koffi {
  load(path: string): { func(prototype: string): (...args: unknown[]) => number };
  errno(): number;
}

function loadLibc(): Libc {
  const koffi = createRequire(import.meta.url)('koffi') as Koffi;
  const library = koffi.load('libc.so.6');
  const dup = library.func('int dup(int fd)');
  const sendfile = library.func('int64_t sendfile64(int out, int in, void *offset, size_t count)');
  const offset = new BigInt64Array(1);
  const errno = (result: number): number => (result < 0 ? -koffi.errno() : result);
  return {
    dup: (fd) => errno(dup(fd)),
    sendfile: (out, input, position, count) => {
      offset[0] = BigInt(position);
      return errno(sendfile(out, input, offset, count));
    },
  };
}
