/**
 * A connection to another broker, on its listener for brokers: requests out, whole responses in, in order.
 *
 * Thread: the replication thread. Concurrency: callbacks come from the event loop, never from within a call; none comes
 * after `close`. Memory: see `response_receiver.ts`.
 */
import { Socket } from 'node:net';
import type { SlabAllocator } from '../../engine/thread/slab.ts';
import type { ResponseFrame } from './response_frame.ts';
import { ResponseReceiver } from './response_receiver.ts';

/** Why there is no connection any more. Refused: nobody listens there, so the process is gone. */
export type ConnectionEnd = 'refused' | 'broken';

export interface LeaderConnectionOptions {
  readonly host: string;
  readonly port: number;
  readonly slabs: SlabAllocator;
  readonly shared: Buffer;
  readonly frameBytesMax: number;
  readonly onOpen: () => void;
  /** The frame is the callee's to release. */
  readonly onResponse: (frame: ResponseFrame) => void;
  /** Once at most. */
  readonly onEnd: (end: ConnectionEnd, reason: string) => void;
}

export class LeaderConnection {
  readonly #options: LeaderConnectionOptions;
  readonly #receiver: ResponseReceiver;
  readonly #socket: Socket;
  #isOpen: boolean = false;
  #isOver: boolean = false;

  constructor(options: LeaderConnectionOptions) {
    this.#options = options;
    const { host, port, slabs, shared, frameBytesMax, onResponse } = options;
    const receiver = new ResponseReceiver({ slabs, shared, frameBytesMax, onResponse });
    this.#receiver = receiver;
    this.#socket = new Socket({
      onread: {
        buffer: () => receiver.nextBuffer(),
        // It is one of the Buffers that the line above gave.
        callback: (length, buffer) => this.#onRead(length, buffer as Buffer),
      },
    });
    this.#socket.on('connect', () => this.#onConnect());
    this.#socket.on('error', (error: NodeJS.ErrnoException) =>
      this.#end(error.code === 'ECONNREFUSED' ? 'refused' : 'broken', error.message),
    );
    this.#socket.on('close', () => this.#end('broken', 'closed by the other broker'));
    this.#socket.setNoDelay(true);
    this.#socket.setKeepAlive(true);
    this.#socket.connect({ host, port });
  }

  /** Requests may be sent. */
  get isOpen(): boolean {
    return this.#isOpen && !this.#isOver;
  }

  /** Sends a whole frame, which must not change any more. */
  send(frame: Uint8Array): void {
    this.#socket.write(frame);
  }

  /** Ends it from this side; nothing is called any more. */
  close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#socket.destroy();
    this.#receiver.dispose();
  }

  #onConnect(): void {
    if (this.#isOver) return;
    this.#isOpen = true;
    this.#options.onOpen();
  }

  #onRead(length: number, buffer: Buffer): boolean {
    if (this.#isOver) return false;
    const refusal = this.#receiver.received(length, buffer);
    if (refusal !== null) this.#end('broken', refusal);
    return !this.#isOver;
  }

  #end(end: ConnectionEnd, reason: string): void {
    if (this.#isOver) return;
    this.close();
    this.#options.onEnd(end, reason);
  }
}
