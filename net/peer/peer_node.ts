/**
 * Another broker, as this one calls it: requests in, answers or failures out. It keeps a few connections, each with one
 * request at a time, and makes more as requests need them.
 *
 * A failure is news: where nobody listens, the process is gone, and whoever asked hears so at once. When a connection that
 * has served breaks, a new one is tried although nobody has anything to ask. Only then comes the back-off: after a failed
 * attempt the next one waits, twice as long each time, and requests with it.
 *
 * Thread: main.
 */
import { ApiKey } from '../protocol/api_key.gen.ts';
import { decodeResponse, encodeRequestFrame } from '../protocol/frame.ts';
import type { ApiName, MessageInputs, MessageTypes } from '../protocol/messages.gen.ts';
import { ProtocolError, Reader } from '../protocol/reader.ts';
import {
  type PeerAddress,
  PeerConnection,
  type PeerConnectionOwner,
  type PeerFailure,
} from './peer_connection.ts';

export type PeerAnswer<N extends ApiName> =
  | { readonly value: MessageTypes[`${N}Response`]; readonly failure: null }
  | { readonly value: null; readonly failure: PeerFailure };

/** Told of every attempt that ended one way or the other, for log lines and the controller. */
export interface PeerNodeOwner {
  onReached(node: PeerNode): void;
  onFailed(node: PeerNode, failure: PeerFailure, reason: string): void;
}

interface Waiting {
  readonly deadlineMs: number;
  readonly timer: NodeJS.Timeout;
  readonly start: (connection: PeerConnection, remainingMs: number) => void;
  readonly fail: (failure: PeerFailure) => void;
}

const limits = {
  connectionsMax: 32,
  /** Below the time after which the other side would close it. */
  idleMsMax: 60_000,
  backoffMsMin: 10,
  backoffMsMax: 250,
  /** Attempts without anything to ask for. */
  probesMax: 8,
} as const;

let nextCorrelationId = 1;

export class PeerNode implements PeerConnectionOwner {
  readonly nodeId: number;
  readonly #clientId: string;
  readonly #owner: PeerNodeOwner;
  #address: PeerAddress;
  readonly #connections = new Set<PeerConnection>();
  /** Invariant: a subset of `#connections`; the one used last is at the end. */
  #idle: PeerConnection[] = [];
  /** Requests without a connection, the oldest first. */
  #waiting: Waiting[] = [];
  /** Attempts that have failed since the last answer. */
  #failures = 0;
  #connectAtMs = 0;
  #timer: NodeJS.Timeout | null = null;
  #probesLeft = 0;
  #closed: boolean = false;

  constructor(nodeId: number, address: PeerAddress, clientId: string, owner: PeerNodeOwner) {
    this.nodeId = nodeId;
    this.#address = address;
    this.#clientId = clientId;
    this.#owner = owner;
  }

  get address(): PeerAddress {
    return this.#address;
  }

