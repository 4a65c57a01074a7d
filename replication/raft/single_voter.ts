/**
 * A metadata quorum of one voter: it leads from its start on, and its own flush is the majority.
 *
 * Thread: its caller's. Concurrency: one flush is in flight at most; what is appended meanwhile joins the next. What
 * `onCommitted` reports is on stable storage, and so is a term before anything is appended in it.
 *
 * Legal transitions:
 *   idle --start--> leading
 *   leading --disk full--> interrupted    what found no room is taken back, and the leader's state with it
 *   interrupted --rest flushed--> leading    in the same term: nobody has seen what was taken back
 *   leading, interrupted --flush failed--> failed    for good
 *   any --close--> closed
 *
 * On disk it leaves what Kafka's voters do (KIP-595, KIP-853): the vote file, and at the start of each term a control
 * batch with a LeaderChange record; the first batch of all also names the quorum's version and voters.
 */
import assert from 'node:assert/strict';
import type {
  MetadataBatch,
  MetadataRecord,
  MetadataRecordCodec,
  QuorumControlRecord,
  Voter,
} from '../metadata/records.ts';
import {
  encodeControlBatch,
  encodeDataBatch,
  forEachBatch,
  type StoredBatch,
} from './metadata_batch.ts';
import { LogFullError, type MetadataLogStore } from './metadata_log_store.ts';
import type { MetadataQuorum, QuorumListener } from './quorum.ts';
import {
  formatQuorumState,
  initialQuorumState,
  parseQuorumState,
  type QuorumState,
  type QuorumStateStore,
} from './quorum_state.ts';

/** As Kafka's raft client: the largest batch of the metadata log. */
const metadataBatchBytesMax: number = 8 * 1024 * 1024;

export interface SingleVoterOptions {
  /** This node as a voter. Its directory id tells it from an empty newcomer with the same number. */
  readonly voter: Voter;
  readonly store: MetadataLogStore;
  readonly stateStore: QuorumStateStore;
  readonly codec: MetadataRecordCodec;
  readonly wallMs: () => number;
  /** Something odd that does no harm, for the log: a damaged vote file that the log could replace. */
  readonly onWarning: (message: string) => void;
}

export class SingleVoter implements MetadataQuorum {
  readonly #options: SingleVoterOptions;
  #listener: QuorumListener | null = null;
  #role: 'idle' | 'leading' | 'interrupted' | 'failed' | 'closed' = 'idle';
  /** Invariant: grows with each start, and every batch of the log carries a term not above it. */
  #epoch = 0;
  /** Invariant: `committedOffset < endOffset of the store`; the batches between are in `#uncommitted`, in order. */
  #committedOffset = -1;
  readonly #uncommitted: MetadataBatch[] = [];
  #flushing: Promise<void> | null = null;

  constructor(options: SingleVoterOptions) {
    this.#options = options;
  }

  get nodeId(): number {
    return this.#options.voter.voterId;
  }

  get leaderId(): number {
    return this.#role === 'leading' ? this.nodeId : -1;
  }

  get epoch(): number {
    return this.#epoch;
  }

  get committedOffset(): number {
    return this.#committedOffset;
  }

