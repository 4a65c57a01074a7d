/**
 * Wakes a thread that sleeps in its event loop because another one has put something into a ring for it.
 *
 * Thread: `Doorbell` on the one that is woken, a `Bell` on each one that wakes it. Memory: one shared flag for each
 * doorbell, made with the threads. The flag is up from the first ring until the woken thread begins to look, so that
 * any number of descriptors costs one message: a message takes some 20 µs to arrive, and a few to send.
 *
 * Nothing is lost: who rings has published before it reads the flag, who is woken lowers the flag before it looks. A
 * thread may look into its rings at any other time, too; the message that then comes finds them empty.
 */
import type { MessagePort } from 'node:worker_threads';

/** The flag of one doorbell, to be shared with all that ring it. */
export function createDoorbellFlag(): SharedArrayBuffer {
  return new SharedArrayBuffer(4);
}

export class Doorbell {
  readonly #flag: Int32Array;
  readonly #onRing: () => void;
  /** How often the thread was woken. */
  wakeUps = 0;

  constructor(flag: SharedArrayBuffer, onRing: () => void) {
    this.#flag = new Int32Array(flag);
    this.#onRing = onRing;
  }

  /** Listens to one that rings. The port must carry nothing else. It does not keep the thread alive. */
  listen(port: MessagePort): void {
    port.on('message', () => {
      this.wakeUps += 1;
      Atomics.store(this.#flag, 0, 0);
      this.#onRing();
    });
    port.unref();
  }
}

/** The pushing end of another thread's doorbell. */
export class Bell {
  readonly #flag: Int32Array;
  readonly #port: MessagePort;
  readonly #ring: () => void;
  #isDue: boolean = false;

  constructor(flag: SharedArrayBuffer, port: MessagePort) {
    this.#flag = new Int32Array(flag);
    this.#port = port;
    this.#ring = () => {
      this.#isDue = false;
      this.ring();
    };
  }

  /** Rings now, unless the bell has been rung and the other thread has not begun to look. */
  ring(): void {
    if (Atomics.load(this.#flag, 0) === 1) return;
    if (Atomics.exchange(this.#flag, 0, 1) === 0) this.#port.postMessage(0);
  }

  /** Rings once the current callback has ended, so that all that it publishes is found in one go. */
  ringSoon(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    queueMicrotask(this.#ring);
  }
}