  /** Where the node is from now on. Connections to the old place are left to end by themselves. */
  moveTo(address: PeerAddress): void {
    if (address.host === this.#address.host && address.port === this.#address.port) return;
    this.#address = address;
    this.#failures = 0;
    this.#connectAtMs = 0;
    for (const connection of [...this.#idle]) connection.close();
  }

  /** The node has called us: it is there, and need not be waited for. */
  heard(): void {
    if (this.#failures === 0) return;
    this.#failures = 0;
    this.#connectAtMs = 0;
    this.#startWaiting();
  }

  /** `done` is called once, in a later turn, within `timeoutMs`. Throws when `value` cannot be said in `version`. */
  send<N extends ApiName>(
    api: N,
    version: number,
    value: MessageInputs[`${N}Request`],
    timeoutMs: number,
    done: (answer: PeerAnswer<N>) => void,
  ): void {
    const waitMs = Math.max(0, timeoutMs);
    const correlationId = nextCorrelationId;
    nextCorrelationId = (nextCorrelationId + 1) & 0x7fffffff;
    const header = {
      apiKey: ApiKey[api],
      apiVersion: version,
      correlationId,
      clientId: this.#clientId,
    };
    const { bytes } = encodeRequestFrame<N>(header, `${api}Request`, value);
    const fail = (failure: PeerFailure): void => done({ value: null, failure });
    const start = (connection: PeerConnection, remainingMs: number): void =>
      connection.send(bytes, correlationId, remainingMs, (outcome) => {
        if (outcome.frame === null) {
          fail(outcome.failure);
          return;
        }
        const decoded = decodeAnswer<N>(api, version, outcome.frame);
        if (decoded !== null) {
          done({ value: decoded, failure: null });
          return;
        }
        connection.close();
        fail('closed');
      });
    const timer = setTimeout(() => {
      this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
      fail('timeout');
    }, waitMs);
    const waiting = { deadlineMs: performance.now() + waitMs, timer, start, fail };
    this.#waiting.push(waiting);
    // In a later turn, so that whoever repeats what fails cannot do so for ever in one.
    setImmediate(() => this.#startWaiting());
  }

  /** Tries to connect, unless there is a connection: whether that works, the owner is told. */
  probe(): void {
    if (this.#connections.size > 0) return;
    this.#probesLeft = limits.probesMax;
    this.#startWaiting();
  }

  /** Ends all connections; what runs or waits is told 'closed'. */
  close(): void {
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    for (const connection of [...this.#connections]) connection.close();
    this.#startWaiting();
  }

  onIdle(connection: PeerConnection): void {
    if (connection.answered > 0) {
      this.#failures = 0;
      this.#connectAtMs = 0;
    }
    this.#probesLeft = 0;
    connection.idleSinceMs = performance.now();
    this.#idle.push(connection);
    this.#owner.onReached(this);
    this.#startWaiting();
    const [longest] = this.#idle;
    if (longest !== undefined && connection.idleSinceMs - longest.idleSinceMs > limits.idleMsMax)
      longest.close();
  }

  onClosed(connection: PeerConnection, failure: PeerFailure, reason: string): void {
    this.#connections.delete(connection);
    const index = this.#idle.indexOf(connection);
    if (index >= 0) this.#idle.splice(index, 1);
    if (this.#closed) return;
    if (connection.answered > 0) {
      // It has served: what is there now nobody knows yet.
      this.probe();
      return;
    }
    this.#failures += 1;
    const backoffMs = limits.backoffMsMin * 2 ** Math.min(this.#failures - 1, 10);
    this.#connectAtMs = performance.now() + Math.min(limits.backoffMsMax, backoffMs);
    if (failure === 'refused') this.#probesLeft = 0;
    this.#owner.onFailed(this, failure, reason);
    this.#startWaiting();
  }

  /** Gives waiting requests connections, as far as there may be some now. */
  #startWaiting(): void {
    while (this.#waiting.length > 0) {
      const connection = this.#idle.pop() ?? this.#connect();
      if (connection === null && !this.#closed) return;
      const { timer, start, fail, deadlineMs } = this.#waiting.shift()!;
      clearTimeout(timer);
      if (connection === null) fail('closed');
      else start(connection, deadlineMs - performance.now());
    }
    if (this.#probesLeft === 0 || this.#connections.size > 0) return;
    if (this.#connect() !== null) this.#probesLeft -= 1;
  }

  /** A new connection, or null when there must be none now; then whoever waits is seen to later. */
  #connect(): PeerConnection | null {
    if (this.#closed || this.#connections.size >= limits.connectionsMax) return null;
    const waitMs = this.#connectAtMs - performance.now();
    if (waitMs > 0) {
      this.#timer ??= setTimeout(() => {
        this.#timer = null;
        this.#startWaiting();
      }, waitMs);
      return null;
    }
    const connection = new PeerConnection(this.#address, this);
    this.#connections.add(connection);
    return connection;
  }
}

/** Null for bytes that are no answer to such a request. */
function decodeAnswer<N extends ApiName>(
  api: N,
  version: number,
  frame: Uint8Array,
): MessageTypes[`${N}Response`] | null {
  try {
    return decodeResponse<N>(new Reader(frame), ApiKey[api], version, `${api}Response`).value;
  } catch (error) {
    if (error instanceof ProtocolError) return null;
    throw error;
  }
}