  async start(listener: QuorumListener): Promise<void> {
    assert(this.#role === 'idle', `a quorum that is ${this.#role} cannot start`);
    const { store, stateStore, voter } = this.#options;
    const state = this.#loadState();
    this.#listener = listener;
    this.#replay(listener);
    this.#epoch = Math.max(state.leaderEpoch, store.lastEpoch) + 1;
    await stateStore.save(
      formatQuorumState({
        leaderId: voter.voterId,
        leaderEpoch: this.#epoch,
        votedId: voter.voterId,
        votedDirectoryId: voter.voterDirectoryId,
      }),
    );
    this.#role = 'leading';
    this.#appendTermStart();
    listener.onElected(this.#epoch, store.endOffset);
  }

  append(records: readonly MetadataRecord[]): number {
    assert(this.#role === 'leading', `append to a quorum that is ${this.#role}`);
    assert(records.length > 0, 'an append without records');
    const { codec, store, wallMs } = this.#options;
    const values = records.map((record) => codec.encode(record));
    const firstOffset = store.endOffset;
    const batch = encodeDataBatch(values, firstOffset, this.#epoch, wallMs());
    assert(
      batch.length <= metadataBatchBytesMax,
      `a metadata batch of ${batch.length} bytes (${records.length} records); the limit is ${metadataBatchBytesMax}`,
    );
    return this.#appendBatch(batch, records, records.length);
  }

  async close(): Promise<void> {
    if (this.#role === 'closed') return;
    if (this.#flushing !== null) await this.#flushing;
    this.#role = 'closed';
    await this.#options.store.close();
  }

  /**
   * A vote file that is lost or damaged is no danger with one voter: every term in which anything was promised is in
   * the log, and there is nobody else who could have been voted for.
   */
  #loadState(): QuorumState {
    const { store, stateStore, onWarning } = this.#options;
    const text = stateStore.load();
    if (text === null) {
      if (store.endOffset > 0)
        onWarning(
          'The vote file (quorum-state) is missing; the term is taken from the metadata log.',
        );
      return initialQuorumState;
    }
    const state = parseQuorumState(text);
    if (state !== null) return state;
    onWarning('The vote file (quorum-state) is damaged; the term is taken from the metadata log.');
    return initialQuorumState;
  }

  #replay(listener: QuorumListener): void {
    const { store, codec } = this.#options;
    let voters: readonly Voter[] | null = null;
    const unknown = new Set<string>();
    store.read((bytes) =>
      forEachBatch(bytes, (batch) => {
        this.#checkOrder(batch);
        if (batch.isControl)
          for (const { key, value } of batch.records) {
            const record = codec.decodeControl(key, value);
            if (record?.type === 'Voters') voters = record.voters;
          }
        const records = batch.isControl
          ? []
          : batch.records.map(({ value }) => codec.decode(value));
        for (const record of records) if (record.type === 'UnknownRecord') unknown.add(record.name);
        this.#epoch = batch.epoch;
        this.#committedOffset = batch.lastOffset;
        listener.onCommitted({
          snapshot: false,
          firstOffset: batch.firstOffset,
          lastOffset: batch.lastOffset,
          epoch: batch.epoch,
          leaderId: -1,
          records,
        });
      }),
    );
    if (unknown.size > 0)
      this.#options.onWarning(
        `The metadata log holds records that have no effect here: ${[...unknown].join(', ')}.`,
      );
    if (voters !== null) this.#checkVoters(voters);
  }

  #checkOrder(batch: StoredBatch): void {
    if (batch.firstOffset === this.#committedOffset + 1 && batch.epoch >= this.#epoch) return;
    throw new Error(
      `The metadata log is damaged: a batch at offset ${batch.firstOffset} of term ${batch.epoch} follows offset ` +
        `${this.#committedOffset} of term ${this.#epoch}. Restore __cluster_metadata-0 from a copy.`,
    );
  }

  #checkVoters(voters: readonly Voter[]): void {
    const { voterId, voterDirectoryId } = this.#options.voter;
    const [only] = voters;
    if (
      voters.length === 1 &&
      only?.voterId === voterId &&
      only.voterDirectoryId === voterDirectoryId
    )
      return;
    const names = voters.map(
      (voter) => `node ${voter.voterId} (directory ${voter.voterDirectoryId})`,
    );
    throw new Error(
      `The metadata log belongs to the voters ${names.join(', ')}; this is node ${voterId} (directory ` +
        `${voterDirectoryId}). Set node.id as it was, or start with an empty data directory.`,
    );
  }

  #appendTermStart(): void {
    const { codec, store, voter, wallMs } = this.#options;
    const voters = [voter];
    const records: QuorumControlRecord[] = [
      { type: 'LeaderChange', leaderId: voter.voterId, voters },
    ];
    if (store.endOffset === 0)
      records.push({ type: 'KRaftVersion', kraftVersion: 1 }, { type: 'Voters', voters });
    const encoded = records.map((record) => codec.encodeControl(record));
    const batch = encodeControlBatch(encoded, store.endOffset, this.#epoch, wallMs());
    this.#appendBatch(batch, [], records.length);
  }

  #appendBatch(bytes: Uint8Array, records: readonly MetadataRecord[], recordCount: number): number {
    const { store } = this.#options;
    const firstOffset = store.endOffset;
    const lastOffset = firstOffset + recordCount - 1;
    store.append(bytes);
    assert(
      store.endOffset === lastOffset + 1,
      `the metadata log ends at ${store.endOffset} after an append up to ${lastOffset}`,
    );
    const { nodeId: leaderId, epoch } = this;
    this.#uncommitted.push({ snapshot: false, firstOffset, lastOffset, epoch, leaderId, records });
    this.#flushing ??= this.#flushAll();
    return lastOffset;
  }

  /** Never rejects. Starts after the caller's turn, so that all appends of one turn share a flush. */
  async #flushAll(): Promise<void> {
    await Promise.resolve();
    try {
      while (this.#uncommitted.length > 0) await this.#flushOnce();
    } catch (error) {
      this.#role = 'failed';
      this.#listener?.onFailed(error instanceof Error ? error : new Error(String(error)));
    } finally {
      this.#flushing = null;
    }
  }

  async #flushOnce(): Promise<void> {
    const { length } = this.#uncommitted;
    try {
      await this.#options.store.flush();
    } catch (error) {
      if (!(error instanceof LogFullError)) throw error;
      this.#takeBack(error);
      return;
    }
    for (const batch of this.#uncommitted.splice(0, length)) {
      this.#committedOffset = batch.lastOffset;
      this.#listener?.onCommitted(batch);
    }
    if (this.#uncommitted.length === 0) this.#leadAgain();
  }

  /** A full disk must cost the requests at hand, not the process. Without room for the first batch there is no process. */
  #takeBack(error: LogFullError): void {
    const { endOffset } = this.#options.store;
    const kept = this.#uncommitted.filter((batch) => batch.lastOffset < endOffset);
    this.#uncommitted.splice(0, this.#uncommitted.length, ...kept);
    if (this.#committedOffset === -1 && kept.length === 0) throw error;
    this.#options.onWarning(error.message);
    if (this.#role === 'leading') {
      this.#role = 'interrupted';
      this.#listener?.onResigned();
    }
    if (kept.length === 0) this.#leadAgain();
  }

  #leadAgain(): void {
    if (this.#role !== 'interrupted') return;
    this.#role = 'leading';
    this.#listener?.onElected(this.#epoch, this.#options.store.endOffset);
  }
}
