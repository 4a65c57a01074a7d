/**
 * The network of a simulated cluster: connections that keep order, and lose, delay and hold back what they carry.
 *
 * A direction between two machines can be cut (what is sent waits, and arrives late or breaks the connection when the
 * cut is healed), or clogged (all of it takes long). A connection breaks by chance, with what is under way on it. A
 * process that dies is noticed by whoever is connected to it; a machine that loses power is just silent, until it is up
 * again and knows nothing of the connection.
 */
import type { SeededRandom } from '../seeded_random.ts';
import type { SimProcess } from './sim_process.ts';
import type { Timeline } from './timeline.ts';

/** 'refused': nobody listens there; 'closed': the connection broke; 'timeout'. */
export type FailureReason = 'refused' | 'closed' | 'timeout';

export interface NetworkFailure {
  readonly type: 'failure';
  readonly reason: FailureReason;
}

export type Answer = (answer: unknown) => void;

/** What listens on a machine. */
export interface Listener {
  readonly process: SimProcess;
  /** A request has come in. `answer` may be called once, at any time. */
  serve(from: number, request: unknown, answer: Answer): void;
}

export interface NetworkOptions {
  readonly timeline: Timeline;
  readonly random: SeededRandom;
  /** A message takes 1 up to so many milliseconds. */
  readonly delayMs: number;
  /** Probability for each message that it breaks its connection. */
  readonly breakChance: number;
  readonly count: (what: string) => void;
}

interface Machine {
  isPowered: boolean;
  listener: Listener | null;
}

/** One direction of a connection. */
class Channel {
  /** When the last message arrives: none that was sent later does so before. */
  lastMs = 0;
  /** What waits for the end of a cut. */
  held: (() => void)[] = [];
}

export class Network {
  readonly options: NetworkOptions;
  readonly #machines = new Map<number, Machine>();
  readonly #connections = new Set<Connection>();
  /** `from,to` of directions that carry nothing. */
  readonly #cuts = new Set<string>();
  /** Milliseconds that a direction takes longer. */
  readonly #clogs = new Map<string, number>();
  /** Off in the liveness phase. */
  isFaulty: boolean = true;

  constructor(options: NetworkOptions) {
    this.options = options;
  }

  machine(id: number): Machine {
    const known = this.#machines.get(id);
    if (known !== undefined) return known;
    const machine = { isPowered: true, listener: null };
    this.#machines.set(id, machine);
    return machine;
  }

  connect(process: SimProcess, to: number): Connection {
    const connection = new Connection(this, process, to);
    this.#connections.add(connection);
    return connection;
  }

