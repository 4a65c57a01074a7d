/** The state of the quorum for people: what DescribeQuorum tells. */
import type { Voter } from '../metadata/records.ts';
import type { ReplicaKey } from './messages.ts';
import type { MetadataQuorum, QuorumDescription, ReplicaProgress } from './quorum.ts';
import type { RaftCore } from './raft_core.ts';
import type { Progress } from './raft_leader.ts';
import { isSameReplica, keyOf, type RaftLogView } from './raft_types.ts';

/** As Kafka's: an observer that has not fetched for so long is gone. */
const observerSessionMs = 300_000;

export interface DescriptionClock {
  readonly self: Voter;
  readonly wallMs: number;
  /** Wall-clock time of a monotonic one, -1 of -1. */
  readonly wallOf: (ms: number) => number;
}

export function describeQuorum(
  quorum: MetadataQuorum,
  log: RaftLogView,
  core: RaftCore | null,
  { self, wallMs, wallOf }: DescriptionClock,
): QuorumDescription {
  const { voters, leaderId, epoch } = quorum;
  const leader = core?.leader ?? null;
  const progressOf = (key: ReplicaKey): ReplicaProgress => {
    if (key.id === self.voterId && key.directoryId === self.voterDirectoryId)
      return describe(key, log.flushedOffset, wallMs, wallMs);
    const known: Progress | null = leader?.progressOf(key) ?? null;
    if (known === null) return describe(key, -1, -1, -1);
    return describe(key, known.endOffset, wallOf(known.lastFetchMs), wallOf(known.lastCaughtUpMs));
  };
  const observers = [...(leader?.replicas ?? [])].filter(
    ({ key, lastFetchMs }) =>
      wallMs - wallOf(lastFetchMs) < observerSessionMs &&
      !voters.some((voter) => isSameReplica(voter, key)),
  );
  return {
    leaderId,
    leaderEpoch: epoch,
    highWatermark: core?.highWatermark ?? -1,
    currentVoters: voters.map((voter) => progressOf(keyOf(voter))),
    observers: observers.map(({ key }) => progressOf(key)),
    voters,
  };
}

function describe(
  key: ReplicaKey,
  logEndOffset: number,
  lastFetchTimestamp: number,
  lastCaughtUpTimestamp: number,
): ReplicaProgress {
  return {
    replicaId: key.id,
    replicaDirectoryId: key.directoryId,
    logEndOffset,
    lastFetchTimestamp,
    lastCaughtUpTimestamp,
  };
}
