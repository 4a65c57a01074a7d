/** What a replica reads and checks before it takes part in its quorum. */
import type { Voter } from '../metadata/records.ts';
import type { MetadataLogStore } from './metadata_log_store.ts';
import {
  initialQuorumState,
  parseQuorumState,
  type QuorumState,
  type QuorumStateStore,
} from './quorum_state.ts';
import type { RaftLog } from './raft_log.ts';
import { type ConfiguredVoter, isSameReplica } from './raft_types.ts';

export interface StoredQuorum {
  readonly store: MetadataLogStore;
  readonly stateStore: QuorumStateStore;
  readonly onWarning: (message: string) => void;
}

/**
 * A vote file that is lost or damaged is no danger for a node that is its only voter: every term in which anything was
 * promised is in the log, and there is nobody else who could have been voted for. One of several might vote a second
 * time in a term, so it is refused.
 * @throws Error with a text for people
 */
export function loadQuorumState(
  { store, stateStore, onWarning }: StoredQuorum,
  isAlone: boolean,
): QuorumState {
  const text = stateStore.load();
  if (text === null && store.endOffset === 0) return initialQuorumState;
  const state = text === null ? null : parseQuorumState(text);
  if (state !== null) return state;
  const problem = `The vote file (quorum-state) is ${text === null ? 'missing' : 'damaged'}`;
  if (!isAlone)
    throw new Error(
      `${problem}: this voter cannot know whom it has voted for. Empty its data directory, so that it joins as a new ` +
        'one, then remove the old voter from the quorum and add the new one.',
    );
  onWarning(`${problem}; the term is taken from the metadata log.`);
  return initialQuorumState;
}

/**
 * Sees to it that the log of a node without others is its own, and that a log has voters. Kafka's quorums with kraft.version
 * 0 name none in it: they are those of the configuration (KIP-595). Without directory ids nobody could tell which of
 * several nodes are still the ones that voted, so only a lone one is taken.
 * @throws Error with a text for people
 */
export function settleVoters(log: RaftLog, self: Voter, isAlone: boolean): void {
  if (log.voters !== null) {
    if (isAlone) checkOwnLog(log.voters, self);
  } else if (log.endOffset > 0) {
    if (!isAlone)
      throw new Error(
        'The metadata log names no voters: it is of a cluster with kraft.version 0. Raise that to 1 with the product that ' +
          'wrote it, or start with an empty data directory.',
      );
    log.assumeVoters([self]);
  }
}

/** `controller.quorum.voters` in ascending order; this node alone where the key is missing. */
export function configuredVotersOf({
  configuredVoters,
  self: { voterId, endpoints },
}: {
  readonly configuredVoters: readonly ConfiguredVoter[];
  readonly self: Voter;
}): readonly ConfiguredVoter[] {
  if (configuredVoters.length === 0) return [{ voterId, endpoints }];
  return [...configuredVoters].sort((one, other) => one.voterId - other.voterId);
}

/** What is to be said of a node that the voters do not name; null: they do. */
export function observerText(
  voters: readonly Voter[],
  { voterId, voterDirectoryId }: Voter,
): string | null {
  const key = { id: voterId, directoryId: voterDirectoryId };
  if (voters.some((voter) => isSameReplica(voter, key))) return null;
  return (
    `This node (${voterId}, directory ${voterDirectoryId}) is no voter of the metadata quorum and follows it as an ` +
    'observer. To make it one, remove the voter that it replaces, if any, and add it: ' +
    'kafka-metadata-quorum remove-controller, add-controller.'
  );
}

function checkOwnLog(voters: readonly Voter[], self: Voter): void {
  const { voterId, voterDirectoryId } = self;
  const [only] = voters;
  const isOwn = only?.voterId === voterId && only.voterDirectoryId === voterDirectoryId;
  if (voters.length === 1 && isOwn) return;
  const names = voters.map(
    (voter) => `node ${voter.voterId} (directory ${voter.voterDirectoryId})`,
  );
  throw new Error(
    `The metadata log belongs to the voters ${names.join(', ')}; this is node ${voterId} (directory ` +
      `${voterDirectoryId}). Set node.id and controller.quorum.voters as they were, or start with an empty data directory.`,
  );
}
