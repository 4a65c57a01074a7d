/**
 * Makes slabs of one thread known to another one, so that descriptors can name memory as (slab id, offset, length).
 *
 * Thread: `SlabAnnouncer` on the thread that owns the slabs, `SlabViews` on the one that looks into them. Memory: the
 * owner's, which alone frees it; the other side keeps a view of a slab until it hears that the slab is gone.
 *
 * Announcements travel on a port of their own that nobody listens on: the receiver takes them off (`receiveMessageOnPort`)
 * when it meets an id that it does not know. So a descriptor that is found early, before the event loop would have
 * delivered the announcement, need not wait for it, and no doorbell is taken off with it.
 */
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';

interface SlabMessage {
  readonly id: number;
  /** Null: the slab is gone. Ids are never used again. */
  readonly buffer: SharedArrayBuffer | null;
}

export class SlabAnnouncer {
  readonly #port: MessagePort;
  readonly #announced = new Set<number>();

  constructor(port: MessagePort) {
    this.#port = port;
    port.unref();
  }

  /** Slabs that the other thread has been told of. */
  get count(): number {
    return this.#announced.size;
  }

  /** Call it before a descriptor that points into the slab is published. */
  announce(id: number, buffer: SharedArrayBuffer): void {
    if (this.#announced.has(id)) return;
    this.#announced.add(id);
    this.#port.postMessage({ id, buffer } satisfies SlabMessage);
  }

  /** The slab is gone. No descriptor that points into it may be under way. */
  retire(id: number): void {
    if (this.#announced.delete(id)) this.#port.postMessage({ id, buffer: null });
  }
}

export class SlabViews {
  readonly #port: MessagePort;
  readonly #views = new Map<number, Buffer<SharedArrayBuffer>>();

  constructor(port: MessagePort) {
    this.#port = port;
    port.unref();
  }

  get count(): number {
    return this.#views.size;
  }

  /** A view over the whole slab; undefined while its announcement has not arrived: look again in a later turn. */
  find(id: number): Buffer<SharedArrayBuffer> | undefined {
    const known = this.#views.get(id);
    if (known !== undefined) return known;
    this.update();
    return this.#views.get(id);
  }

  /** Takes what has been announced, and lets go of slabs that are gone. Call it now and then (seconds). */
  update(): void {
    for (;;) {
      const received = receiveMessageOnPort(this.#port);
      if (received === undefined) return;
      const { id, buffer } = received.message as SlabMessage;
      if (buffer === null) this.#views.delete(id);
      else this.#views.set(id, Buffer.from(buffer));
    }
  }
}
