/**
 * The vote file of a voter (`quorum-state`, KIP-595 and KIP-853) in Kafka's JSON form. Raft's safety rests on it: a term
 * and a vote are on stable storage before anybody hears of them.
 */
import { uuidZero } from '../metadata/records.ts';

export interface QuorumState {
  /** -1: unknown. */
  readonly leaderId: number;
  readonly leaderEpoch: number;
  /** -1: no vote in this term. */
  readonly votedId: number;
  readonly votedDirectoryId: string;
}

export const initialQuorumState: QuorumState = {
  leaderId: -1,
  leaderEpoch: 0,
  votedId: -1,
  votedDirectoryId: uuidZero,
};

/** Where the vote file lives. */
export interface QuorumStateStore {
  /** The file's text, null when there is none. Throws when it cannot be read. */
  load(): string | null;
  /** Replaces the file; fulfilled when the new text is on stable storage. A crash before leaves the old or the new one. */
  save(text: string): Promise<void>;
}

/** The newest version of the file (1): directory ids, no cluster id. */
export function formatQuorumState(state: QuorumState): string {
  const { leaderId, leaderEpoch, votedId, votedDirectoryId } = state;
  return JSON.stringify({ leaderId, leaderEpoch, votedId, votedDirectoryId, data_version: 1 });
}

/** Reads version 0 or 1. Returns null for a text that is neither: the caller decides what a damaged file means. */
export function parseQuorumState(text: string): QuorumState | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof value !== 'object' || value === null) return null;
  const fields: Partial<Record<string, unknown>> = { ...value };
  const { leaderId, leaderEpoch, votedId, votedDirectoryId, data_version: version } = fields;
  if (version !== 0 && version !== 1) return null;
  if (!isInt32(leaderId) || !isInt32(leaderEpoch) || !isInt32(votedId)) return null;
  const directory = typeof votedDirectoryId === 'string' ? votedDirectoryId : uuidZero;
  return { leaderId, leaderEpoch, votedId, votedDirectoryId: directory };
}

function isInt32(value: unknown): value is number {
  return typeof value === 'number' && (value | 0) === value;
}
