/**
 * What a fetch finds in one partition.
 *
 * Thread: the partition's shard. What is found is pinned; whoever gets it unpins it, on whatever thread that is.
 */
import { ErrorCode } from '../engine/error_code.gen.ts';
import type { LogSlice } from '../engine/log/log_slice.ts';
import { ColdRead } from '../engine/ports.ts';
import type { PartitionLeader } from '../replication/partition/leader.ts';

/** What the client asks of the partition. */
export interface LookRequest {
  readonly fetchOffset: number;
  /** Of this partition alone. */
  readonly maxBytes: number;
  /** -1: the client does not know it. */
  readonly currentLeaderEpoch: number;
  /** -1: no divergence check (KIP-595). */
  readonly lastFetchedEpoch: number;
}

/** A follower that looks: what it reads need not be committed, and what it asks for says how far it is. */
export interface LookingReplica {
  readonly brokerId: number;
  /** That it is registered with; -1: not told. */
  readonly brokerEpoch: number;
  /** Monotonic clock. */
  readonly nowMs: number;
}

/** A range of a file, pinned. `LogSlice` is one; the pin may also be another thread's. */
export interface HeldSlice {
  readonly segment: { unpin(): void };
  readonly fd: number;
  readonly position: number;
  readonly length: number;
}

/** What one look at a partition found. */
export interface Look {
  errorCode: ErrorCode;
  /** Null: nothing to read. */
  slice: HeldSlice | null;
  /** What it counts towards `min_bytes`; Infinity: no use waiting for more of it. */
  bytes: number;
  /** Where the client's log leaves ours (KIP-595); null: it does not. */
  diverging: { epoch: number; endOffset: number } | null;
  /** What has to be brought into the page cache before a look finds anything; its `release` is to be called. */
  cold: ColdRead | null;
  /** These three are -1 when there is no such partition here. */
  highWatermark: number;
  readonly lastStableOffset: number;
  readonly logStartOffset: number;
}

/** What a client within a session (KIP-227) was told of the partition last; -1: nothing, or an error. */
export interface TellingRequest extends LookRequest {
  readonly toldHighWatermark: number;
  readonly toldLogStartOffset: number;
}

/** Finds nothing, in a partition of which the client knows all there is to know. Not to be changed. */
export const nothingNew: Look = failedLook(ErrorCode.NONE);

/**
 * Whether a look would find no records and nothing that the client has not been told. Says to the leader how far a follower
 * is, as a look does. Nearly all partitions of nearly all fetches are so where there are thousands, and this costs a tenth.
 */
export function hasNothingNew(
  leader: PartitionLeader,
  asked: TellingRequest,
  isReadCommitted: boolean,
  replica: LookingReplica | null,
): boolean {
  const { log } = leader;
  const { fetchOffset } = asked;
  const end = replica === null ? endFor(leader, isReadCommitted) : log.writtenOffset;
  if (
    fetchOffset !== end ||
    asked.toldLogStartOffset !== log.logStartOffset ||
    leavesHistory(asked, leader) ||
    leader.checkEpoch(asked.currentLeaderEpoch) !== ErrorCode.NONE
  )
    return false;
  if (replica !== null) {
    const { brokerId, brokerEpoch, nowMs } = replica;
    const error = leader.followerFetched(brokerId, brokerEpoch, fetchOffset, nowMs);
    if (error !== ErrorCode.NONE) return false;
  }
  return asked.toldHighWatermark === leader.highWatermark;
}

/** There is no partition to look at. */
export function failedLook(errorCode: ErrorCode): Look {
  return {
    errorCode,
    slice: null,
    bytes: 0,
    diverging: null,
    cold: null,
    highWatermark: -1,
    lastStableOffset: -1,
    logStartOffset: -1,
  };
}

/**
 * Looks at a partition that this shard leads: up to the high watermark, a follower up to what is written.
 * @param bytesLeft what the whole answer may still take
 * @param first nothing has been found yet: the first batch is found whatever its size, so that readers progress
 * @param isReadCommitted up to the last stable offset, not the high watermark
 * @param mayWait for the device; otherwise `cold` may be the answer
 * @param replica who looks, where it is a follower
 */
