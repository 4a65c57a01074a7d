/**
 * One client connection: receives frames, runs their handlers, and answers in the order of the requests.
 *
 * Order: overlapping requests (Produce) of a connection run side by side; any other one starts when all before
 * it are answered, and nothing starts while it runs, as clients expect from Kafka. What has arrived meanwhile is
 * held back and the socket paused. So is a client that does not read its answers.
 *
 * Thread: the shard that adopted it. Concurrency: everything runs on its event loop; handlers may answer from
 * within `handle` or at any later time, and nothing of a connection runs inside of another one's handler.
 */
import type { Socket } from 'node:net';
import { decodeRequestHeader } from '../protocol/frame.ts';
import { ProtocolError } from '../protocol/reader.ts';
import { badSizeReason, foreignProtocol } from './bad_frames.ts';
import type { ConnectionHost } from './connection_host.ts';
import { type ReceiveOwner, Receiver, receiveLimits } from './receive.ts';
import { type ContextOwner, RequestContext } from './request_context.ts';
import type { RequestFrame } from './request_frame.ts';
import { Outbox, type SendOwner, type SendTransport } from './send.ts';
import { strangersIntervalMs } from './server_log.ts';

export const connectionLimits: Readonly<
  Record<
    'inFlightMax' | 'lingerMsMax' | 'pendingBytesMax' | 'turnFramesMax' | 'turnBytesMax',
    number
  >
> = {
  /** Requests of one connection that may be unanswered at the same time. */
  inFlightMax: 256,
  /** Answers not yet taken by the socket, from which on no further request of the connection starts. */
  pendingBytesMax: 1024 * 1024,
  /** How long a stop waits for the peer's end of a connection on which all is answered. */
  lingerMsMax: 1_000,
  /** What one connection may do before the others of the thread get their turn. */
  turnFramesMax: 512,
  turnBytesMax: 2 * 1024 * 1024,
};

/** Who connected, and by which listener. */
export interface ConnectionOrigin {
  readonly id: number;
  readonly listener: string;
  readonly remoteAddress: string;
  readonly remotePort: number;
}

export class Connection implements ContextOwner, ReceiveOwner, SendOwner {
  readonly id: number;
  readonly listener: string;
  readonly remoteAddress: string;
  readonly remotePort: number;
  /** Largest request taken; smaller than the listener's limit before a client has authenticated. */
  frameBytesMax: number;
  /** In the host's list of connections with something to do. The host's. */
  scheduled: boolean = false;
  readonly #host: ConnectionHost;
  readonly #receiver: Receiver;
  readonly #outbox: Outbox;
  readonly #socket: Socket;
  /** Requests without an answer in the outbox, oldest first. */
  #slots: RequestContext[] = [];
  /** Invariant: contexts in `#slots` not answered yet. */
  #running = 0;
  /** One of them must run alone. */
  #exclusive: boolean = false;
  /** The receiver is at work and goes on by itself after an answer: no need to schedule. */
  #inside: boolean = false;
  /** A request is held back only because answers are not being read. */
  #outputBlocked: boolean = false;
  #paused: boolean = false;
  /** No further request is taken: the peer has ended its side, or the broker stops. */
  #inputEnded: boolean = false;
  #draining: boolean = false;
  /** All is answered and our side ended; input is thrown away until the peer ends, too. */
  #lingering: boolean = false;
  #closed: boolean = false;
  #framesTotal = 0;
  #turn = -1;
  #turnFrames = 0;
  #turnBytes = 0;
  #activeTick: number;
  #stalledTicks = 0;
  #bytesAtTick = 0;

