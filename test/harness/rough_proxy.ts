/**
 * A proxy before a broker that clients know instead of it (advertised.listeners), and that treats connections as bad networks
 * do: it breaks them at any byte, holds what they carry without a word, or lets little through at a time.
 */
import assert from 'node:assert/strict';
import { createConnection, createServer, type Server, type Socket } from 'node:net';
import type { Random } from './split_mix.ts';

interface Passage {
  readonly near: Socket;
  readonly far: Socket;
  /** Bytes until it breaks. */
  bytesLeft: number;
}

export interface Roughness {
  /** Connections break after 1 to this many bytes, counted both ways; 0 for never. */
  readonly cutBytesMax?: number;
  /** Every piece is held back for this long, and is this large at most. */
  readonly slow?: { readonly delayMs: number; readonly bytes: number } | null;
}

export class RoughProxy {
  readonly port: number;
  /** Connections that it has broken. */
  cuts = 0;
  readonly #server: Server;
  readonly #random: Random;
  readonly #passages = new Set<Passage>();
  #targetPort = 0;
  #roughness: Roughness = {};
  #isRefusing: boolean = false;

  private constructor(server: Server, random: Random) {
    this.#server = server;
    this.#random = random;
    const address = server.address();
    assert(address !== null && typeof address === 'object');
    this.port = address.port;
    server.on('connection', (near) => this.#accept(near));
  }

  static open(random: Random): Promise<RoughProxy> {
    const server = createServer();
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen(0, '127.0.0.1', () => resolve(new RoughProxy(server, random)));
    });
  }

  get bootstrap(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** What the broker behind it is to be told. */
  get settings(): Readonly<Record<string, string>> {
    return { 'advertised.listeners': `PLAINTEXT://${this.bootstrap}` };
  }

  leadTo(port: number): void {
    this.#targetPort = port;
  }

  /** From now on, and for connections that are there already. */
  set(roughness: Roughness): void {
    this.#roughness = roughness;
    for (const passage of this.#passages) passage.bytesLeft = this.#draw();
  }

  /** Nothing goes through any more in connections that there are, and nobody is told: they are half open. New ones are well. */
  hold(): void {
    for (const { near, far } of this.#passages) {
      near.removeAllListeners('data').pause();
      far.removeAllListeners('data').pause();
    }
  }

  /** Breaks all connections there are. */
  cutAll(): void {
    for (const passage of [...this.#passages]) this.#cut(passage);
  }

  /** Refuses new connections, or takes them again. */
  refuse(isRefusing: boolean): void {
    this.#isRefusing = isRefusing;
  }

  close(): void {
    this.#server.close();
    for (const { near, far } of this.#passages) {
      near.destroy();
      far.destroy();
    }
  }

  #draw(): number {
    const { cutBytesMax = 0 } = this.#roughness;
    return cutBytesMax === 0 ? Number.POSITIVE_INFINITY : 1 + this.#random(cutBytesMax);
  }

  #accept(near: Socket): void {
    if (this.#isRefusing) {
      near.on('error', () => undefined);
      near.resetAndDestroy();
      return;
    }
    const far = createConnection({ host: '127.0.0.1', port: this.#targetPort, noDelay: true });
    near.setNoDelay(true);
    const passage: Passage = { near, far, bytesLeft: this.#draw() };
    this.#passages.add(passage);
    this.#join(passage, near, far);
    this.#join(passage, far, near);
  }

  #join(passage: Passage, from: Socket, to: Socket): void {
    from.on('error', () => from.destroy());
    from.on('close', () => {
      to.destroy();
      this.#passages.delete(passage);
    });
    from.on('data', (chunk: Buffer) => {
      const { slow = null } = this.#roughness;
      if (chunk.length < passage.bytesLeft) {
        passage.bytesLeft -= chunk.length;
        if (slow === null) this.#pass(chunk, from, to);
        else this.#passSlowly(chunk, from, to, slow);
        return;
      }
      // The last bytes arrive before the break, which falls anywhere within a request or an answer.
      to.write(chunk.subarray(0, passage.bytesLeft), () => this.#cut(passage));
      from.removeAllListeners('data').pause();
    });
  }

  #pass(chunk: Buffer, from: Socket, to: Socket): void {
    if (to.write(chunk)) return;
    from.pause();
    to.once('drain', () => from.resume());
  }

  #passSlowly(
    chunk: Buffer,
    from: Socket,
    to: Socket,
    slow: { readonly delayMs: number; readonly bytes: number },
  ): void {
    from.pause();
    let at = 0;
    const step = (): void => {
      if (to.destroyed) return;
      to.write(chunk.subarray(at, at + slow.bytes));
      at += slow.bytes;
      if (at >= chunk.length) from.resume();
      else setTimeout(step, slow.delayMs);
    };
    setTimeout(step, slow.delayMs);
  }

  #cut({ near, far }: Passage): void {
    this.cuts += 1;
    near.resetAndDestroy();
    far.resetAndDestroy();
  }
}