export function lookAt(
  leader: PartitionLeader,
  asked: LookRequest,
  bytesLeft: number,
  first: boolean,
  isReadCommitted: boolean,
  mayWait: boolean,
  replica: LookingReplica | null = null,
): Look {
  const { log } = leader;
  const { fetchOffset } = asked;
  const look = newLook(leader, leader.checkEpoch(asked.currentLeaderEpoch));
  if (look.errorCode !== ErrorCode.NONE) return look;
  const diverging = divergence(asked, leader);
  if (diverging?.epoch === -1) return fail(look, ErrorCode.OFFSET_OUT_OF_RANGE);
  look.diverging = diverging;
  if (diverging !== null) return look;
  if (fetchOffset < log.logStartOffset || fetchOffset > log.logEndOffset)
    return fail(look, ErrorCode.OFFSET_OUT_OF_RANGE);
  const end = replica === null ? endFor(leader, isReadCommitted) : log.writtenOffset;
  if (replica !== null) {
    const { brokerId, brokerEpoch, nowMs } = replica;
    const error = leader.followerFetched(brokerId, brokerEpoch, fetchOffset, nowMs);
    if (error !== ErrorCode.NONE) return fail(look, error);
    look.highWatermark = leader.highWatermark;
  }
  if (fetchOffset >= end) return look;
  // There are records. What does not fit counts as what may be asked for of this partition, as in Kafka.
  look.bytes = Math.max(0, asked.maxBytes);
  const maxBytes = Math.min(bytesLeft, asked.maxBytes);
  if (maxBytes <= 0 && !first) return look;
  const slice = mayWait
    ? log.read(fetchOffset, maxBytes, end, first)
    : log.readCached(fetchOffset, maxBytes, end, first);
  if (slice instanceof ColdRead) look.cold = slice;
  else if (typeof slice === 'object') take(look, slice);
  else look.errorCode = slice;
  return look;
}

function endFor(leader: PartitionLeader, isReadCommitted: boolean): number {
  return isReadCommitted ? leader.lastStableOffset : leader.highWatermark;
}

function newLook(leader: PartitionLeader, errorCode: ErrorCode): Look {
  return {
    errorCode,
    slice: null,
    bytes: 0,
    diverging: null,
    cold: null,
    highWatermark: leader.highWatermark,
    lastStableOffset: leader.lastStableOffset,
    logStartOffset: leader.log.logStartOffset,
  };
}

function fail(look: Look, errorCode: ErrorCode): Look {
  look.errorCode = errorCode;
  return look;
}

/** Notes the records that a look has found, and keeps their file open and in place. */
function take(look: Look, slice: LogSlice): void {
  slice.segment.pin();
  look.slice = slice;
  if (slice.end === 'segment') look.bytes = Number.POSITIVE_INFINITY;
  else if (slice.end === 'all') look.bytes = slice.length;
  else look.bytes = Math.max(look.bytes, slice.length);
}

/** Where the client's history leaves the leader's, if it told its last epoch (KIP-595); epoch -1: nowhere that we know. */
function divergence(asked: LookRequest, leader: PartitionLeader): Look['diverging'] {
  return leavesHistory(asked, leader) ? leader.log.endOffsetForEpoch(asked.lastFetchedEpoch) : null;
}

function leavesHistory(
  { lastFetchedEpoch, fetchOffset }: LookRequest,
  { log }: PartitionLeader,
): boolean {
  return (
    lastFetchedEpoch >= 0 && !log.epochs.reaches(lastFetchedEpoch, fetchOffset, log.logEndOffset)
  );
}

/** Nothing of it will be sent. */
export function drop(look: Look | null | undefined): void {
  if (look?.slice == null) return;
  look.slice.segment.unpin();
  look.slice = null;
}

/** There are records, as far as the log goes, and none as far as the answer does. */
export function holdBack(look: Look): void {
  drop(look);
  look.bytes = 0;
}
