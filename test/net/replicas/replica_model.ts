/**
 * Two or three replicas of a partition, driven by a seed: producers, fetches that are late or lost, brokers that are
 * killed, lose power or are only taken for dead, elections, log starts that move. After every step what any replica holds
 * for committed is compared, byte for byte, with what has been committed before; in the end all heals and all logs
 * must be one.
 */
import assert from 'node:assert/strict';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type { PartitionFollower } from '../../../replication/partition/follower.ts';
import type {
  FetchedPartition,
  FollowerFetchState,
} from '../../../replication/partition/follower_fetch.ts';
import type { IsrAnswer } from '../../../replication/partition/isr.ts';
import type { AppendWaiter } from '../../../replication/partition/leader.ts';
import { SeededRandom } from '../../sim/seeded_random.ts';
import { batchOf } from '../data_path/requests.ts';
import { WorldClock } from '../data_path/world_clock.ts';
import { CommittedHistory } from './committed_history.ts';
import { ModelController } from './model_controller.ts';
import { ReplicaNode } from './replica_node.ts';

/** Faults of the program that a run must notice. */
export type Mutant =
  | 'none'
  | 'high watermark ahead of the ISR'
  | 'expansion too early'
  | 'truncation to the high watermark'
  | 'fetch before the flush'
  | 'divergence not looked for';

/** What travels. */
interface Message {
  readonly deliver: () => void;
  /** It is lost, and who waits for it gives it up; null: nobody waits. */
  readonly lose: (() => void) | null;
}

interface Fetching {
  readonly follower: PartitionFollower;
  state: 'new' | 'preparing' | 'ready' | 'sent' | 'receiving';
  /** Of the request under way; another one's answer is not taken. */
  token: number;
}

export interface RunCounts {
  acknowledged: number;
  committed: number;
  cuts: number;
  expansions: number;
  shrinks: number;
  elections: number;
  crashes: number;
}

const fetchBytes = 600;

export class ReplicaModel {
  readonly counts: RunCounts = {
    acknowledged: 0,
    committed: 0,
    cuts: 0,
    expansions: 0,
    shrinks: 0,
    elections: 0,
    crashes: 0,
  };
  readonly #random: SeededRandom;
  readonly #clock = new WorldClock();
  readonly #controller: ModelController;
  readonly #nodes: ReplicaNode[];
  readonly #mutant: Mutant;
  readonly #mayLosePower: boolean;
  /** The broker whose disk is slow, if there is one with that id. */
  readonly #slowId: number;
  #messages: Message[] = [];
  readonly #fetching = new Map<ReplicaNode, Fetching>();
  readonly #history = new CommittedHistory();
  #nextValue = 0;
  #nextToken = 1;
  #healing: boolean = false;

  constructor(seed: number, mutant: Mutant) {
    this.#random = new SeededRandom(seed);
    this.#mutant = mutant;
    this.#mayLosePower = this.#random.chance(0.8);
    this.#slowId = this.#random.below(6);
    const ids = this.#random.chance(0.5) ? [1, 2, 3] : [1, 2];
    this.#controller = new ModelController();
    // Without power cuts what is written is safe.
    const settings = this.#mayLosePower ? [] : ['log.durability=os'];
    this.#nodes = ids.map(
      (id) => new ReplicaNode(id, this.#controller, this.#clock, seed, settings),
    );
    for (const node of this.#nodes) node.start();
    this.#controller.begin(ids, {
      'min.insync.replicas': String(1 + this.#random.below(2)),
      'segment.bytes': '1500',
      'index.interval.bytes': '200',
    });
  }

  async run(steps: number): Promise<void> {
    for (let step = 0; step < steps; step += 1) {
      this.#step();
      // What is promised comes about.
      await null;
      this.#check();
    }
    await this.#heal();
  }

