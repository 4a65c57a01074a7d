/**
 * One outgoing connection to another broker, for one request at a time: what waits at the other side, as a fetch does,
 * must not hold up anything else, so that whoever has more to say takes another connection.
 *
 * Thread: main. Memory: each answer gets memory of its own, which is the receiver's.
 *
 * Legal transitions:
 *   connecting --connected--> busy, or idle without a request
 *   idle --request--> busy --answer--> idle
 *   any --error, end, time-out of a request, answer to nothing, close--> closed
 */
import assert from 'node:assert/strict';
import { createConnection, type Socket } from 'node:net';

/** 'refused': nobody listens there; 'closed': the connection could not be made, or broke; 'timeout': silence. */
export type PeerFailure = 'refused' | 'closed' | 'timeout';

/** What a request comes to: the answer's frame without its size, or why there is none. */
export type PeerOutcome =
  | { readonly frame: Uint8Array; readonly failure: null }
  | { readonly frame: null; readonly failure: PeerFailure; readonly reason: string };

export interface PeerAddress {
  readonly host: string;
  readonly port: number;
}

export interface PeerConnectionOwner {
  /** Connected, or answered: the connection has no request and may be given one. */
  onIdle(connection: PeerConnection): void;
  /** It is gone, and its request, if any, has been told so. */
  onClosed(connection: PeerConnection, failure: PeerFailure, reason: string): void;
}

interface Running {
  readonly bytes: Uint8Array;
  readonly correlationId: number;
  readonly done: (outcome: PeerOutcome) => void;
  readonly timer: NodeJS.Timeout;
}

/** Answers above this are no answers. */
const frameBytesMax = 1024 * 1024 * 1024;

export class PeerConnection {
  readonly #owner: PeerConnectionOwner;
  readonly #socket: Socket;
  #state: 'connecting' | 'open' | 'closed' = 'connecting';
  #running: Running | null = null;
  #chunks: Buffer[] = [];
  #bytes = 0;
  /** Requests answered so far. */
  answered = 0;
  /** When the last one was, for whoever closes what is not used. */
  idleSinceMs = 0;

  constructor(address: PeerAddress, owner: PeerConnectionOwner) {
    this.#owner = owner;
    const socket = createConnection({ ...address, noDelay: true, keepAlive: true });
    this.#socket = socket;
    socket.on('connect', () => this.#onConnect());
    socket.on('data', (chunk: Buffer) => this.#onData(chunk));
    socket.on('error', (error: NodeJS.ErrnoException) => {
      const refused = this.#state === 'connecting' && error.code === 'ECONNREFUSED';
      this.#close(refused ? 'refused' : 'closed', error.message);
    });
    socket.on('close', () => this.#close('closed', 'the connection was closed'));
  }

  /**
   * Sends a request frame; may be called before the connection stands. `done` is called once, in a later turn, within
   * `timeoutMs` of this call.
   */
  send(
    bytes: Uint8Array,
    correlationId: number,
    timeoutMs: number,
    done: (outcome: PeerOutcome) => void,
  ): void {
    assert(this.#running === null && this.#state !== 'closed', 'a connection that is not free');
    const waitMs = Math.max(0, Math.round(timeoutMs));
    const timer = setTimeout(() => this.#close('timeout', `no answer within ${waitMs} ms`), waitMs);
    this.#running = { bytes, correlationId, done, timer };
    if (this.#state === 'open') this.#socket.write(bytes);
  }

  /** Ends it at once. A running request is told 'closed'. */
  close(): void {
    this.#close('closed', 'this side has closed the connection');
  }

  #onConnect(): void {
    if (this.#state !== 'connecting') return;
    this.#state = 'open';
    if (this.#running === null) this.#owner.onIdle(this);
    else this.#socket.write(this.#running.bytes);
  }

  #onData(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    if (this.#bytes < 4) return;
    // The size may be cut, too.
    if (this.#chunks[0]!.length < 4) this.#chunks = [Buffer.concat(this.#chunks)];
    const size = this.#chunks[0]!.readInt32BE(0);
    if (size < 4 || size > frameBytesMax) {
      this.#close('closed', `an answer of ${size} bytes`);
      return;
    }
    if (this.#bytes < 4 + size) return;
    const whole = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks);
    this.#chunks = [];
    this.#bytes = 0;
    this.#onFrame(whole.subarray(4));
  }

  /** Bytes behind the answer would be one that nobody asked for. */
  #onFrame(frame: Buffer): void {
    const running = this.#running;
    const expected = running?.correlationId;
    if (running === null || frame.readInt32BE(0) !== expected) {
      this.#close('closed', 'an answer that nobody asked for');
      return;
    }
    this.#finish(running);
    this.answered += 1;
    running.done({ frame, failure: null });
    if (this.#state !== 'closed') this.#owner.onIdle(this);
  }

  #close(failure: PeerFailure, reason: string): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    this.#socket.destroy();
    this.#chunks = [];
    const running = this.#running;
    if (running !== null) {
      this.#finish(running);
      running.done({ frame: null, failure, reason });
    }
    this.#owner.onClosed(this, failure, reason);
  }

  #finish(running: Running): void {
    clearTimeout(running.timer);
    this.#running = null;
  }
}
