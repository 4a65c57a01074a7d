/** Keeps out of the core what is not even of the right form: such an answer is as good as none. */

import type { RaftFailure, RaftReply, RaftRequest } from './messages.ts';
import { forEachBatch } from './metadata_batch.ts';

interface FetchedLog {
  readonly endOffset: number;
  readonly lastEpoch: number;
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
  const problem = problemOf(log, reply.records, reply.leaderEpoch);
  if (problem === null) return reply;
  warn(`The leader of the metadata quorum sent what cannot be appended: ${problem}`);
  return broken;
}

/**
 * Whether batches of a leader may be appended at the log's end: whole, undamaged, in order, of no later term.
 * Returns what is wrong with them, or null.
 */
function problemOf(log: FetchedLog, batches: Uint8Array, leaderEpoch: number): string | null {
  let nextOffset = log.endOffset;
  let epoch = log.lastEpoch;
  let problem: string | null = null;
  try {
    forEachBatch(batches, (batch) => {
      if (batch.firstOffset !== nextOffset || batch.epoch < epoch || batch.epoch > leaderEpoch)
        problem ??= `a batch at offset ${batch.firstOffset} of term ${batch.epoch} for offset ${nextOffset}`;
      nextOffset = batch.lastOffset + 1;
      epoch = batch.epoch;
    });
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  return problem;
}