  /** `open` makes the socket and is called from here, when the connection is ready to receive. */
  constructor(
    host: ConnectionHost,
    origin: ConnectionOrigin,
    open: (connection: Connection) => SendTransport,
  ) {
    this.id = origin.id;
    this.listener = origin.listener;
    this.remoteAddress = origin.remoteAddress;
    this.remotePort = origin.remotePort;
    this.#host = host;
    this.frameBytesMax = host.limits.frameBytesMax;
    this.#activeTick = host.tick;
    this.#receiver = new Receiver(this, host.memory, host.sharedBuffer);
    const transport = open(this);
    this.#socket = transport.socket;
    this.#outbox = new Outbox(this, transport);
    this.#socket.on('end', () => this.#onEnd());
    this.#socket.on('error', (error) => this.close(error.message, true));
    this.#socket.on('close', () => this.close('closed by the peer', true));
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Requests taken and not answered. */
  get inFlight(): number {
    return this.#running;
  }

  /** For the socket: where the next read goes. */
  nextBuffer(): Buffer {
    return this.#receiver.nextBuffer();
  }

  /** For the socket: bytes were read. False stops the reading. */
  onRead(length: number, buffer: Buffer): boolean {
    if (this.#closed) return false;
    // Whatever comes after the last answer is let through to nowhere, until the peer ends its side.
    if (this.#lingering) return true;
    const host = this.#host;
    host.counters.bytesReceived += length;
    this.#activeTick = host.tick;
    this.#enterTurn();
    this.#turnBytes += length;
    this.#inside = true;
    let more = this.#receiver.received(length, buffer);
    this.#inside = false;
    this.#flush();
    if (more && this.#turnBytes >= connectionLimits.turnBytesMax) {
      more = false;
      host.schedule(this);
    }
    if (!more) this.#paused = true;
    return more && !this.#closed;
  }

  /** Goes on with whatever waited: held frames, answers, reading. The host calls it, never a handler. */
  pump(): void {
    if (this.#closed) return;
    this.#enterTurn();
    // Sending first makes room for answers to what is held back.
    this.#flush();
    this.#inside = true;
    const more = this.#receiver.resume();
    this.#inside = false;
    this.#flush();
    if (this.#closed) return;
    if (more && this.#paused && !this.#inputEnded) {
      this.#paused = false;
      this.#socket.resume();
    }
    this.#finishIfDone();
  }

  /** The broker stops: take no further request, answer those that run, then close. */
  drain(): void {
    if (this.#closed || this.#draining) return;
    this.#draining = true;
    this.#paused = true;
    this.#socket.pause();
    this.#receiver.dispose();
    this.#host.schedule(this);
  }

  /** Closes at once. `expected` is for what peers do every day. Nothing happens on a second call. */
  close(reason: string, expected: boolean): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#socket.destroy();
    this.#receiver.dispose();
    this.#outbox.dispose();
    const slots = this.#slots;
    this.#slots = [];
    this.#running = 0;
    for (const context of slots) {
      // Answered ones whose turn had not come hold pins, too.
      for (const hole of context.responseHoles) hole.value.pin?.unpin();
      context.abort();
    }
    this.#host.onClosed(this, reason, expected);
  }

  /** For the host's coarse clock: closes the connection if it idles or stalls. */
  checkProgress(idleTicksMax: number, stalledTicksMax: number, stallBytesMin: number): void {
    if (this.#closed || this.#draining) return;
    const total = this.#receiver.bytesTotal;
    const progress = total - this.#bytesAtTick;
    this.#bytesAtTick = total;
    const slow = this.#receiver.partial && progress < stallBytesMin;
    this.#stalledTicks =
      slow && this.#host.memory.budget.waitingCount > 0 ? this.#stalledTicks + 1 : 0;
    if (this.#stalledTicks > stalledTicksMax) {
      this.#refuse('stalled', 'a request arrives too slowly while others wait for its memory');
      return;
    }
    // A request that runs, or that waits for memory or its turn, waits for us and not for the client.
    if (this.#running > 0 || (!this.#receiver.open && this.#outbox.pendingBytes === 0)) {
      this.#activeTick = this.#host.tick;
    } else if (this.#host.tick - this.#activeTick > idleTicksMax) {
      this.#host.counters.connectionsIdleClosed += 1;
      this.close('idle for longer than connections.max.idle.ms', true);
    }
  }

  acceptsSize(size: number): boolean {
    const foreign = this.#framesTotal === 0 ? foreignProtocol(size) : null;
    if (foreign === null && size >= receiveLimits.frameBytesMin && size <= this.frameBytesMax) {
      return true;
    }
    this.#host.counters.framesRefused += 1;
    const kind = foreign === null ? 'bad size' : 'foreign protocol';
    this.#refuse(kind, foreign ?? badSizeReason(size, this.frameBytesMax), {
      size,
      limit: this.frameBytesMax,
    });
    return false;
  }

  knowsApi(apiKey: number): boolean {
    if (this.#host.registry.find(apiKey) !== null) return true;
    this.#host.counters.framesRefused += 1;
    this.#refuse('unknown API', `a request of API ${apiKey}, which is not served`);
    return false;
  }

  retainsFrame(apiKey: number): boolean {
    return this.#host.registry.find(apiKey)?.retainsFrame === true;
  }

  mayDispatch(apiKey: number): boolean {
    if (this.#draining) return false;
    if (this.#turnFrames >= connectionLimits.turnFramesMax) {
      this.#host.schedule(this);
      return false;
    }
    if (this.#outbox.pendingBytes >= connectionLimits.pendingBytesMax) {
      this.#outputBlocked = true;
      return false;
    }
    const handler = this.#host.registry.find(apiKey);
    if (handler?.retainsFrame === true && this.#host.holdsBack(this)) return false;
    // From here on, the answer that it waits for will schedule the connection.
    if (this.#slots.length === 0) return true;
    if (this.#slots.length >= connectionLimits.inFlightMax) return false;
    if (!this.#exclusive) return handler?.overlaps === true;
    this.#slots[0]?.onOvertaken?.();
    return false;
  }

  onFrame(frame: RequestFrame): void {
    this.#framesTotal += 1;
    this.#turnFrames += 1;
    this.#host.counters.framesReceived += 1;
    try {
      this.#dispatch(frame);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#host.counters.framesRefused += 1;
      this.#refuse('malformed request', `a malformed request: ${error.message}`);
    } finally {
      frame.release();
    }
  }

  onMemoryGranted(): void {
    this.#host.schedule(this);
  }

  onSent(): void {
    this.#activeTick = this.#host.tick;
    this.#flush();
    if (this.#inputEnded || this.#draining) this.#host.schedule(this);
  }

  onSendFailed(reason: string, expected: boolean): void {
    if (!expected) this.#host.log.error(this.#origin(), reason);
    this.close(reason, true);
  }

  onFlushYield(): void {
    this.#activeTick = this.#host.tick;
    this.#host.schedule(this);
  }

  onAnswered(context: RequestContext): void {
    this.#running -= 1;
    if (!context.overlaps) this.#exclusive = false;
    let head = this.#slots[0];
    while (head?.answered === true) {
      this.#slots.shift();
      if (head.responseBytes !== null) this.#outbox.push(head.responseBytes, head.responseHoles);
      if (this.#closed) return;
      head = this.#slots[0];
    }
    if (!this.#inside) this.#host.schedule(this);
  }

  onFailed(_context: RequestContext, reason: string): void {
    if (this.#closed) return;
    this.#outbox.flush();
    this.#refuse('failed request', reason);
  }

  #dispatch(frame: RequestFrame): void {
    const { reader, registry } = this.#host;
    reader.reset(frame.bytes, frame.offset, frame.end);
    // The rest of the header depends on these two.
    const apiKey = reader.view.getInt16(frame.offset);
    const apiVersion = reader.view.getInt16(frame.offset + 2);
    const handler = registry.find(apiKey);
    if (handler === null) {
      this.knowsApi(apiKey);
      return;
    }
    const supported = apiVersion >= handler.minVersion && apiVersion <= handler.maxVersion;
    if (!supported && handler.unsupportedVersion === undefined) {
      const range = `${handler.minVersion}-${handler.maxVersion}`;
      const reason = `a request of API ${apiKey} in version ${apiVersion}; ${range} are served`;
      this.#refuse('unsupported version', reason);
      return;
    }
    const overlaps = handler.overlaps === true;
    const header = decodeRequestHeader(reader);
    const context = new RequestContext(this, header, reader, frame, overlaps);
    this.#slots.push(context);
    this.#running += 1;
    if (!overlaps) this.#exclusive = true;
    if (supported) handler.handle(context);
    else handler.unsupportedVersion?.(context);
  }

  #flush(): void {
    this.#outbox.flush();
    if (!this.#outputBlocked || this.#outbox.pendingBytes >= connectionLimits.pendingBytesMax)
      return;
    this.#outputBlocked = false;
    this.#host.schedule(this);
  }

  #enterTurn(): void {
    if (this.#turn === this.#host.turn) return;
    this.#turn = this.#host.turn;
    this.#turnFrames = 0;
    this.#turnBytes = 0;
  }

  #onEnd(): void {
    this.#inputEnded = true;
    this.#host.schedule(this);
  }

  /** Closes for good once nothing more will come and everything was sent. */
  #finishIfDone(): void {
    if (!this.#inputEnded && !this.#draining) return;
    if (this.#slots.length > 0 || this.#outbox.pendingBytes > 0) return;
    if (this.#inputEnded) {
      if (this.#draining || this.#receiver.open) this.close('ended by the peer', true);
      return;
    }
    if (this.#lingering) return;
    // Closing with unread input would make the kernel reset the connection and drop answers on their way.
    this.#lingering = true;
    this.#socket.end();
    this.#socket.resume();
    setTimeout(() => this.close('the broker stops', true), connectionLimits.lingerMsMax).unref();
  }

  #refuse(kind: string, reason: string, fields: object = {}): void {
    this.#host.log.logLimited(
      kind,
      strangersIntervalMs,
      'warn',
      { ...this.#origin(), ...fields },
      `connection closed: ${reason}`,
    );
    this.close(reason, false);
  }

  #origin(): object {
    return {
      listener: this.listener,
      remote: `${this.remoteAddress}:${this.remotePort}`,
    };
  }
}
