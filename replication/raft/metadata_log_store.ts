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
  /** Fulfilled when everything appended before the call is on stable storage; rejected when that can never be known. */
  flush(): Promise<void>;
  close(): Promise<void>;
}
