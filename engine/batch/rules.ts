/** What a topic demands of the batches produced to it, and what the check found out about one. */
import type { TimestampType } from './stamp.ts';

export interface BatchRules {
  /** A topic of the brokers' own, to which clients must not write. Checked before anything else, by whoever takes the request. */
  isInternal: boolean;
  /** `max.message.bytes`: size of a whole batch as it is stored. */
  maxMessageBytes: number;
  timestampType: TimestampType;
  /** `message.timestamp.before.max.ms` and `.after.max.ms`: how far from the broker's clock; checked under CreateTime. */
  timestampBeforeMaxMs: number;
  timestampAfterMaxMs: number;
  /** A topic with `cleanup.policy=compact` takes no record without a key. */
  compacted: boolean;
  /** Wall clock, milliseconds since 1970. */
  nowMs: number;
  /** Most bytes that a compressed batch may decompress to. */
  decompressedMaxBytes: number;
  /**
   * Compressed records are not looked into: saves the decompression, and lets a faulty producer store what no consumer
   * can read. Has no effect on compacted topics, whose keys must be seen.
   */
  trustProducers: boolean;
}

/** Why a record was refused, as the produce response tells it. */
export interface RecordError {
  index: number;
  message: string;
}

/** Of a batch; made once and filled again and again. Means nothing unless the check said NONE, but for the errors. */
export interface BatchInfo {
  recordCount: number;
  /** Always `recordCount - 1`. */
  lastOffsetDelta: number;
  baseTimestamp: bigint;
  /**
   * The largest of the records' timestamps, -1 if none has one. Under LogAppendTime the time of the check; the append
   * puts its own.
   */
  maxTimestamp: bigint;
  /**
   * Offset delta of the first record with `maxTimestamp`, -1 if none has a timestamp. For compressed batches that were
   * not looked into it is that of the last record.
   */
  offsetOfMaxTimestamp: number;
  /** -1 for none; then epoch and sequence mean nothing. */
  producerId: number;
  producerEpoch: number;
  baseSequence: number;
  isTransactional: boolean;
  /** As in `Codec`. */
  codec: number;
  /** What `rewriteTimestamps` is to be told. */
  timestampType: TimestampType;
  /**
   * The stored header's timestamp type or max timestamp must change before the append: call `rewriteTimestamps` with
   * `timestampType` and `maxTimestamp`, or under LogAppendTime the time of the append.
   */
  rewriteHeader: boolean;
  /** For the client and for people; null if all is well. */
  errorMessage: string | null;
  /** The records at fault, where single ones are, at most `recordErrorsMax`; else null. */
  recordErrors: RecordError[] | null;
}

/** Kafka reports all; a million of them would make a response larger than the request. */
export const recordErrorsMax = 100;

export function newBatchInfo(): BatchInfo {
  return {
    recordCount: 0,
    lastOffsetDelta: 0,
    baseTimestamp: -1n,
    maxTimestamp: -1n,
    offsetOfMaxTimestamp: -1,
    producerId: -1,
    producerEpoch: -1,
    baseSequence: -1,
    isTransactional: false,
    codec: 0,
    timestampType: 'CreateTime',
    rewriteHeader: false,
    errorMessage: null,
    recordErrors: null,
  };
}
