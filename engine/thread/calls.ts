/**
 * Requests between threads that are not on the data path: typed, one message there and one back, by structured clone.
 *
 * Thread: one `ThreadCalls` on each thread that takes part. Memory: everything is copied. Durability: what the serving
 * function promises. Order: calls from one thread to another are begun in the order in which they were made; replies
 * come as they get ready.
 */
import assert from 'node:assert/strict';
import type { MessagePort } from 'node:worker_threads';

/** Name of each call to what is asked and what comes back; both must survive structured cloning. */
export type CallTypes<T> = {
  [K in keyof T]: { readonly request: unknown; readonly reply: unknown };
};

type Serve<Q, R> = (request: Q) => R | Promise<R>;

interface CallMessage {
  readonly id: number;
  /** Of the call; null in a reply. */
  readonly name: string | null;
  readonly body: unknown;
}

export class ThreadCalls<T extends CallTypes<T>> {
  readonly #self: number;
  /** By number of the thread; none at its own. */
  readonly #ports: readonly (MessagePort | undefined)[];
  readonly #served = new Map<string, Serve<unknown, unknown>>();
  readonly #waiting = new Map<number, (reply: unknown) => void>();
  /** Calls that came before what serves them was there. */
  readonly #early: { readonly port: MessagePort; readonly message: CallMessage }[] = [];
  #nextId = 0;

  /**
   * @param self this thread's number
   * @param ports to the other threads, by their numbers
   */
  constructor(self: number, ports: readonly (MessagePort | undefined)[]) {
    this.#self = self;
    this.#ports = ports;
    for (const port of ports) {
      port?.on('message', (message: CallMessage) => this.#receive(port, message));
      port?.unref();
    }
  }

  /** This thread's number. */
  get self(): number {
    return this.#self;
  }

  /** How many threads take part, this one included. */
  get threadCount(): number {
    return Math.max(this.#ports.length, this.#self + 1);
  }

  /** Says what answers a call. It must not throw or reject: that ends the process. */
  serve<K extends keyof T & string>(name: K, run: Serve<T[K]['request'], T[K]['reply']>): void {
    assert(!this.#served.has(name), `${name} is served twice`);
    this.#served.set(name, run as Serve<unknown, unknown>);
    const early = this.#early.splice(0);
    for (const { port, message } of early) this.#receive(port, message);
  }

  /** Asks one thread; its own one by a plain call. Never rejects. */
  async call<K extends keyof T & string>(
    thread: number,
    name: K,
    request: T[K]['request'],
  ): Promise<T[K]['reply']> {
    if (thread === this.#self) {
      const run = this.#served.get(name);
      assert(run !== undefined, `nothing serves ${name}`);
      return run(request);
    }
    const port = this.#ports[thread];
    assert(port !== undefined, `there is no thread ${thread}`);
    const id = this.#nextId;
    this.#nextId += 1;
    port.postMessage({ id, name, body: request } satisfies CallMessage);
    return new Promise<unknown>((resolve) => this.#waiting.set(id, resolve));
  }

  /** Asks every thread; the replies in the order of their numbers. */
  callAll<K extends keyof T & string>(name: K, request: T[K]['request']): Promise<T[K]['reply'][]> {
    return Promise.all(
      Array.from({ length: this.threadCount }, (_, thread) => this.call(thread, name, request)),
    );
  }

  #receive(port: MessagePort, message: CallMessage): void {
    const { id, name, body } = message;
    if (name === null) {
      const resolve = this.#waiting.get(id);
      this.#waiting.delete(id);
      resolve?.(body);
      return;
    }
    const run = this.#served.get(name);
    if (run === undefined) this.#early.push({ port, message });
    else void this.#answer(port, id, run, body);
  }

  async #answer(
    port: MessagePort,
    id: number,
    run: Serve<unknown, unknown>,
    request: unknown,
  ): Promise<void> {
    const reply = await run(request);
    port.postMessage({ id, name: null, body: reply } satisfies CallMessage);
  }
}