  /** The process is gone: who was connected to it hears so, unless the machine went with it. */
  processDied(process: SimProcess): void {
    for (const connection of [...this.#connections]) {
      if (connection.process === process) this.#connections.delete(connection);
      else if (connection.listener?.process === process) connection.serverGone();
    }
  }

  forget(connection: Connection): void {
    this.#connections.delete(connection);
  }

  isCut(from: number, to: number): boolean {
    return this.#cuts.has(`${from},${to}`);
  }

  cut(from: number, to: number): void {
    this.#cuts.add(`${from},${to}`);
  }

  clog(from: number, to: number, delayMs: number): void {
    this.#clogs.set(`${from},${to}`, delayMs);
  }

  /** Everything gets through again in this direction. */
  heal(from: number, to: number): void {
    this.#clogs.delete(`${from},${to}`);
    if (!this.#cuts.delete(`${from},${to}`)) return;
    for (const connection of [...this.#connections]) connection.healed(from, to);
  }

  healAll(): void {
    for (const key of [...this.#cuts, ...this.#clogs.keys()]) {
      const [from, to] = key.split(',').map(Number);
      this.heal(from as number, to as number);
    }
  }

  /** Has `arrive` called when a message sent now is there. */
  send(channel: Channel, from: number, to: number, arrive: () => void): void {
    if (this.isCut(from, to)) {
      channel.held.push(arrive);
      return;
    }
    const { timeline, random, delayMs } = this.options;
    const clogMs = this.#clogs.get(`${from},${to}`) ?? 0;
    const takesMs = 1 + random.below(delayMs) + (clogMs > 0 ? random.below(clogMs) : 0);
    const atMs = Math.max(channel.lastMs, timeline.nowMs + takesMs);
    channel.lastMs = atMs;
    timeline.after(atMs - timeline.nowMs, arrive);
  }

  /** Whether chance breaks the connection that a message is sent on. */
  breaks(): boolean {
    const { random, breakChance } = this.options;
    return random.chance(breakChance) && this.isFaulty;
  }
}

interface Pending {
  readonly done: (answer: unknown) => void;
  readonly cancelTimer: () => void;
}

/** A connection from a process to whatever listens on a machine. Lost as a whole, never in part. */
export class Connection {
  readonly process: SimProcess;
  readonly to: number;
  readonly #network: Network;
  readonly #out: Channel = new Channel();
  readonly #back: Channel = new Channel();
  readonly #pending = new Map<number, Pending>();
  #nextId = 1;
  /** Who has accepted it; null until the first message arrives. */
  listener: Listener | null = null;
  /** The client's side is done with it. */
  #isClosed: boolean = false;
  /** The server's side is: what arrives there vanishes. */
  #isServerClosed: boolean = false;

  constructor(network: Network, process: SimProcess, to: number) {
    this.#network = network;
    this.process = process;
    this.to = to;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  get #from(): number {
    return this.process.machineId;
  }

  /** `done` is called once, in a later event, with the answer or a `NetworkFailure`; never if the process dies before. */
  request(body: unknown, timeoutMs: number, done: (answer: unknown) => void): void {
    const id = this.#nextId;
    this.#nextId += 1;
    const cancelTimer = this.process.after(timeoutMs, () => this.#close('timeout'));
    this.#pending.set(id, { done, cancelTimer });
    if (this.#isClosed) {
      this.process.after(0, () => this.#finish(id, failure('closed')));
      return;
    }
    if (this.#network.breaks()) {
      this.#network.options.count('broken connections');
      this.#isServerClosed = true;
      this.process.after(0, () => this.#close('closed'));
      return;
    }
    this.#network.send(this.#out, this.#from, this.to, () => this.#arriveThere(id, body));
  }

  close(): void {
    this.#close('closed');
  }

  /** The process at the other end has died. */
  serverGone(): void {
    this.#isServerClosed = true;
    if (this.#network.machine(this.to).isPowered) this.#sendReset('closed');
  }

  /** A direction carries again: what was held back arrives late, or the end that waited has given up. */
  healed(from: number, to: number): void {
    const { random } = this.#network.options;
    for (const [channel, source, target] of [
      [this.#out, this.#from, this.to],
      [this.#back, this.to, this.#from],
    ] as const) {
      if (source !== from || target !== to || channel.held.length === 0) continue;
      const { held } = channel;
      channel.held = [];
      if (random.chance(0.4)) this.#isServerClosed = true;
      if (this.#isServerClosed) this.#sendReset('closed');
      else for (const arrive of held) this.#network.send(channel, source, target, arrive);
    }
    if (this.#isClosed) this.#network.forget(this);
  }

  #arriveThere(id: number, body: unknown): void {
    if (this.#isServerClosed) return;
    const machine = this.#network.machine(this.to);
    if (!machine.isPowered) return;
    const { listener } = machine;
    if (this.listener === null && listener !== null) this.listener = listener;
    if (this.listener === null || !this.listener.process.isAlive) {
      const reason = this.listener === null ? 'refused' : 'closed';
      this.#isServerClosed = true;
      this.#sendReset(reason);
      return;
    }
    const { process } = this.listener;
    process.run(() => this.listener?.serve(this.#from, body, (answer) => this.#answer(id, answer)));
  }

  #answer(id: number, answer: unknown): void {
    if (this.#isServerClosed) return;
    if (this.#network.breaks()) {
      this.#network.options.count('broken connections');
      this.serverGone();
      return;
    }
    this.#network.send(this.#back, this.to, this.#from, () =>
      this.process.run(() => this.#finish(id, answer)),
    );
  }

  #sendReset(reason: FailureReason): void {
    this.#network.send(this.#back, this.to, this.#from, () =>
      this.process.run(() => this.#close(reason)),
    );
  }

  #finish(id: number, answer: unknown): void {
    const pending = this.#pending.get(id);
    if (pending === undefined) return;
    this.#pending.delete(id);
    pending.cancelTimer();
    pending.done(answer);
  }

  #close(reason: FailureReason): void {
    // What a cut holds back is in the network, and arrives one day although nobody waits for the answer.
    if (this.#out.held.length === 0) this.#network.forget(this);
    this.#isClosed = true;
    for (const id of [...this.#pending.keys()]) this.#finish(id, failure(reason));
  }
}

function failure(reason: FailureReason): NetworkFailure {
  return { type: 'failure', reason };
}

export function isFailure(answer: unknown): answer is NetworkFailure {
  return (answer as NetworkFailure | null)?.type === 'failure';
}