  #step(): void {
    const random = this.#random;
    const node = this.#nodes[random.below(this.#nodes.length)]!;
    this.#clock.advance(random.below(40));
    const dice = random.below(100);
    if (!node.isUp) {
      if (dice < 20) node.start();
      return;
    }
    if (dice < 14) this.#produce(node);
    else if (dice < 40) this.#advance(node);
    else if (dice < 50) this.#fetch(node);
    else if (dice < 65) this.#deliver();
    else if (dice < 70) node.endTurn();
    else if (dice < 74) this.#flush(node);
    else if (dice < 82) while (node.deltas.length > 0 && random.chance(0.8)) node.applyNext();
    else if (dice < 90) this.#ask(node);
    else if (dice < 92) node.partitions?.tick();
    else if (dice < 93) node.checkpoint();
    else this.#disturb(node, random.below(70));
  }

  /** Nothing is in the way for a moment. */
  #advance(node: ReplicaNode): void {
    const random = this.#random;
    if (random.chance(0.3)) this.#controller.unfence(node.id);
    while (node.deltas.length > 0 && random.chance(0.7)) node.applyNext();
    this.#fetch(node);
    this.#deliver();
    this.#deliver();
    node.endTurn();
    this.#flush(node);
    if (random.chance(0.5)) this.#ask(node);
  }

  #flush(node: ReplicaNode): void {
    if (node.id !== this.#slowId || this.#random.chance(0.1)) node.disk.endFlushes();
  }

  #disturb(node: ReplicaNode, dice: number): void {
    const controller = this.#controller;
    if (dice < 8) this.#crash(node);
    else if (dice < 12) controller.fence(node.id);
    else if (dice < 40) controller.unfence(node.id);
    else if (dice < 50) controller.elect(node.id);
    else if (dice < 54) this.#deleteRecords(node);
    else if (dice < 62) {
      const count = this.#random.below(this.#messages.length + 1);
      for (const { lose } of this.#messages.splice(0, count)) lose?.();
    } else {
      // The connection breaks: the request may arrive all the same.
      const fetching = this.#fetching.get(node);
      if (fetching?.state === 'sent') fetching.state = 'ready';
    }
  }

  #crash(node: ReplicaNode): void {
    this.counts.crashes += 1;
    const isPowerCut = this.#mayLosePower && this.#random.chance(0.5);
    // One event may take them all.
    const all = this.#random.chance(0.2) ? this.#nodes : [node];
    for (const one of all) if (one.isUp) one.stop(isPowerCut);
  }

  #produce(node: ReplicaNode): void {
    this.#nextValue += 1;
    const count = 1 + this.#random.below(3);
    const values = Array.from({ length: count }, (_, at) => `${this.#nextValue}.${at}`);
    const batch = batchOf(values);
    const waiter: AppendWaiter = {
      endOffset: 0,
      // From now on the memory may hold anything.
      onWritten: () => {},
      onCommitted: (error) => {
        if (error !== ErrorCode.NONE) return;
        this.counts.acknowledged += 1;
        this.#history.acknowledged(waiter.endOffset, batch);
      },
    };
    node.append(batch, this.#random.chance(0.7), waiter);
  }

  #deleteRecords(node: ReplicaNode): void {
    const leader = node.leader;
    if (leader === undefined) return;
    const { log, highWatermark } = leader;
    const offset = log.logStartOffset + this.#random.below(highWatermark - log.logStartOffset + 1);
    leader.advanceLogStart(offset);
  }

  /** What a follower does next of its own accord. */
  #fetch(node: ReplicaNode): void {
    const { follower } = node;
    if (follower === undefined) return;
    let fetching = this.#fetching.get(node);
    if (fetching?.follower !== follower) {
      fetching = { follower, state: 'new', token: 0 };
      this.#fetching.set(node, fetching);
      // As it was before KIP-101.
      if (this.#mutant === 'truncation to the high watermark')
        follower.log.truncateTo(follower.highWatermark);
    }
    if (fetching.state === 'new') {
      const mine = fetching;
      mine.state = 'preparing';
      follower.prepare((error) => {
        mine.state = error === ErrorCode.NONE ? 'ready' : 'new';
      });
    }
    if (fetching.state === 'ready') this.#send(node, fetching);
  }

  #send(node: ReplicaNode, fetching: Fetching): void {
    let asked = fetching.follower.fetchState();
    if (this.#mutant === 'fetch before the flush')
      asked = { ...asked, fetchOffset: fetching.follower.log.logEndOffset };
    if (this.#mutant === 'divergence not looked for') asked = { ...asked, lastFetchedEpoch: -1 };
    const target = this.#nodes.find(({ id }) => id === asked.leaderId);
    if (target === undefined || target === node) return;
    const { brokerEpoch } = node;
    fetching.state = 'sent';
    fetching.token = this.#nextToken;
    this.#nextToken += 1;
    const { token } = fetching;
    this.#messages.push({
      deliver: () => {
        if (!target.isUp) return;
        const answer = target.serve(node.id, brokerEpoch, asked, fetchBytes);
        this.#messages.push({
          deliver: () => this.#receive(node, fetching, token, answer),
          lose: null,
        });
      },
      lose: null,
    });
  }

  #receive(node: ReplicaNode, fetching: Fetching, token: number, answer: FetchedPartition): void {
    const { follower } = fetching;
    if (node.follower !== follower || fetching.state !== 'sent' || fetching.token !== token) return;
    const isForFollower =
      answer.errorCode === ErrorCode.NONE || answer.errorCode === ErrorCode.OFFSET_OUT_OF_RANGE;
    if (!isForFollower) {
      fetching.state = 'new';
      return;
    }
    if (answer.diverging !== null || answer.errorCode !== ErrorCode.NONE) this.counts.cuts += 1;
    fetching.state = 'receiving';
    follower.receive(answer, this.#clock.wallMs(), {
      onWritten: () => {
        // Whoever still looks at the memory shall notice.
        answer.records?.fill(0xdd);
      },
      onReplicated: (error) => {
        fetching.state = error === ErrorCode.NONE ? 'ready' : 'new';
      },
    });
    if (this.#mutant === 'fetch before the flush' && fetching.state === 'receiving')
      this.#send(node, fetching);
  }

  /** The oldest messages first, mostly; each connection keeps its order, since it has one request at a time. */
  #deliver(): void {
    const at = this.#random.chance(0.8) ? 0 : this.#random.below(this.#messages.length + 1);
    const [message] = this.#messages.splice(at, 1);
    message?.deliver();
  }

  /** The node's wishes reach the controller, and its answer comes back or is lost. */
  #ask(node: ReplicaNode): void {
    const { life } = node;
    for (const wish of node.wishes.splice(0)) {
      const isLost = !this.#healing && this.#random.chance(0.2);
      if (isLost && this.#random.chance(0.5)) {
        wish.leader.proposalAnswered(wish.proposal, null);
        continue;
      }
      const before = this.#controller.partition.isr.length;
      const answer = this.#controller.alterPartition(node.id, wish.proposal);
      const after = this.#controller.partition.isr.length;
      if (after > before) this.counts.expansions += 1;
      if (after < before) this.counts.shrinks += 1;
      const say = (said: IsrAnswer | null): void => {
        if (node.life === life) wish.leader.proposalAnswered(wish.proposal, said);
      };
      this.#messages.push({ deliver: () => say(isLost ? null : answer), lose: () => say(null) });
    }
  }

  #check(): void {
    for (const node of this.#nodes) {
      const { replica, leader } = node;
      if (replica === undefined) continue;
      this.#history.compare(`broker ${node.id} (${leader ? 'leads' : 'follows'})`, replica);
    }
    const { leaderEpoch } = this.#controller.partition;
    this.counts.elections = leaderEpoch;
    this.counts.committed = this.#history.count;
  }

  async #heal(): Promise<void> {
    this.#healing = true;
    for (const node of this.#nodes) if (!node.isUp) node.start();
    for (let round = 0; round < 400; round += 1) {
      this.#clock.advance(50);
      for (const node of this.#nodes) {
        this.#controller.unfence(node.id);
        while (node.deltas.length > 0) node.applyNext();
        // A connection that lost its answer breaks.
        const fetching = this.#fetching.get(node);
        if (round % 10 === 0 && fetching?.state === 'sent') fetching.state = 'ready';
        this.#fetch(node);
        node.endTurn();
        node.disk.endFlushes();
        node.partitions?.tick();
        this.#ask(node);
      }
      for (const message of this.#messages.splice(0)) message.deliver();
      await null;
      this.#check();
      if (this.#isHealed()) break;
    }
    assert(this.#isHealed(), `does not heal: ${this.#describe()}`);
    this.#history.checkAcknowledged();
  }

  #isHealed(): boolean {
    const { isr, replicas } = this.#controller.partition;
    const ends = new Set<number>();
    for (const node of this.#nodes) {
      const { replica } = node;
      if (replica === undefined || node.isBusy || node.deltas.length > 0) return false;
      const { log, highWatermark } = replica;
      if (highWatermark !== log.logEndOffset) return false;
      ends.add(highWatermark);
    }
    return ends.size === 1 && isr.length === replicas.length;
  }

  #describe(): string {
    const nodes = this.#nodes.map((node) => {
      const { replica, follower } = node;
      const state: FollowerFetchState | undefined = follower?.fetchState();
      return {
        id: node.id,
        leads: node.leader !== undefined,
        start: replica?.log.logStartOffset,
        end: replica?.log.logEndOffset,
        flushed: replica?.log.flushedOffset,
        highWatermark: replica?.highWatermark,
        state,
        fetching: this.#fetching.get(node)?.state,
        lines: node.lines.slice(-5),
      };
    });
    return JSON.stringify({ partition: this.#controller.partition, nodes }, null, 1);
  }
}
