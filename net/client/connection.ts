/**
 * One connection to a broker: versions negotiated by ApiVersions (KIP-35, KIP-511), requests pipelined, answers in the
 * order of their requests. It is never repaired: what breaks is told to whoever waits, and another one is opened.
 *
 * Thread: the client's. Memory: answers of Fetch share their frame's memory, all others are copies.
 *
 * Legal transitions:
 *   connecting --connected--> negotiating --ApiVersions answered--> open
 *   any --error, end, a late answer, an answer to nothing, close--> closed
 */
import type { Socket } from 'node:net';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { ApiKey } from '../protocol/api_key.gen.ts';
import { apiInfo } from '../protocol/apis.ts';
import { decodeResponse, encodeRequestFrame } from '../protocol/frame.ts';
import type { ApiName, MessageInputs, MessageTypes } from '../protocol/messages.gen.ts';
import { ProtocolError, Reader } from '../protocol/reader.ts';
import type { Encoded } from '../protocol/writer.ts';
import {
  bodyOf,
  byteLengthOf,
  type CallOptions,
  type ConnectionOptions,
  type Done,
  type Endpoint,
  type HeldRecords,
  type Pending,
  type RequestBody,
  unsentError,
} from './call.ts';
import { tellRequest } from './diagnostics.ts';
import { brokerError, ClientCode, MillraceError } from './errors.ts';
import { type FrameOwner, FrameReceiver } from './frame_receiver.ts';
import { abortable } from './retry.ts';
import { isTlsListener, openSocket, silentError, strangerError, tlsPortError } from './socket.ts';

/** Requests that the broker has and has not answered; more of them wait here. */
const inFlightMax = 64;
const softwareName = 'millrace-client';
const softwareVersion = '0.1.0';
/** In front of a frame. */
const sizeBytes = 4;
/** Kafka 2.4 and later know it; older ones say so in version 0. */
const firstApiVersions = 3;

export class BrokerConnection implements FrameOwner {
  readonly endpoint: Endpoint;
  /** Resolves when it is closed, with why. Never rejects. */
  readonly closed: Promise<MillraceError>;
  readonly #clientId: string;
  readonly #socket: Socket;
  readonly #receiver: FrameReceiver;
  readonly #reader: Reader = new Reader(new Uint8Array(0));
  readonly #onClosed: (why: MillraceError) => void;
  /** Ranges that the broker serves, by API key. */
  #versions: ReadonlyMap<number, { readonly min: number; readonly max: number }> = new Map();
  /** In the order of the wire; the first `#sent` of them have been sent. */
  readonly #requests: Pending[] = [];
  #sent = 0;
  #nextCorrelationId = 1;
  #timer: NodeJS.Timeout | null = null;
  #timerDueMs = Number.POSITIVE_INFINITY;
  #state: 'negotiating' | 'open' | 'closed' = 'negotiating';
  #why: MillraceError | null = null;

  private constructor(endpoint: Endpoint, clientId: string, socket: Socket) {
    this.endpoint = endpoint;
    this.#clientId = clientId;
    this.#socket = socket;
    this.#receiver = new FrameReceiver(this);
    let settle: (why: MillraceError) => void = () => undefined;
    this.closed = new Promise((resolve) => {
      settle = resolve;
    });
    this.#onClosed = settle;
  }

