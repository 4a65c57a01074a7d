/**
 * What a replica needs of the log of `__cluster_metadata-0`. The log engine's `PartitionLog` is behind it in a broker, a
 * simulated disk in tests.
 */
export interface MetadataLogStore {
  /** Offset of the first batch that is there; what was before is in snapshots. */
  readonly startOffset: number;
  /** Offset that the next batch takes. */
  readonly endOffset: number;
  /** Leader epoch of the last batch, 0 when the log is empty. */
  readonly lastEpoch: number;
  /** Where an epoch ends, as OffsetForLeaderEpoch answers it (KIP-101, KIP-279); -1 and -1 when that is not known. */
  endOffsetForEpoch(epoch: number): { readonly epoch: number; readonly endOffset: number };
  /**
   * Whole batches from `fromOffset` on, none that ends past `upToOffset`; at least one if there is one, else not more
   * than `maxBytes`. The caller owns the memory. When the store has just been opened, all that it holds is on stable
   * storage, and a torn tail has been cut. Throws when it cannot be read.
   */
  read(fromOffset: number, upToOffset: number, maxBytes: number): Uint8Array;
  /** Appends one batch that carries its base offset (`endOffset`), leader epoch and checksum. Takes over `batch`. */
  append(batch: Uint8Array): void;
  /** Drops every batch that ends past `endOffset`. On stable storage with the next flush. Throws when the disk fails. */
  truncate(endOffset: number): void;
  /**
   * Drops everything: the log is empty and begins at `offset`, up to which a snapshot has all that is needed. On stable
   * storage on return. Nothing may be waiting for a flush. Throws when the disk fails.
   */
  restartAt(offset: number): void;
  /** What ends below `offset` is not needed any more, and may go. Throws when the disk fails. */
  dropBelow(offset: number): void;
  /**
   * Fulfilled when everything appended before the call is on stable storage, unless it has been truncated meanwhile.
   * Rejects with a `LogFullError` when the disk had no room: then `endOffset` has gone back to before the appends that
   * found none, and the log may be used on. Rejects with anything else when it can never be known what is stored.
   */
  flush(): Promise<void>;
  close(): Promise<void>;
}

/** There was no room on the disk. Nothing is broken: what found no room was taken back as a whole. */
export class LogFullError extends Error {
  override readonly name: string = 'LogFullError';
}
