/**
 * The network between the brokers of a cluster, as a test holds it in its hands: each listener stands behind a TCP proxy
 * that the brokers know instead of it, and what one broker sends to another can be stopped, in one direction alone.
 *
 * Who has opened a connection stands in the first request's client id: brokers are `node-<id>` to controllers and
 * `broker-<id>-fetcher-<n>` to leaders. A connection of anybody else is never cut.
 *
 * A cut holds bytes, as a network does that loses packets: nothing breaks, nothing arrives. After `heal` either TCP goes
 * on where it was, or the connection is found to be broken.
 */
import assert from 'node:assert/strict';
import { createConnection, createServer, type Server, type Socket } from 'node:net';
import { ownLoopback } from './loopback.ts';

const clientIdAt = 14;
const brokerClientId = /^(?:node-(\d+)|broker-(\d+)-fetcher-\d+)$/;

/** One direction of a connection; bytes that came before it was cut may still be on their way. */
class Way {
  readonly #from: Socket;
  readonly #to: Socket;
  #isHeld: boolean = true;

  constructor(from: Socket, to: Socket) {
    this.#from = from;
    this.#to = to;
    from.pause();
    from.on('data', (chunk: Buffer) => {
      if (to.write(chunk)) return;
      from.pause();
    });
    to.on('drain', () => {
      if (!this.#isHeld) from.resume();
    });
    from.on('error', () => from.destroy());
    from.on('close', () => to.destroy());
  }

  /** Returns whether that is a change. */
  hold(isHeld: boolean): boolean {
    if (this.#isHeld === isHeld) return false;
    this.#isHeld = isHeld;
    if (isHeld) this.#from.pause();
    else if (!this.#to.writableNeedDrain) this.#from.resume();
    return true;
  }
}

class LinkConnection {
  readonly #near: Socket;
  readonly #far: Socket;
  readonly #there: Way;
  readonly #back: Way;
  readonly #from: number | null;
  readonly #to: number;
  /** It was opened during a cut: in either direction, no packet of the first three would have come back. */
  #isOpening: boolean;

  constructor(near: Socket, far: Socket, from: number | null, to: number, isOpening: boolean) {
    this.#isOpening = isOpening;
    this.#near = near;
    this.#far = far;
    this.#from = from;
    this.#to = to;
    this.#there = new Way(near, far);
    this.#back = new Way(far, near);
  }

  /** Holds or lets go what the cuts say. Returns whether anything was let go. */
  apply(isCut: (from: number, to: number) => boolean): boolean {
    const from = this.#from;
    let isThereCut = from !== null && isCut(from, this.#to);
    let isBackCut = from !== null && isCut(this.#to, from);
    this.#isOpening &&= isThereCut || isBackCut;
    if (this.#isOpening) isThereCut = isBackCut = true;
    const there = this.#there.hold(isThereCut) && !isThereCut;
    const back = this.#back.hold(isBackCut) && !isBackCut;
    return there || back;
  }

  break(): void {
    this.#near.resetAndDestroy();
    this.#far.resetAndDestroy();
  }
}

/** The listener of one broker. */
interface Gate {
  readonly nodeId: number;
  readonly port: number;
  readonly targetPort: number;
  server: Server | null;
}

export class Links {
  readonly #gates: Gate[] = [];
  readonly #connections = new Set<LinkConnection>();
  readonly #cuts = new Set<string>();

  /** A proxy for a port of broker `nodeId`, which nobody needs to listen on yet. Returns the proxy's port. */
  async add(nodeId: number, targetPort: number): Promise<number> {
    const server = await listen(0, (socket) => this.#accept(gate, socket));
    const address = server.address();
    assert(address !== null && typeof address === 'object');
    const gate: Gate = { nodeId, port: address.port, targetPort, server };
    this.#gates.push(gate);
    return gate.port;
  }

  /** The broker's process is gone: from now on its connections are refused. */
  down(nodeId: number): void {
    for (const gate of this.#gates) {
      if (gate.nodeId !== nodeId) continue;
      gate.server?.close();
      gate.server = null;
    }
  }

  async up(nodeId: number): Promise<void> {
    for (const gate of this.#gates)
      if (gate.nodeId === nodeId && gate.server === null)
        gate.server = await listen(gate.port, (socket) => this.#accept(gate, socket));
  }

  /** From now on nothing that `from` sends arrives at `to`. */
  cut(from: number, to: number): void {
    this.#cuts.add(`${from}>${to}`);
    for (const one of this.#connections) one.apply(this.#isCut);
  }

  /** Ends all cuts. With `breaks`, connections that were cut are broken instead of going on. */
  heal(breaks: boolean): void {
    this.#cuts.clear();
    for (const one of this.#connections) if (one.apply(this.#isCut) && breaks) one.break();
  }

  close(): void {
    for (const { server } of this.#gates) server?.close();
    for (const one of this.#connections) one.break();
  }

  readonly #isCut = (from: number, to: number): boolean => this.#cuts.has(`${from}>${to}`);

  #accept(gate: Gate, near: Socket): void {
    near.setNoDelay(true);
    near.on('error', () => near.destroy());
    let first = Buffer.alloc(0);
    const read = (chunk: Buffer): void => {
      first = Buffer.concat([first, chunk]);
      const clientId = clientIdOf(first);
      if (clientId === null) return;
      near.off('data', read);
      near.pause();
      near.unshift(first);
      const match = brokerClientId.exec(clientId);
      this.#join(gate, near, match === null ? null : Number(match[1] ?? match[2]));
    };
    near.on('data', read);
  }

  #join(gate: Gate, near: Socket, from: number | null): void {
    const far = createConnection({ host: ownLoopback, port: gate.targetPort, noDelay: true });
    const isCut =
      from !== null && (this.#isCut(from, gate.nodeId) || this.#isCut(gate.nodeId, from));
    const connection = new LinkConnection(near, far, from, gate.nodeId, isCut);
    this.#connections.add(connection);
    near.once('close', () => this.#connections.delete(connection));
    connection.apply(this.#isCut);
  }
}

function listen(port: number, onConnection: (socket: Socket) => void): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer(onConnection);
    server.once('error', reject);
    server.listen(port, ownLoopback, () => resolve(server));
  });
}

/** Of the request that begins here; null while it is not here whole. */
function clientIdOf(bytes: Buffer): string | null {
  if (bytes.length < clientIdAt) return null;
  const length = Math.max(0, bytes.readInt16BE(clientIdAt - 2));
  return bytes.length < clientIdAt + length
    ? null
    : bytes.toString('utf8', clientIdAt, clientIdAt + length);
}
