/** Keeps out of the core what is not even of the right form: such an answer is as good as none. */
import type { RaftFailure, RaftReply, RaftRequest } from './messages.ts';

interface FetchedLog {
  readonly endOffset: number;
  problemOf(batches: Uint8Array, leaderEpoch: number): string | null;
}

const broken: RaftFailure = { type: 'failure', reason: 'closed' };

export function checkedAnswer(
  log: FetchedLog,
  request: RaftRequest,
  reply: RaftReply | RaftFailure,
  warn: (message: string) => void,
): RaftReply | RaftFailure {
  if (reply.type === 'failure') return reply;
  if (reply.type !== request.type) {
    warn(`A member of the metadata quorum answered ${request.type} with ${reply.type}.`);
    return broken;
  }
  if (request.type !== 'fetch' || reply.type !== 'fetch' || reply.records.length === 0)
    return reply;
  // A late answer to an older fetch does not fit the log's end any more, which is nobody's fault.
  if (request.fetchOffset !== log.endOffset) return broken;
  const problem = log.problemOf(reply.records, reply.leaderEpoch);
  if (problem === null) return reply;
  warn(`The leader of the metadata quorum sent what cannot be appended: ${problem}`);
  return broken;
}
