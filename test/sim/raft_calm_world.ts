/** A simulated quorum to which nothing happens but what a test does: a network and disks of a few milliseconds. */
import assert from 'node:assert/strict';
import type { RaftRequest } from '../../replication/raft/messages.ts';
import type { RaftRule } from '../../replication/raft/raft_types.ts';
import { EventQueue } from './event_queue.ts';
import { RaftChecks } from './raft_checks.ts';
import { RaftNetwork } from './raft_network.ts';
import { type NodeWorld, RaftSimNode } from './raft_node.ts';
import { SeededRandom } from './seeded_random.ts';

export class CalmWorld implements NodeWorld {
  readonly random: SeededRandom;
  readonly checks: RaftChecks = new RaftChecks();
  readonly network: RaftNetwork;
  readonly voterIds: readonly number[];
  readonly without: RaftRule | null;
  readonly nodes: readonly RaftSimNode[];
  readonly #queue = new EventQueue();
  #nowMs = 0;
  #directories = 0;

  /** A node whose disk takes long. */
  slowNode: RaftSimNode | null = null;
  /** Called when a node leads a term. */
  onLeader: (node: RaftSimNode) => void = () => {};

  constructor(seed: number, size: number, without: RaftRule | null = null) {
    this.without = without;
    this.random = new SeededRandom(seed);
    this.network = new RaftNetwork({
      random: this.random,
      after: (ms, run) => this.after(ms, run),
      nowMs: () => this.#nowMs,
      nodeOf: (id) => this.nodes[id - 1]!,
      onReply: (from, request, reply) =>
        this.checks.replied(this.nodes[from.id - 1]!, request, reply),
    });
    this.network.delayMaxMs = 1;
    this.voterIds = Array.from({ length: size }, (_, at) => at + 1);
    this.nodes = this.voterIds.map((id) => new RaftSimNode(this, id));
  }

  nowMs(): number {
    return this.#nowMs;
  }

  after(ms: number, run: () => void): void {
    this.#queue.add(this.#nowMs + ms, run);
  }

  slowShareOf(node: RaftSimNode): number {
    return node === this.slowNode ? 1 : 0;
  }

  newDirectoryId(): string {
    this.#directories += 1;
    return Buffer.alloc(16, this.#directories).toString('base64url');
  }

  failed(_node: RaftSimNode, error: Error): void {
    throw error;
  }

  sent(node: RaftSimNode, request: RaftRequest): void {
    if (this.checks.sent(node, request)) this.onLeader(node);
  }

  get leader(): RaftSimNode | undefined {
    return this.nodes.find(({ isLeading }) => isLeading);
  }

  /** @returns how long it took */
  async until(isOver: () => boolean): Promise<number> {
    const fromMs = this.#nowMs;
    while (!isOver()) {
      this.#nowMs = this.#queue.nextMs;
      assert(this.#nowMs - fromMs < 20_000, 'never happened');
      this.#queue.take()();
      await new Promise(setImmediate);
    }
    return this.#nowMs - fromMs;
  }

  async pass(ms: number): Promise<void> {
    const endMs = this.#nowMs + ms;
    this.after(ms, () => {});
    await this.until(() => this.#nowMs >= endMs);
  }
}
