/** One node of a simulated quorum: a disk that outlives its processes, and at times a process on it. */
import assert from 'node:assert/strict';
import { metadataCodec } from '../../net/metadata_codec.ts';
import type { SilentNode } from '../../replication/metadata/broker_sessions.ts';
import type { MetadataBatch } from '../../replication/metadata/records.ts';
import type { RaftReply, RaftRequest } from '../../replication/raft/messages.ts';
import type { QuorumListener } from '../../replication/raft/quorum.ts';
import { RaftQuorum } from '../../replication/raft/raft_quorum.ts';
import type { RaftRule } from '../../replication/raft/raft_types.ts';
import { SimulatedStore } from '../replication/raft/simulated_store.ts';
import type { RaftChecks } from './raft_checks.ts';
import type { NetworkNode, RaftNetwork } from './raft_network.ts';
import type { SeededRandom } from './seeded_random.ts';

export interface NodeWorld {
  readonly random: SeededRandom;
  readonly network: RaftNetwork;
  readonly checks: RaftChecks;
  readonly voterIds: readonly number[];
  readonly without: RaftRule | null;
  nowMs(): number;
  after(ms: number, run: () => void): void;
  newDirectoryId(): string;
  failed(node: RaftSimNode, error: Error): void;
  sent(node: RaftSimNode, request: RaftRequest): void;
  /** Share of the writes and flushes that take long. */
  slowShareOf(node: RaftSimNode): number;
}

export class RaftSimNode implements NetworkNode {
  readonly id: number;
  readonly #world: NodeWorld;
  directoryId: string;
  store: SimulatedStore;
  quorum: RaftQuorum | null = null;
  life = 0;
  isLeading: boolean = false;
  /** What it said when it was elected last. */
  silent: SilentNode | null = null;
  #clusterId = '';
  #pausedUntilMs = 0;

  constructor(world: NodeWorld, id: number) {
    this.#world = world;
    this.id = id;
    this.directoryId = world.newDirectoryId();
    this.store = this.#newStore();
  }

  get isUp(): boolean {
    return this.quorum !== null;
  }

  get clusterId(): string {
    return this.#clusterId;
  }

  /** @param voterIds as this node's configuration says it */
  start(voterIds: readonly number[] = this.#world.voterIds): void {
    const { random, network, checks, without } = this.#world;
    const { life } = this;
    const isSingle = voterIds.length === 1;
    const endpointsOf = (voterId: number) =>
      isSingle ? [] : [{ name: 'CONTROLLER', host: `node${voterId}`, port: 9093 }];
    const quorum = new RaftQuorum({
      self: {
        voterId: this.id,
        voterDirectoryId: this.directoryId,
        endpoints: endpointsOf(this.id),
      },
      configuredVoters: voterIds.map((voterId) => ({ voterId, endpoints: endpointsOf(voterId) })),
      clusterId: this.#clusterId,
      newClusterId: this.#world.newDirectoryId(),
      onClusterId: async (clusterId) => {
        await this.#wait();
        this.#clusterId = clusterId;
      },
      store: this.store,
      stateStore: this.store,
      snapshots: null,
      codec: metadataCodec,
      transport: isSingle
        ? null
        : {
            send: (to, request, timeoutMs, done) => {
              this.#world.sent(this, request);
              network.send(this, to, request, timeoutMs, done);
            },
            learn: () => {},
          },
      timers: {
        now: () => this.#world.nowMs(),
        setTimer: (ms, run) => this.#setTimer(ms, run),
      },
      random,
      timeouts: {
        fetchTimeoutMs: 2_000,
        electionTimeoutMs: 1_000,
        electionBackoffMaxMs: 1_000,
        requestTimeoutMs: 2_000,
      },
      wallMs: () => 1_700_000_000_000 + Math.floor(this.#world.nowMs()),
      onWarning: () => {},
      ...(without === null ? {} : { without }),
    });
    this.quorum = quorum;
    checks.started(this);
    quorum.start(this.#listenerOf(life)).catch((error: unknown) => {
      if (this.life !== life) return;
      this.crash();
      checks.refused(this, String(error));
    });
  }

  /** Kills the process; what it had not flushed may be gone. */
  crash(): void {
    if (this.quorum === null) return;
    this.life += 1;
    this.quorum = null;
    this.isLeading = false;
    this.#pausedUntilMs = 0;
    this.store.crash();
    this.#world.network.crashed(this);
  }

  /** The host is replaced by an empty one. */
  wipe(): void {
    this.crash();
    this.directoryId = this.#world.newDirectoryId();
    this.store = this.#newStore();
    this.#clusterId = '';
  }

  pause(ms: number): void {
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, this.#world.nowMs() + ms);
  }

  resume(): void {
    this.#pausedUntilMs = 0;
  }

  whenAwake(life: number, run: () => void): void {
    if (this.life !== life || this.quorum === null) return;
    const leftMs = this.#pausedUntilMs - this.#world.nowMs();
    if (leftMs > 0) this.#world.after(Math.min(leftMs, 500), () => this.whenAwake(life, run));
    else run();
  }

  handle(request: RaftRequest, done: (reply: RaftReply) => void): void {
    assert(this.quorum !== null);
    this.quorum.handle(request, done);
  }

  #listenerOf(life: number): QuorumListener {
    const { checks } = this.#world;
    const ifAlive = (run: () => void): void => {
      assert(this.life === life, 'a dead process goes on');
      run();
    };
    return {
      onCommitted: (batch: MetadataBatch) => ifAlive(() => checks.committed(this, batch)),
      onElected: (epoch, nextOffset, silent) =>
        ifAlive(() => {
          this.silent = silent;
          checks.elected(this, epoch, nextOffset);
          this.isLeading = true;
        }),
      onResigned: () =>
        ifAlive(() => {
          assert(this.isLeading, 'a resignation of somebody who does not lead');
          this.isLeading = false;
        }),
      onFailed: (error) => this.#world.failed(this, error),
    };
  }

  #newStore(): SimulatedStore {
    const { random } = this.#world;
    return new SimulatedStore(
      (bound) => random.below(bound),
      () => this.#wait(),
    );
  }

  #wait(): Promise<void> {
    const { random } = this.#world;
    const slowShare = this.#world.slowShareOf(this);
    const ms = random.chance(slowShare) ? 20 + random.below(300) : 0.3 + random.next() * 4;
    const { life } = this;
    return new Promise((resolve) => {
      this.#world.after(ms, () => this.whenAwake(life, resolve));
    });
  }

  #setTimer(ms: number, run: () => void): () => void {
    const { life } = this;
    let isCancelled = false;
    this.#world.after(Math.max(0.1, ms), () =>
      this.whenAwake(life, () => {
        if (!isCancelled) run();
      }),
    );
    return () => {
      isCancelled = true;
    };
  }
}
