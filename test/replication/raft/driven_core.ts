/** Voter 2 of three as a core that a test drives by hand. */
import assert from 'node:assert/strict';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { uuidZero, type Voter } from '../../../replication/metadata/records.ts';
import type {
  FetchReply,
  FetchRequest,
  RaftReply,
  RaftRequest,
  SnapshotId,
  VoteRequest,
} from '../../../replication/raft/messages.ts';
import type { QuorumState } from '../../../replication/raft/quorum_state.ts';
import { RaftCore } from '../../../replication/raft/raft_core.ts';
import type { RaftEffect, RaftEvent, RaftLogView } from '../../../replication/raft/raft_types.ts';
import { clusterId, uuids } from '../metadata/fixtures.ts';
import { raftTimeouts } from './quorum_of_one.ts';

const directory = uuids(9);
export const voters: readonly Voter[] = [1, 2, 3].map((voterId) => ({
  voterId,
  voterDirectoryId: directory(),
  endpoints: [{ name: 'CONTROLLER', host: `host${voterId}`, port: 9093 }],
}));

/** A log of batches of one record, by epoch. */
class FakeLog implements RaftLogView {
  readonly epochs: number[];
  flushedOffset: number;
  voters: readonly Voter[] | null = voters;
  votersOffset = 0;
  startOffset = 0;
  snapshotId: SnapshotId | null = null;

  constructor(epochs: readonly number[]) {
    this.epochs = [...epochs];
    this.flushedOffset = epochs.length;
  }

  get endOffset(): number {
    return this.epochs.length;
  }

  get lastEpoch(): number {
    return this.epochs.at(-1) ?? 0;
  }

  endOffsetForEpoch(epoch: number): { epoch: number; endOffset: number } {
    const higher = this.epochs.findIndex((known) => known > epoch);
    const endOffset = higher === -1 ? this.endOffset : higher;
    return { epoch: this.epochs[endOffset - 1] ?? epoch, endOffset };
  }
}

interface Sent {
  readonly to: number;
  readonly token: number;
  readonly request: RaftRequest;
}

/** Voter 2 of three, driven by hand. */
export class Driven {
  readonly log: FakeLog;
  readonly core: RaftCore;
  nowMs = 1_000;
  effects: RaftEffect[] = [];

  constructor(epochs: readonly number[], state: Partial<QuorumState> = {}) {
    this.log = new FakeLog(epochs);
    const self = voters[1]!;
    this.core = new RaftCore(
      {
        self: { id: 2, directoryId: self.voterDirectoryId },
        endpoints: self.endpoints,
        configuredVoters: voters,
        timeouts: raftTimeouts,
        snapshotBytesMax: 100,
        random: () => 0.5,
        newClusterId: 'another cluster',
        without: null,
      },
      this.log,
      {
        state: {
          leaderId: -1,
          leaderEpoch: this.log.lastEpoch,
          votedId: -1,
          votedDirectoryId: uuidZero,
          ...state,
        },
        clusterId,
      },
      this.nowMs,
    );
  }

  step(event: RaftEvent): RaftEffect[] {
    this.effects = this.core.step(event, this.nowMs);
    for (const effect of this.effects) {
      if (effect.type === 'appendControl')
        for (const _ of effect.records) this.log.epochs.push(this.core.epoch);
      if (effect.type === 'truncate') this.log.epochs.length = effect.endOffset;
    }
    return this.effects;
  }

  ask(request: RaftRequest): RaftReply {
    const effects = this.step({ type: 'request', requestId: 7, request });
    const reply = effects.find((effect) => effect.type === 'reply');
    assert(reply !== undefined, 'no answer');
    return reply.reply;
  }

  answer(sent: Sent, reply: RaftReply | 'refused' | 'closed'): void {
    const { to: from, token, request } = sent;
    const answer = typeof reply === 'string' ? { type: 'failure' as const, reason: reply } : reply;
    this.step({ type: 'reply', from, token, request, reply: answer });
  }

  get sent(): Sent[] {
    return this.effects.flatMap((effect) => (effect.type === 'send' ? effect : []));
  }

  requests(type: RaftRequest['type']): Sent[] {
    return this.sent.filter(({ request }) => request.type === type);
  }

  types(): string[] {
    return this.effects.map(({ type }) => type);
  }

  wait(ms: number): void {
    this.nowMs += ms;
    this.step({ type: 'tick' });
  }

  /** Waits until it asks for something. */
  until(type: RaftRequest['type']): Sent[] {
    for (let turn = 0; turn < 20 && this.requests(type).length === 0; turn += 1) {
      this.nowMs = Math.max(this.nowMs, this.core.wakeAtMs);
      this.step({ type: 'tick' });
    }
    return this.requests(type);
  }

  follow(leaderId: number, leaderEpoch: number): Sent {
    const self = voters[1]!;
    this.ask({
      type: 'beginQuorumEpoch',
      clusterId,
      voterId: 2,
      voterDirectoryId: self.voterDirectoryId,
      leaderId,
      leaderEpoch,
      leaderEndpoints: [],
    });
    const [fetch] = this.requests('fetch');
    assert(fetch !== undefined);
    return fetch;
  }
}

export function vote(from: number, overrides: Partial<VoteRequest> = {}): VoteRequest {
  return {
    type: 'vote',
    clusterId,
    voterId: 2,
    voterDirectoryId: voters[1]!.voterDirectoryId,
    replicaEpoch: 2,
    replicaId: from,
    replicaDirectoryId: voters[from - 1]!.voterDirectoryId,
    lastOffsetEpoch: 1,
    lastOffset: 3,
    preVote: false,
    ...overrides,
  };
}

export function fetched(overrides: Partial<FetchReply> = {}): FetchReply {
  return {
    type: 'fetch',
    errorCode: ErrorCode.NONE,
    leaderId: 1,
    leaderEpoch: 1,
    highWatermark: 0,
    logStartOffset: 0,
    divergingEpoch: null,
    snapshotId: null,
    records: new Uint8Array(0),
    ...overrides,
  };
}

export function granted(voteGranted: boolean, leaderEpoch: number, leaderId = -1): RaftReply {
  return { type: 'vote', errorCode: ErrorCode.NONE, leaderId, leaderEpoch, voteGranted };
}

/** What a follower asks for that has a log up to offset 3, in term 1. */
export function fetchOf(from: number, overrides: Partial<FetchRequest> = {}): FetchRequest {
  return {
    type: 'fetch',
    clusterId,
    replicaId: from,
    replicaDirectoryId: voters[from - 1]!.voterDirectoryId,
    currentLeaderEpoch: 1,
    fetchOffset: 3,
    lastFetchedEpoch: 1,
    highWatermark: 0,
    maxWaitMs: 500,
    maxBytes: 1_000,
    ...overrides,
  };
}
