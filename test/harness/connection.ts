/**
 * One connection of a test to a broker: frames out, frames in, and the rule that answers come back in the order of
 * their requests, which is checked on every answer.
 *
 * Thread: the test's. A request whose connection breaks before its answer is rejected with a ConnectionLostError:
 * whether the broker carried it out is then unknown.
 */
import assert from 'node:assert/strict';
import { createConnection, type Socket } from 'node:net';
import { ApiKey } from '../../net/protocol/api_key.gen.ts';
import { decodeResponse, encodeRequestFrame } from '../../net/protocol/frame.ts';
import type { ApiName, MessageInputs, MessageTypes } from '../../net/protocol/messages.gen.ts';
import { Reader } from '../../net/protocol/reader.ts';

const defaultTimeoutMs = 30_000;
const connectTimeoutMs = 10_000;

export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

/** The connection broke, or the answer did not come in time: the request may or may not have been carried out. */
export class ConnectionLostError extends Error {}

interface Waiting {
  readonly correlationId: number;
  readonly what: string;
  readonly timer: NodeJS.Timeout;
  readonly resolve: (frame: Uint8Array) => void;
  readonly reject: (error: Error) => void;
}

export class Connection {
  /** Resolves when the connection is closed, from whichever side. Never rejects. */
  readonly closed: Promise<void>;
  readonly #socket: Socket;
  readonly #clientId: string;
  readonly #waiting: Waiting[] = [];
  #nextCorrelationId = 1;
  #chunks: Buffer[] = [];
  #buffered = 0;
  #lostReason: string | null = null;
  /** Frames that no request waits for go here; null: such a frame is an error. */
  #onStrayFrame: ((frame: Uint8Array) => void) | null = null;

