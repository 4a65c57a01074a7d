/** A quorum of one on any store: no transport, no timer that matters. */
import assert from 'node:assert/strict';
import { metadataCodec } from '../../../net/metadata_codec.ts';
import type { Voter } from '../../../replication/metadata/records.ts';
import type { MetadataLogStore } from '../../../replication/raft/metadata_log_store.ts';
import type { QuorumStateStore } from '../../../replication/raft/quorum_state.ts';
import { RaftQuorum } from '../../../replication/raft/raft_quorum.ts';
import type { SnapshotSettings } from '../../../replication/raft/raft_snapshots.ts';
import { clusterId, uuids } from '../metadata/fixtures.ts';

export const loneVoter: Voter = { voterId: 1, voterDirectoryId: uuids(5)(), endpoints: [] };

export const raftTimeouts = {
  fetchTimeoutMs: 2_000,
  electionTimeoutMs: 1_000,
  electionBackoffMaxMs: 1_000,
  requestTimeoutMs: 2_000,
};

export function quorumOfOne(
  store: MetadataLogStore,
  stateStore: QuorumStateStore,
  onWarning: (message: string) => void,
  self: Voter = loneVoter,
  snapshots: SnapshotSettings | null = null,
): RaftQuorum {
  return new RaftQuorum({
    self,
    configuredVoters: [],
    clusterId,
    newClusterId: clusterId,
    onClusterId: () => assert.fail('a node with a cluster takes another'),
    store,
    stateStore,
    snapshots,
    codec: metadataCodec,
    transport: null,
    timers: { now: () => 0, setTimer: () => assert.fail('a quorum of one needs no timer') },
    random: { next: () => 0 },
    timeouts: raftTimeouts,
    wallMs: () => 1_700_000_000_000,
    onWarning,
  });
}
