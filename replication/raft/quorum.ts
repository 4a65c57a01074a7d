/**
 * The seam between the metadata log's replication and those who use it: the single voter implements it now, Raft later.
 *
 * Thread: that of the caller, all calls and callbacks. Concurrency: callbacks run to their end before the next one;
 * they may call `append`. Durability: what `onCommitted` hands out is on stable storage on a majority of the voters.
 */
import type { MetadataBatch, MetadataRecord } from '../metadata/records.ts';

export interface QuorumListener {
  /** Batches in log order, each once; during `start` everything that had been committed before. */
  onCommitted(batch: MetadataBatch): void;
  /**
   * This node leads from now on; the record that it appends next takes `nextOffset`. All data records before it have
   * been reported as committed.
   */
  onElected(epoch: number, nextOffset: number): void;
  /** This node leads no longer: what it appended and did not see committed may vanish. */
  onResigned(): void;
  /** The log's storage failed: nothing will be committed any more. The process should stop with this reason. */
  onFailed(error: Error): void;
}

export interface MetadataQuorum {
  readonly nodeId: number;
  /** -1 while unknown. */
  readonly leaderId: number;
  readonly epoch: number;
  /** Offset of the last committed record, -1 when there is none. */
  readonly committedOffset: number;
  /**
   * Replays what is committed, then takes part in the quorum. Resolves once the replay is done (a single voter is the
   * leader by then). Rejects with a text for people when the log or the vote file cannot be used.
   */
  start(listener: QuorumListener): Promise<void>;
  /**
   * Appends records as one atomic batch and returns the offset of the last one; `onCommitted` reports it when it
   * counts. Leader only (asserts), at least one record. The caller keeps a batch below the log's size limit.
   */
  append(records: readonly MetadataRecord[]): number;
  /** Lets a flush under way finish and closes the log. Uncommitted appends may or may not survive. */
  close(): Promise<void>;
}
