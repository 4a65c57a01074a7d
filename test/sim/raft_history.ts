/**
 * A history of one metadata quorum under a seed: nodes die with what they had not flushed, stall and come back, messages
 * are lost, links are cut, disks are full, a host is replaced by an empty one, voters are removed and added. Then all
 * heals, and the quorum must work.
 */
import assert from 'node:assert/strict';
import type { MetadataRecord } from '../../replication/metadata/records.ts';
import type { RaftRequest } from '../../replication/raft/messages.ts';
import { LogFullError } from '../../replication/raft/metadata_log_store.ts';
import type { RaftRule } from '../../replication/raft/raft_types.ts';
import { EventQueue } from './event_queue.ts';
import { RaftChecks } from './raft_checks.ts';
import { RaftNetwork } from './raft_network.ts';
import { type NodeWorld, RaftSimNode } from './raft_node.ts';
import { RaftOperator } from './raft_operator.ts';
import { SeededRandom } from './seeded_random.ts';

export interface HistoryOptions {
  readonly seed: number;
  readonly without: RaftRule | null;
}

const safetyMs = 40_000;
/** By then all must be well again: elections, a wait for a node that stands with a longer log, changes of voters. */
const livenessMs = 60_000;

type Plan = 'as it is' | 'a host is replaced' | 'voters come and go';

export class RaftHistory implements NodeWorld {
  readonly random: SeededRandom;
  readonly checks: RaftChecks = new RaftChecks();
  readonly network: RaftNetwork;
  readonly voterIds: readonly number[];
  readonly without: RaftRule | null;
  readonly nodes: readonly RaftSimNode[];
  readonly #queue = new EventQueue();
  readonly #operator = new RaftOperator(() => this.checks.count('change of voters'));
  readonly #plan: Plan;
  /** Share of each kind of fault, by chance none. */
  readonly #weights: { readonly [fault: string]: number };
  readonly #slowShare: number;
  /** Share of the leaders that die within milliseconds. */
  readonly #youngDeaths: number;
  readonly #faultPauseMs: number;
  readonly #appendPauseMs: number;
  #nowMs = 0;
  #appended = 0;
  #directories = 0;
  #isHealed: boolean = false;
  #healedFrom = Number.POSITIVE_INFINITY;
  events = 0;
  /** What went wrong where nobody waits for it. */
  failure: unknown = null;

