/**
 * The network between the nodes of a simulated quorum: order is kept per direction, messages are delayed or lost, links
 * are cut one way, and who asks a node that is down is refused.
 */
import type { RaftFailure, RaftReply, RaftRequest } from '../../replication/raft/messages.ts';
import type { SeededRandom } from './seeded_random.ts';

export interface NetworkNode {
  readonly id: number;
  /** Raised by every crash. */
  readonly life: number;
  readonly isUp: boolean;
  /** Runs when the process does, if it is still the same one. */
  whenAwake(life: number, run: () => void): void;
  handle(request: RaftRequest, done: (reply: RaftReply) => void): void;
}

export interface NetworkOptions {
  readonly random: SeededRandom;
  readonly after: (ms: number, run: () => void) => void;
  readonly nowMs: () => number;
  readonly nodeOf: (id: number) => NetworkNode;
  readonly onReply: (from: NetworkNode, request: RaftRequest, reply: RaftReply) => void;
}

interface Call {
  readonly from: NetworkNode;
  readonly fromLife: number;
  readonly to: NetworkNode;
  readonly done: (reply: RaftReply | RaftFailure) => void;
  isOver: boolean;
}

export class RaftNetwork {
  lossShare = 0;
  delayMaxMs = 5;
  readonly #options: NetworkOptions;
  /** `from>to`. */
  readonly #cuts = new Set<string>();
  readonly #lastArrivalMs = new Map<string, number>();
  readonly #open = new Set<Call>();

  constructor(options: NetworkOptions) {
    this.#options = options;
  }

  cut(from: number, to: number): void {
    this.#cuts.add(`${from}>${to}`);
  }

  healAll(): void {
    this.#cuts.clear();
    this.lossShare = 0;
    this.delayMaxMs = 5;
  }

  send(
    from: NetworkNode,
    toId: number,
    request: RaftRequest,
    timeoutMs: number,
    done: (reply: RaftReply | RaftFailure) => void,
  ): void {
    const { after, nodeOf } = this.#options;
    const to = nodeOf(toId);
    const call: Call = { from, fromLife: from.life, to, done, isOver: false };
    this.#open.add(call);
    after(timeoutMs, () => this.#end(call, { type: 'failure', reason: 'timeout' }));
    this.#travel(from.id, to.id, () => this.#arrive(call, request));
  }

  /** The process of a node is gone: its connections break. */
  crashed(node: NetworkNode): void {
    for (const call of this.#open) {
      if (call.from === node) this.#open.delete(call);
      else if (call.to === node)
        this.#travel(node.id, call.from.id, () =>
          this.#end(call, { type: 'failure', reason: 'closed' }),
        );
    }
  }

  #arrive(call: Call, request: RaftRequest): void {
    const { to, from } = call;
    if (!to.isUp) {
      this.#travel(to.id, from.id, () => this.#end(call, { type: 'failure', reason: 'refused' }));
      return;
    }
    to.whenAwake(to.life, () =>
      to.handle(request, (reply) => {
        this.#options.onReply(to, request, reply);
        this.#travel(to.id, from.id, () => this.#end(call, reply));
      }),
    );
  }

  #end(call: Call, reply: RaftReply | RaftFailure): void {
    if (call.isOver) return;
    call.isOver = true;
    this.#open.delete(call);
    call.from.whenAwake(call.fromLife, () => call.done(reply));
  }

  #travel(from: number, to: number, arrive: () => void): void {
    const { random, after, nowMs } = this.#options;
    const link = `${from}>${to}`;
    if (this.#cuts.has(link) || random.chance(this.lossShare)) return;
    const atMs = Math.max(
      nowMs() + 0.1 + random.next() * this.delayMaxMs,
      this.#lastArrivalMs.get(link) ?? 0,
    );
    this.#lastArrivalMs.set(link, atMs);
    after(atMs - nowMs(), arrive);
  }
}