  /**
   * Connects and negotiates. Throws a MillraceError: BROKER_UNREACHABLE, TIMED_OUT, CONNECTION_LOST, NOT_KAFKA, TLS_PORT,
   * UNSUPPORTED_VERSION.
   */
  static async open(
    endpoint: Endpoint,
    options: ConnectionOptions,
    signal?: AbortSignal,
  ): Promise<BrokerConnection> {
    const { connectTimeoutMs, clientId, tls } = options;
    const begunMs = performance.now();
    let connection: BrokerConnection | null = null;
    const socket = await openSocket({
      ...{ host: endpoint.host, port: endpoint.port, timeoutMs: connectTimeoutMs, tls, signal },
      onBytes: (chunk) => connection?.onBytes(chunk),
    });
    connection = new BrokerConnection(endpoint, clientId, socket);
    connection.#listen();
    try {
      const leftMs = Math.max(1, connectTimeoutMs - (performance.now() - begunMs));
      await abortable(connection.#negotiate(leftMs), signal);
    } catch (error) {
      connection.close();
      const { host, port } = endpoint;
      const wasHungUp = error instanceof MillraceError && error.code === ClientCode.CONNECTION_LOST;
      if (wasHungUp && tls === null && (await abortable(isTlsListener(host, port), signal)))
        throw tlsPortError(`${host}:${port}`, error);
      throw error;
    }
    return connection;
  }

  get isOpen(): boolean {
    return this.#state === 'open';
  }

  /** Requests whose answer is still due. */
  get inFlight(): number {
    return this.#requests.length;
  }

  /** Whether the broker serves `api` in a version that is known here. */
  serves(api: ApiName): boolean {
    return this.#commonVersion(api, 0, Number.POSITIVE_INFINITY) >= 0;
  }

  /** The newest version within the bounds that both sides know. Throws UNSUPPORTED_VERSION when there is none. */
  version(api: ApiName, minVersion = 0, maxVersion: number = Number.POSITIVE_INFINITY): number {
    const version = this.#commonVersion(api, minVersion, maxVersion);
    if (version >= 0) return version;
    const served = this.#versions.get(ApiKey[api]);
    const what =
      served === undefined
        ? 'does not serve it'
        : `serves versions ${served.min} to ${served.max}, which this client cannot use`;
    throw new MillraceError('UNSUPPORTED_VERSION', `${api}: the broker at ${this.#name} ${what}`);
  }

  /** Sends a request and returns its decoded answer, error codes included. Several may be in flight. */
  request<N extends ApiName>(
    api: N,
    body: RequestBody<N>,
    options: CallOptions,
  ): Promise<MessageTypes[`${N}Response`]> {
    const { signal, timeoutMs, minVersion, maxVersion } = options;
    return new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason);
        return;
      }
      const abort = (): void => {
        this.#withdraw(done as Done<ApiName>);
        reject(signal?.reason);
      };
      const done: Done<N> = (error, reply) => {
        signal?.removeEventListener('abort', abort);
        if (error !== null) reject(error);
        else resolve(reply as MessageTypes[`${N}Response`]);
      };
      const version = this.version(api, minVersion, maxVersion);
      signal?.addEventListener('abort', abort, { once: true });
      this.send(api, version, bodyOf(body, version), timeoutMs, done);
    });
  }

  /**
   * The same without a promise, and in a version that `version` has given. `done` may be called before this returns, when
   * the connection is closed. Throws when the body cannot be said in that version.
   */
  send<N extends ApiName>(
    api: N,
    version: number,
    body: MessageInputs[`${N}Request`],
    timeoutMs: number,
    done: Done<N>,
    isAnswered = true,
  ): void {
    if (this.#why !== null) {
      done(unsentError(this.#why), null);
      return;
    }
    const correlationId = this.#nextCorrelationId;
    this.#nextCorrelationId = (correlationId + 1) & 0x7fffffff;
    const header = {
      apiKey: ApiKey[api],
      apiVersion: version,
      correlationId,
      clientId: this.#clientId,
    };
    const frame = encodeRequestFrame<N>(header, `${api}Request`, body);
    const begunMs = performance.now();
    const deadlineMs = begunMs + timeoutMs;
    this.#requests.push({
      ...{ api, version, correlationId, begunMs, deadlineMs, timeoutMs, isAnswered, frame },
      ...{ requestBytes: byteLengthOf(frame), done: done as Done<ApiName> },
    });
    this.#pump();
    this.#watch(deadlineMs, timeoutMs);
  }

  /** Closes at once; requests in flight are told so. */
  close(why: MillraceError = new MillraceError(ClientCode.CLOSED, 'the client was closed')): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    this.#why = why;
    this.#receiver.stop();
    this.#socket.destroy();
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#sent = 0;
    for (const request of this.#requests.splice(0)) {
      const error = request.frame === null ? why : unsentError(why);
      this.#tell(request, 0, error);
      request.done(error, null);
    }
    this.#onClosed(why);
  }

  /** For the socket alone. */
  onBytes(chunk: Uint8Array): void {
    this.#receiver.feed(chunk);
  }

  keepsFrame(): boolean {
    const api = this.#requests[0]?.api;
    return api === 'Fetch' || api === 'ShareFetch';
  }

  onFrame(frame: Uint8Array): void {
    this.#reader.reset(frame);
    const correlationId = this.#reader.view.getInt32(0);
    const first = this.#sent > 0 ? this.#requests[0] : undefined;
    if (first === undefined || first.correlationId !== correlationId) {
      this.#lose('an answer came that nobody asked for', {});
      return;
    }
    let reply: MessageTypes[`${ApiName}Response`];
    try {
      // A broker that does not know the version of ApiVersions says so in version 0 (KIP-511).
      const isRefusal = first.api === 'ApiVersions' && this.#reader.view.getInt16(4) !== 0;
      const version = isRefusal ? 0 : first.version;
      const key = ApiKey[first.api];
      reply = decodeResponse(this.#reader, key, version, `${first.api}Response`).value;
    } catch (error) {
      if (!(error instanceof ProtocolError || error instanceof RangeError)) throw error;
      if (this.#state === 'negotiating') this.close(strangerError(this.#name, frame, error));
      else this.#lose(`an answer that cannot be read: ${error.message}`, { cause: error });
      return;
    }
    this.#requests.shift();
    this.#sent -= 1;
    this.#tell(first, frame.length + sizeBytes, null);
    first.done(null, reply);
    if (this.#sent < this.#requests.length) this.#pump();
  }

  onBadSize(size: number, begin: Uint8Array): void {
    if (this.#state === 'negotiating') this.close(strangerError(this.#name, begin));
    else this.#lose(`an answer of ${size} bytes`, {});
  }

  get #name(): string {
    return `${this.endpoint.host}:${this.endpoint.port}`;
  }

  #commonVersion(api: ApiName, minVersion: number, maxVersion: number): number {
    const served = this.#versions.get(ApiKey[api]);
    const known = apiInfo(ApiKey[api]);
    if (served === undefined || known === null) return -1;
    const version = Math.min(served.max, known.maxVersion, maxVersion);
    return version >= Math.max(served.min, known.minVersion, minVersion) ? version : -1;
  }

  #listen(): void {
    const socket = this.#socket;
    socket.on('error', (error) => {
      if (this.#state === 'negotiating') this.#ended();
      else this.#lose(error.message, { cause: error });
    });
    socket.on('end', () => this.#ended());
    socket.on('close', () => this.#ended());
  }

  #ended(): void {
    if (this.#state === 'negotiating') {
      const what = `${this.#name} closed the connection before it answered`;
      const remedy =
        'A broker that is starting or stopping does so; if it goes on, check that the port is that of a PLAINTEXT listener.';
      this.close(new MillraceError(ClientCode.CONNECTION_LOST, what, { remedy }));
      return;
    }
    const where = this.#receiver.isInside ? ' in the middle of an answer' : '';
    this.#lose(`the broker closed the connection${where}`, {});
  }

  #lose(what: string, options: { cause?: unknown }): void {
    this.close(new MillraceError(ClientCode.CONNECTION_LOST, `${this.#name}: ${what}`, options));
  }

  async #negotiate(timeoutMs: number): Promise<void> {
    const software = {
      clientSoftwareName: softwareName,
      clientSoftwareVersion: softwareVersion,
    };
    let reply = await this.#ask(firstApiVersions, software, timeoutMs);
    if (reply.errorCode === ErrorCode.UNSUPPORTED_VERSION)
      reply = await this.#ask(0, {}, timeoutMs);
    if (reply.errorCode !== ErrorCode.NONE)
      throw brokerError(reply.errorCode, `negotiating versions with ${this.#name}`);
    this.#versions = new Map(
      reply.apiKeys.map(({ apiKey, minVersion: min, maxVersion: max }) => [apiKey, { min, max }]),
    );
    this.#state = 'open';
  }

  #ask(
    version: number,
    body: MessageInputs['ApiVersionsRequest'],
    timeoutMs: number,
  ): Promise<MessageTypes['ApiVersionsResponse']> {
    return new Promise((resolve, reject) => {
      this.send('ApiVersions', version, body, timeoutMs, (error, reply) => {
        if (reply !== null) resolve(reply);
        else reject(error);
      });
    });
  }

  #tell(request: Pending, responseBytes: number, error: MillraceError | null): void {
    tellRequest(request, this.endpoint, this.#clientId, responseBytes, error);
  }

  /** Sends what may be in flight. */
  #pump(): void {
    while (this.#sent < this.#requests.length && this.#sent < inFlightMax) {
      const next = this.#requests[this.#sent] as Pending;
      const frame = next.frame as Encoded;
      next.frame = null;
      if (next.isAnswered) {
        this.#sent += 1;
        this.#write(frame);
      } else {
        this.#requests.splice(this.#sent, 1);
        this.#write(frame, () => {
          this.#tell(next, 0, this.#why);
          next.done(this.#why, null);
        });
      }
    }
  }

  /** Record data is not copied into the frame: it is written where the frame has a hole for it. */
  #write({ bytes, holes }: Encoded, written?: () => void): void {
    if (holes.length === 0) {
      this.#socket.write(bytes, written);
      return;
    }
    this.#socket.cork();
    let at = 0;
    for (const hole of holes) {
      if (hole.at > at) this.#socket.write(bytes.subarray(at, hole.at));
      this.#socket.write((hole.value as HeldRecords).bytes);
      at = hole.at;
    }
    this.#socket.write(bytes.subarray(at), written);
    this.#socket.uncork();
  }

  /** One timer for all requests: due at the earliest deadline that there was when it was set. */
  #watch(deadlineMs: number, timeoutMs: number): void {
    if (deadlineMs >= this.#timerDueMs || this.#state === 'closed') return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timerDueMs = deadlineMs;
    this.#timer = setTimeout(() => this.#expire(), Math.max(1, timeoutMs));
  }

  #expire(): void {
    this.#timer = null;
    this.#timerDueMs = Number.POSITIVE_INFINITY;
    const nowMs = performance.now();
    let nextMs = Number.POSITIVE_INFINITY;
    for (const { deadlineMs, api, timeoutMs } of this.#requests) {
      if (deadlineMs <= nowMs) {
        const span = `within ${Math.round(timeoutMs)} ms`;
        if (this.#state === 'negotiating') this.close(silentError(this.#name, span));
        else {
          const what = `${this.#name}: no answer to ${api} ${span}`;
          this.close(new MillraceError(ClientCode.TIMED_OUT, what));
        }
        return;
      }
      nextMs = Math.min(nextMs, deadlineMs);
    }
    if (nextMs < Number.POSITIVE_INFINITY) this.#watch(nextMs, nextMs - nowMs);
  }

  /** Nobody waits for this request any more; if it has not been sent, it will not be. */
  #withdraw(done: Done<ApiName>): void {
    const index = this.#requests.findIndex((request) => request.done === done);
    if (index >= this.#sent) this.#requests.splice(index, 1);
  }
}