  constructor({ seed, without }: HistoryOptions) {
    const random = new SeededRandom(seed);
    this.random = random;
    this.without = without;
    const size = [3, 3, 5, 3, 5, 1][random.below(6)] ?? 3;
    this.voterIds = Array.from({ length: size }, (_, at) => at + 1);
    const plans: readonly Plan[] = ['as it is', 'a host is replaced', 'voters come and go'];
    this.#plan = size === 1 ? 'as it is' : (plans[random.below(3)] ?? 'as it is');
    const drawn = (): number => (random.chance(0.3) ? 0 : 1 + random.below(4));
    this.#weights = {
      crash: 2 + drawn(),
      'crash of all': random.chance(0.3) ? 1 : 0,
      cut: drawn(),
      loss: drawn(),
      pause: drawn(),
      'full disk': random.chance(0.3) ? 1 : 0,
      resignation: random.chance(0.5) ? 1 : 0,
      heal: 2,
    };
    const isDeadly = random.chance(0.25);
    this.#slowShare = isDeadly ? 0.3 : 0.02;
    this.#youngDeaths = isDeadly ? 0.9 : 0;
    this.#faultPauseMs = isDeadly ? 5_000 : ([300, 1_000, 3_000][random.below(3)] ?? 1_000);
    this.#appendPauseMs = [20, 100, 400][random.below(3)] ?? 100;
    this.network = new RaftNetwork({
      random,
      after: (ms, run) => this.after(ms, run),
      nowMs: () => this.#nowMs,
      nodeOf: (id) => this.nodes[id - 1]!,
      onReply: (from, request, reply) =>
        this.checks.replied(this.nodes[from.id - 1]!, request, reply),
    });
    this.nodes = this.voterIds.map((id) => new RaftSimNode(this, id));
  }

  failed(node: RaftSimNode, error: Error): void {
    // A founder without room for the first batch gives up.
    if (error instanceof LogFullError && node.store.endOffset === 0) this.#crash(node);
    else this.failure ??= error;
  }

  sent(node: RaftSimNode, request: RaftRequest): void {
    const isElected = this.checks.sent(node, request);
    if (!isElected || this.#isHealed || !this.random.chance(this.#youngDeaths)) return;
    const { life } = node;
    this.after(this.random.next() * 50, () => {
      if (node.life !== life) return;
      node.crash();
      this.after(20 + this.random.below(500), () => this.#start(node));
    });
  }

  nowMs(): number {
    return this.#nowMs;
  }

  after(ms: number, run: () => void): void {
    this.#queue.add(this.#nowMs + ms, run);
  }

  slowShareOf(): number {
    return this.#slowShare;
  }

  newDirectoryId(): string {
    this.#directories += 1;
    const bytes = Buffer.alloc(16);
    bytes.writeUInt32BE(77, 0);
    bytes.writeUInt32BE(this.#directories, 12);
    return bytes.toString('base64url');
  }

  async run(): Promise<void> {
    for (const node of this.nodes) this.after(this.random.below(1_500), () => this.#start(node));
    if (this.#plan === 'a host is replaced')
      this.after(this.random.below(this.random.chance(0.5) ? 2_500 : safetyMs), () =>
        this.#replaceHost(),
      );
    this.#appendAgain();
    this.#faultAgain();
    this.#operateAgain();
    await this.#until(safetyMs, () => false);
    this.#heal();
    const isWell = (): boolean => this.#isWell();
    const end = safetyMs + livenessMs;
    await this.#until(end, isWell);
    assert(isWell(), `the quorum has not recovered: ${this.#describe()}`);
  }

  async #until(endMs: number, isOver: () => boolean): Promise<void> {
    while (this.#queue.nextMs <= endMs && !isOver()) {
      this.#nowMs = this.#queue.nextMs;
      this.#queue.take()();
      this.events += 1;
      await new Promise(setImmediate);
      if (this.failure !== null) throw this.failure;
    }
  }

  #start(node: RaftSimNode): void {
    if (!node.isUp) node.start();
  }

  #appendAgain(): void {
    this.after(this.random.below(2 * this.#appendPauseMs), () => this.#appendAgain());
    for (const node of this.nodes) {
      if (!node.isLeading || !this.random.chance(0.7)) continue;
      const records: MetadataRecord[] = [];
      for (let left = this.random.below(3); left >= 0; left -= 1) records.push(this.#newRecord());
      const last = node.quorum!.append(records);
      assert.equal(last + 1, node.store.endOffset);
    }
  }

  #newRecord(): MetadataRecord {
    this.#appended += 1;
    const name = `${this.#appended}`;
    return { type: 'ConfigRecord', resourceType: 4, resourceName: '', name, value: name };
  }

  #faultAgain(): void {
    if (this.#isHealed) return;
    this.after(this.random.below(2 * this.#faultPauseMs), () => this.#faultAgain());
    const fault = this.#drawFault();
    this.checks.count(fault);
    const { random, network } = this;
    const node = this.nodes[random.below(this.nodes.length)]!;
    const other = this.nodes[random.below(this.nodes.length)]!;
    if (fault === 'crash') this.#crash(this.#leaderOr(node));
    else if (fault === 'crash of all') for (const each of this.nodes) this.#crash(each);
    else if (fault === 'cut') {
      network.cut(node.id, other.id);
      if (random.chance(0.5)) network.cut(other.id, node.id);
    } else if (fault === 'loss') {
      network.lossShare = random.next() * 0.3;
      network.delayMaxMs = random.chance(0.2) ? 300 : 20;
    } else if (fault === 'pause') this.#leaderOr(node).pause(random.below(6_000));
    else if (fault === 'full disk') {
      node.store.isFull = node.store.endOffset > 0;
      this.after(random.below(3_000), () => {
        node.store.isFull = false;
      });
    } else if (fault === 'resignation') this.#resign(this.#leaderOr(node));
    else network.healAll();
  }

  #drawFault(): string {
    const entries = Object.entries(this.#weights);
    let left = this.random.below(entries.reduce((sum, [, weight]) => sum + weight, 0));
    for (const [fault, weight] of entries) {
      if (left < weight) return fault;
      left -= weight;
    }
    return 'heal';
  }

  #leaderOr(node: RaftSimNode): RaftSimNode {
    const leader = this.random.chance(0.5) ? this.nodes.find(({ isLeading }) => isLeading) : null;
    return leader ?? node;
  }

  #crash(node: RaftSimNode): void {
    node.crash();
    this.after(this.random.below(this.random.chance(0.2) ? 15_000 : 1_500), () =>
      this.#start(node),
    );
  }

  /** As at a stop: the process goes when the others have heard, or a little later. */
  #resign(node: RaftSimNode): void {
    if (node.quorum === null) return;
    const { life } = node;
    node.quorum.resign().then(
      () => undefined,
      (error: unknown) => assert.fail(String(error)),
    );
    this.after(500, () => {
      if (node.life === life) this.#crash(node);
    });
  }

  #replaceHost(): void {
    if (this.#isHealed) return;
    const node = this.nodes[this.random.below(this.nodes.length)]!;
    this.checks.count('replaced host');
    const { directoryId } = node;
    if (this.random.chance(0.2) && node.store.endOffset > 0) {
      // First its vote file is lost, and it must refuse to start.
      node.crash();
      node.store.stateText = null;
      node.start();
    }
    this.after(100, () => {
      node.wipe();
      this.#operator.remove(node, directoryId);
      this.#operator.add(node);
      this.after(this.random.below(3_000), () => this.#start(node));
    });
  }

  #operateAgain(): void {
    this.after(500, () => this.#operateAgain());
    if (this.#plan === 'voters come and go' && this.#operator.isDone && !this.#isHealed) {
      const node = this.nodes[this.random.below(this.nodes.length)]!;
      this.#operator.remove(node, node.directoryId);
      this.#operator.add(node);
    }
    this.#operator.act(this.nodes, (ms, run) => this.after(ms, run));
  }

  #heal(): void {
    this.#isHealed = true;
    this.network.healAll();
    for (const node of this.nodes) {
      node.store.isFull = false;
      node.resume();
      this.#start(node);
    }
  }

  /** Somebody leads, what was appended since all healed is committed, and everybody has all of it. */
  #isWell(): boolean {
    const { checks, nodes } = this;
    const first = nodes[0]!;
    return (
      this.#healedValue() !== null &&
      this.#operator.isDone &&
      nodes.filter(({ isLeading }) => isLeading).length === 1 &&
      nodes.every(
        (node) =>
          checks.reportedBy(node) === checks.endOffset && node.clusterId === first.clusterId,
      )
    );
  }

  #healedValue(): string | null {
    if (!this.#isHealed) return null;
    if (this.#healedFrom === Number.POSITIVE_INFINITY) this.#healedFrom = this.#appended;
    for (let value = this.#healedFrom + 1; value <= this.#appended; value += 1)
      if (this.checks.values.has(`${value}`)) return `${value}`;
    return null;
  }

  #describe(): string {
    const nodes = this.nodes.map((node) => {
      const { id, quorum, isLeading, store } = node;
      const role = quorum === null ? 'down' : isLeading ? 'leads' : `follows ${quorum.leaderId}`;
      return `${id} ${role} term ${quorum?.epoch} ${this.checks.reportedBy(node)}/${store.endOffset}`;
    });
    return `${this.#plan}; operator ${this.#operator.isDone ? 'done' : 'at work'}; ${nodes.join('; ')}`;
  }
}
