/**
 * What a voter needs of the log of `__cluster_metadata-0`. The log engine's `PartitionLog` is behind it in a broker, a
 * simulated disk in tests.
 */
export interface MetadataLogStore {
  /** Offset that the next batch takes. */
  readonly endOffset: number;
  /** Leader epoch of the last batch, 0 when the log is empty. */
  readonly lastEpoch: number;
  /**
   * Calls `visit` with everything in the log, in order, in pieces of one or more whole batches, which are valid during
   * the call only. A torn tail has been cut before; what is visited is on stable storage. Throws on damage.
   */
  read(visit: (batches: Uint8Array) => void): void;
  /** Appends one batch that carries its base offset (`endOffset`), leader epoch and checksum. Takes over `batch`. */
  append(batch: Uint8Array): void;
  /**
   * Fulfilled when everything appended before the call is on stable storage. Rejects with a `LogFullError` when the
   * disk had no room: then `endOffset` has gone back to before the appends that found none, and the log may be used on.
   * Rejects with anything else when it can never be known what is stored.
   */
  flush(): Promise<void>;
  close(): Promise<void>;
}

/** There was no room on the disk. Nothing is broken: what found no room was taken back as a whole. */
export class LogFullError extends Error {
  override readonly name: string = 'LogFullError';
}
