/**
 * What threads say to each other about partitions: kinds of requests and answers, and which word of a descriptor holds
 * what. See `engine/thread/link.ts` for the words in front (kind, exchange, last).
 *
 * Offsets, positions and ids are numbers; timestamps are 64-bit integers (`longs`).
 */
import { linkLimits } from '../../engine/thread/link.ts';
import type { Words } from '../../engine/thread/ring.ts';

export const Ask = {
  append: 1,
  look: 2,
  unpin: 3,
  findOffset: 4,
  endOfEpoch: 5,
  replicate: 6,
  followerState: 7,
} as const;
export const Answer = {
  written: 1,
  committed: 2,
  refused: 3,
  looked: 4,
  foundOffset: 5,
  endOfEpoch: 6,
  followed: 7,
} as const;

/** Word 2 of every request but `unpin`: the partition's number. */
export const partitionWord = 2;

export const AppendWord = {
  slab: 3,
  start: 4,
  length: 5,
  flags: 6,
  nowMs: 7,
  lastOffsetDelta: 8,
  producerId: 9,
  producerEpoch: 10,
  baseSequence: 11,
  maxTimestamp: 12,
} as const;
export const AppendFlag = {
  allReplicas: 1,
  isTransactional: 2,
  rewriteHeader: 4,
} as const;

/** `error` is word 3 of every answer. */
export const errorWord = 3;
export const WrittenWord = { baseOffset: 4, logStartOffset: 5, logAppendTimeMs: 6 } as const;
/** Of `refused`: length of the text, and where its bytes begin. */
const RefusedWord = { textBytes: 4, text: 5 } as const;

export const LookWord = {
  fetchOffset: 3,
  maxBytes: 4,
  currentLeaderEpoch: 5,
  lastFetchedEpoch: 6,
  flags: 7,
  /** Of a follower; -1: a client looks. */
  replicaId: 8,
  replicaEpoch: 9,
} as const;
export const LookFlag = { readCommitted: 1, watch: 2 } as const;
export const LookedWord = {
  pin: 4,
  fd: 5,
  position: 6,
  length: 7,
  highWatermark: 8,
  lastStableOffset: 9,
  logStartOffset: 10,
  bytes: 11,
  isDiverging: 12,
  divergingEpoch: 13,
  divergingEnd: 14,
} as const;

/** Of `unpin`. */
export const pinWord = 2;

export const FindOffsetWord = {
  currentLeaderEpoch: 3,
  isolationLevel: 4,
  timestamp: 5,
} as const;
export const FoundOffsetWord = { offset: 4, timestamp: 5, leaderEpoch: 6 } as const;

export const EndOfEpochWord = { currentLeaderEpoch: 3, epoch: 4 } as const;
export const EndedWord = { epoch: 4, endOffset: 5 } as const;

/** What a leader answered to a follower of this process. */
export const ReplicateWord = {
  /** -1: no records. */
  slab: 3,
  start: 4,
  length: 5,
  /** That the fetch was made with. */
  leaderEpoch: 6,
  errorCode: 7,
  highWatermark: 8,
  logStartOffset: 9,
  isDiverging: 10,
  divergingEpoch: 11,
  divergingEnd: 12,
} as const;
export const FollowerStateWord = { leaderEpoch: 3 } as const;
/** Of the answer to both: where the follower's log ends now. */
export const FollowedWord = { fetchOffset: 4, lastFetchedEpoch: 5, logStartOffset: 6 } as const;

const textBytesMax = (linkLimits.words - RefusedWord.text) * 8;

/** Says why a batch was refused, for people: one-byte characters, cut to what a descriptor holds. */
export function writeText({ numbers }: Words, text: string): void {
  const { buffer, byteOffset } = numbers;
  const target = Buffer.from(buffer, byteOffset + RefusedWord.text * 8, textBytesMax);
  numbers[RefusedWord.textBytes] = target.write(text, 'latin1');
}

/** Null: there is none. */
export function readText({ numbers }: Words, at: number): string | null {
  const length = numbers[at + RefusedWord.textBytes] as number;
  if (length === 0) return null;
  const { buffer, byteOffset } = numbers;
  return Buffer.from(buffer, byteOffset + (at + RefusedWord.text) * 8, length).toString('latin1');
}
