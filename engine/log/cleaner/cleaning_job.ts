/** What a shard asks of the cleaner's thread, and what comes back. All of it is structured-cloneable. */

export interface SourceSegment {
  readonly baseOffset: number;
  /** Bytes. */
  readonly size: number;
  /** Base offset of the segment after it. */
  readonly endOffset: number;
}

/**
 * Where the producers that the partition knows stand: their last batches must not vanish, see `ProducerState`. Typed
 * arrays when it comes from a shard: there may be a hundred thousand of them, and those are cloned in no time.
 */
export interface LastBatches {
  readonly producerIds: ArrayLike<number>;
  /** Last offset of the producer's last batch of records, -1 when it has but a transaction marker. */
  readonly lastOffsets: ArrayLike<number>;
  readonly epochs: ArrayLike<number>;
}

export interface CleaningJob {
  /** The partition's directory. */
  readonly dir: string;
  /** All segments below `uncleanableOffset`, in order. */
  readonly segments: readonly SourceSegment[];
  readonly logStartOffset: number;
  /** Everything below it was cleaned by an earlier job. */
  readonly firstDirtyOffset: number;
  /** Nothing from here on is looked at: base offset of a segment. */
  readonly uncleanableOffset: number;
  /** Below it, the log is on stable storage: with log.durability=os it may be before `uncleanableOffset`. */
  readonly flushedOffset: number;
  /** Wall clock when the job was made. */
  readonly nowMs: number;
  readonly deleteRetentionMs: number;
  readonly segmentBytes: number;
  readonly segmentIndexBytes: number;
  readonly indexIntervalBytes: number;
  readonly decompressedMaxBytes: number;
  readonly producers: LastBatches;
}

/** Memory that one job may take. */
export interface CleaningBudget {
  /** For the offset map. */
  readonly mapBytes: number;
  readonly mapLoadFactor: number;
  /** For reading and writing together; more only for a batch that is larger. */
  readonly ioBytes: number;
}

/**
 * A cleaned segment under its `.swap` names, on stable storage. The shard puts it in place of `sources`, whose files
 * the job removes then.
 */
export interface CleanedSegment {
  readonly sources: readonly SourceSegment[];
  readonly baseOffset: number;
  /** Bytes. */
  readonly size: number;
  /** The indexes' entries in the files' form. */
  readonly offsetIndex: Uint8Array;
  readonly timeIndex: Uint8Array;
  readonly maxTimestamp: bigint;
  readonly maxTimestampOffset: number;
  /** Max timestamp of the first batch, null when there is no batch. */
  readonly firstTimestamp: bigint | null;
}

export interface CleaningCounts {
  /** Bytes of the log that were read to be cleaned (the offset map's reading not counted). */
  bytesRead: number;
  bytesWritten: number;
  recordsRead: number;
  recordsKept: number;
  /** Records without a key: they cannot be compacted, and go, as in Kafka. */
  keylessRecords: number;
}

export type CleaningResult = CleaningCounts & {
  /** Everything below it is clean now: where the next job begins. */
  readonly cleanedOffset: number;
};

/** The log cannot be cleaned, now or later: the text says why, and what can be done. */
export class UncleanableError extends Error {
  override readonly name = 'UncleanableError';
}