  private constructor(socket: Socket, clientId: string) {
    this.#socket = socket;
    this.#clientId = clientId;
    socket.setNoDelay(true);
    socket.on('data', (chunk: Buffer) => this.#received(chunk));
    socket.on('error', (error) => this.#lose(error.message));
    this.closed = new Promise((resolve) => {
      socket.once('close', () => {
        this.#lose('closed by the broker');
        resolve();
      });
    });
  }

  /** Connects within 10 s. Throws a ConnectionLostError when nobody listens there. */
  static connect(endpoint: Endpoint, clientId = 'test'): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const { host, port } = endpoint;
      const socket = createConnection({ host, port });
      const fail = (reason: string): void => {
        socket.destroy();
        reject(new ConnectionLostError(`${host}:${port}: ${reason}`));
      };
      const onError = (error: Error): void => fail(error.message);
      const timer = setTimeout(() => fail('no connection in time'), connectTimeoutMs);
      socket.once('error', onError);
      socket.once('connect', () => {
        clearTimeout(timer);
        socket.off('error', onError);
        resolve(new Connection(socket, clientId));
      });
      socket.once('close', () => clearTimeout(timer));
    });
  }

  get isOpen(): boolean {
    return this.#lostReason === null;
  }

  /** Requests whose answer is still due. */
  get inFlight(): number {
    return this.#waiting.length;
  }

  /** Sends a request and returns its decoded answer. Several may be in flight. */
  async request<N extends ApiName>(
    api: N,
    version: number,
    body: MessageInputs[`${N}Request`],
    timeoutMs: number = defaultTimeoutMs,
  ): Promise<MessageTypes[`${N}Response`]> {
    const correlationId = this.#nextCorrelationId;
    const frame = this.#encode(api, version, body);
    const bytes = await this.#exchange(frame, correlationId, `${api} v${version}`, timeoutMs);
    return decodeResponse<N>(new Reader(bytes), ApiKey[api], version, `${api}Response`).value;
  }

  /** Sends a request that gets no answer (acks=0). */
  send<N extends ApiName>(api: N, version: number, body: MessageInputs[`${N}Request`]): void {
    this.sendRaw(this.#encode(api, version, body));
  }

  /** Sends bytes as they are. */
  sendRaw(bytes: Uint8Array): void {
    this.#socket.write(bytes);
  }

  /**
   * Sends a hand-made frame, with its size and with `correlationId` in it, and returns the answer without its size:
   * for versions and bodies that the codecs refuse to write.
   */
  exchangeRaw(
    frame: Uint8Array,
    correlationId: number,
    timeoutMs: number = defaultTimeoutMs,
  ): Promise<Uint8Array> {
    return this.#exchange(frame, correlationId, 'a raw request', timeoutMs);
  }

  /** From now on frames that answer no request are given to `take`. */
  onStrayFrame(take: (frame: Uint8Array) => void): void {
    this.#onStrayFrame = take;
  }

  /** Bytes that the socket has not handed to the system yet. */
  get unsentBytes(): number {
    return this.#socket.writableLength;
  }

  /** Stops reading, as a client does that has hung itself up. */
  pause(): void {
    this.#socket.pause();
  }

  /** Closes at once; requests in flight are rejected. */
  close(): void {
    this.#lose('closed by the test');
    this.#socket.destroy();
  }

  #encode<N extends ApiName>(
    api: N,
    version: number,
    body: MessageInputs[`${N}Request`],
  ): Uint8Array {
    const correlationId = this.#nextCorrelationId;
    const header = {
      apiKey: ApiKey[api],
      apiVersion: version,
      correlationId,
      clientId: this.#clientId,
    };
    const { bytes, holes } = encodeRequestFrame<N>(header, `${api}Request`, body);
    assert.equal(holes.length, 0, 'requests of tests have their records in memory');
    this.#nextCorrelationId += 1;
    return bytes;
  }

  #exchange(
    frame: Uint8Array,
    correlationId: number,
    what: string,
    timeoutMs: number,
  ): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      if (this.#lostReason !== null) {
        reject(new ConnectionLostError(`${what}: ${this.#lostReason}`));
        return;
      }
      const timer = setTimeout(() => {
        // What comes after a missing answer cannot be told apart any more.
        this.#lose(`no answer to ${what} within ${timeoutMs} ms`);
        this.#socket.destroy();
      }, timeoutMs);
      this.#waiting.push({ correlationId, what, timer, resolve, reject });
      this.#socket.write(frame);
    });
  }

  #received(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#buffered += chunk.length;
    while (this.#buffered >= 4) {
      if ((this.#chunks[0] as Buffer).length < 4) this.#chunks = [Buffer.concat(this.#chunks)];
      const size = (this.#chunks[0] as Buffer).readInt32BE(0);
      if (this.#buffered < 4 + size) return;
      if (this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks)];
      const all = this.#chunks[0] as Buffer;
      const rest = all.subarray(4 + size);
      this.#chunks = rest.length > 0 ? [rest] : [];
      this.#buffered = rest.length;
      this.#dispatch(all.subarray(4, 4 + size));
    }
  }

  #dispatch(frame: Buffer): void {
    const correlationId = frame.readInt32BE(0);
    const waiting = this.#waiting[0];
    if (waiting === undefined || waiting.correlationId !== correlationId) {
      if (this.#onStrayFrame !== null) {
        this.#onStrayFrame(frame);
        return;
      }
      const expected =
        waiting === undefined ? 'none' : `${waiting.correlationId} (${waiting.what})`;
      this.#lose(`answer ${correlationId} came where ${expected} was due`);
      this.#socket.destroy();
      return;
    }
    this.#waiting.shift();
    clearTimeout(waiting.timer);
    waiting.resolve(frame);
  }

  #lose(reason: string): void {
    if (this.#lostReason !== null) return;
    this.#lostReason = reason;
    for (const { timer, what, reject } of this.#waiting.splice(0)) {
      clearTimeout(timer);
      reject(new ConnectionLostError(`${what}: ${reason}`));
    }
  }
}
