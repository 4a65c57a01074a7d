/**
 * One connection to a broker. Answers come in the order of the requests, so a queue of callbacks is all
 * the bookkeeping; correlation ids are checked, since a mix-up would falsify every latency behind it.
 */
import { connect, type Socket } from 'node:net';
import { FrameSplitter } from './frames.ts';
import { CORRELATION_AT } from './wire.ts';

/** Called with the body behind the response header; the bytes are lent until it returns. */
export type OnAnswer = (body: Buffer) => void;

export class WireClient {
  readonly #socket: Socket;
  readonly #waiting: OnAnswer[] = [];
  /** Answers taken from the front of `#waiting` since it was last shortened. */
  #answered = 0;
  #correlation = 0;
  #nextCorrelation = 0;
  #failure: Error | null = null;
  #onFailure: ((error: Error) => void) | null = null;

  private constructor(socket: Socket) {
    this.#socket = socket;
    const splitter = new FrameSplitter((frame) => this.#answer(frame));
    socket.setNoDelay(true);
    socket.on('data', (chunk: Buffer) => {
      try {
        splitter.push(chunk);
      } catch (error) {
        this.#fail(error instanceof Error ? error : new Error(String(error)));
      }
    });
    socket.on('error', (error) => this.#fail(error));
    socket.on('close', () => this.#fail(new Error('the broker closed the connection')));
  }

  /** Resolves once connected to 127.0.0.1; rejects with the socket's error or after `timeoutMs`. */
  static connect(port: number, timeoutMs = 5_000): Promise<WireClient> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: '127.0.0.1', port });
      const timer = setTimeout(() => {
        socket.destroy();
        reject(new Error(`no connection to port ${port} in ${timeoutMs} ms`));
      }, timeoutMs);
      const onError = (error: Error): void => {
        clearTimeout(timer);
        reject(error);
      };
      socket.once('error', onError);
      socket.once('connect', () => {
        clearTimeout(timer);
        socket.removeListener('error', onError);
        resolve(new WireClient(socket));
      });
    });
  }

  get pending(): number {
    return this.#waiting.length - this.#answered;
  }

  /**
   * Sends a frame made with `request(…).frame()`, whose correlation id is overwritten. The frame may be
   * sent again only after its answer. `onAnswer` is called at most once, never after a failure.
   */
  send(frame: Buffer, onAnswer: OnAnswer): void {
    if (this.#failure !== null) return;
    frame.writeInt32BE(this.#nextCorrelation, CORRELATION_AT);
    this.#nextCorrelation = (this.#nextCorrelation + 1) | 0;
    this.#waiting.push(onAnswer);
    this.#socket.write(frame);
  }

  /** Groups the writes of one turn into one system call. */
  cork(): void {
    this.#socket.cork();
  }

  uncork(): void {
    this.#socket.uncork();
  }

  /** `send` as a promise, with a copy of the answer; rejects when the connection fails or time is up. */
  call(frame: Buffer, timeoutMs = 10_000): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(new Error(`no answer in ${timeoutMs} ms`));
        this.close();
      }, timeoutMs);
      this.onFailure((error) => {
        clearTimeout(timer);
        reject(error);
      });
      this.send(frame, (body) => {
        clearTimeout(timer);
        this.#onFailure = null;
        resolve(Buffer.from(body));
      });
    });
  }

  /** One listener at a time; called at once when the connection has failed already. */
  onFailure(listener: (error: Error) => void): void {
    this.#onFailure = listener;
    if (this.#failure !== null) listener(this.#failure);
  }

  close(): void {
    this.#failure ??= new Error('closed by this side');
    this.#onFailure = null;
    this.#socket.destroy();
  }

  #answer(frame: Buffer): void {
    const correlation = frame.readInt32BE(0);
    if (correlation !== this.#correlation)
      throw new Error(`answer ${correlation} came where ${this.#correlation} was due`);
    this.#correlation = (this.#correlation + 1) | 0;
    const onAnswer = this.#waiting[this.#answered];
    if (onAnswer === undefined) throw new Error('an answer came that nobody waits for');
    this.#answered += 1;
    if (this.#answered >= 1_024) {
      this.#waiting.splice(0, this.#answered);
      this.#answered = 0;
    }
    onAnswer(frame.subarray(4));
  }

  #fail(error: Error): void {
    if (this.#failure !== null) return;
    this.#failure = error;
    this.#socket.destroy();
    const listener = this.#onFailure;
    this.#onFailure = null;
    listener?.(error);
  }
}
