/**
 * A replica's metadata log: the store with what the quorum keeps about it, which voter set stands where, what is on
 * stable storage, what has been handed out as committed.
 *
 * Thread: the quorum's. Memory: its own; batches that this node appended itself are kept as objects until they are
 * handed out, all others are read back. Durability: one flush is in flight at most, what is appended meanwhile joins the
 * next; `flushedOffset` says how far they got.
 *
 * Invariant: deliveredOffset <= endOffset, flushedOffset <= endOffset. What has been handed out is never truncated.
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
import type { RaftLogView } from './raft_types.ts';

/** As Kafka's raft client: the largest batch of the metadata log. */
const metadataBatchBytesMax: number = 8 * 1024 * 1024;
const readChunkBytes: number = 4 * 1024 * 1024;

export interface RaftLogOptions {
  readonly store: MetadataLogStore;
  readonly codec: MetadataRecordCodec;
  readonly wallMs: () => number;
  /** `flushedOffset` has grown. */
  readonly onFlushed: () => void;
  /** What found no room has been taken back. */
  readonly onNoRoom: (error: LogFullError) => void;
  /** It can never be known what is stored. */
  readonly onFailed: (error: Error) => void;
}

export class RaftLog implements RaftLogView {
  readonly #options: RaftLogOptions;
  /** Invariant: in the order of `offset`. */
  readonly #voterSets: { readonly offset: number; readonly voters: readonly Voter[] }[] = [];
  /** Appended here and not handed out yet. Invariant: in log order. */
  readonly #own: MetadataBatch[] = [];
  readonly #unknown = new Set<string>();
  #flushedOffset = 0;
  #deliveredOffset = 0;
  /** Raised by each truncation: a flush that began before says nothing about what came after. */
  #truncations = 0;
  #flushing: Promise<void> | null = null;

  constructor(options: RaftLogOptions) {
    this.#options = options;
  }

  get endOffset(): number {
    return this.#options.store.endOffset;
  }

  get flushedOffset(): number {
    return this.#flushedOffset;
  }

  /** Everything below has been handed out. */
  get deliveredOffset(): number {
    return this.#deliveredOffset;
  }

  get lastEpoch(): number {
    return this.#options.store.lastEpoch;
  }

  get voters(): readonly Voter[] | null {
    return this.#voterSets.at(-1)?.voters ?? null;
  }

  /** The voters of a log that names none: those of the configuration, as Kafka's quorums had it at first (KIP-595). */
  assumeVoters(voters: readonly Voter[]): void {
    assert(this.#voterSets.length === 0, 'the metadata log names its voters');
    this.#voterSets.push({ offset: -1, voters });
  }

  get votersOffset(): number {
    return this.#voterSets.at(-1)?.offset ?? -1;
  }

  /** Names of record kinds that were read and that nothing here uses. */
  get unknownRecords(): readonly string[] {
    return [...this.#unknown];
  }

  endOffsetForEpoch(epoch: number): { readonly epoch: number; readonly endOffset: number } {
    return this.#options.store.endOffsetForEpoch(epoch);
  }

  /**
   * Goes over the log of a store that has just been opened; with `deliver` all of it is handed out at once.
   * @throws Error with a text for people on damage
   */
  load(deliver: ((batch: MetadataBatch) => void) | null): void {
    let epoch = 0;
    let nextOffset = 0;
    this.#forEach(0, this.endOffset, (batch) => {
      if (batch.firstOffset !== nextOffset || batch.epoch < epoch)
        throw new Error(
          `The metadata log is damaged: a batch at offset ${batch.firstOffset} of term ${batch.epoch} follows offset ` +
            `${nextOffset - 1} of term ${epoch}. Restore __cluster_metadata-0 from a copy.`,
        );
      nextOffset = batch.lastOffset + 1;
      epoch = batch.epoch;
      this.#noteVoters(batch);
      if (deliver === null) return;
      this.#deliveredOffset = nextOffset;
      deliver(this.#decode(batch, -1));
    });
    this.#flushedOffset = this.endOffset;
  }

  /** One batch of data, which the caller keeps below the size limit. Returns the offset of the last record. */
  append(records: readonly MetadataRecord[], epoch: number, leaderId: number): number {
    const { codec, wallMs } = this.#options;
    const values = records.map((record) => codec.encode(record));
    const bytes = encodeDataBatch(values, this.endOffset, epoch, wallMs());
    assert(
      bytes.length <= metadataBatchBytesMax,
      `a metadata batch of ${bytes.length} bytes (${records.length} records); the limit is ${metadataBatchBytesMax}`,
    );
    return this.#appendOwn(bytes, { epoch, leaderId, records }, records.length);
  }

  appendControl(records: readonly QuorumControlRecord[], epoch: number, leaderId: number): void {
    const { codec, wallMs } = this.#options;
    const firstOffset = this.endOffset;
    const encoded = records.map((record) => codec.encodeControl(record));
    const bytes = encodeControlBatch(encoded, firstOffset, epoch, wallMs());
    this.#appendOwn(bytes, { epoch, leaderId, records: [] }, records.length);
    for (const [at, record] of records.entries())
      if (record.type === 'Voters')
        this.#voterSets.push({ offset: firstOffset + at, voters: record.voters });
  }

  /**
   * Whether batches of a leader may be appended at the log's end: whole, undamaged, in order, of no later term.
   * Returns what is wrong with them, or null.
   */
  problemOf(batches: Uint8Array, leaderEpoch: number): string | null {
    let nextOffset = this.endOffset;
    let epoch = this.lastEpoch;
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

  /** Batches of the leader in which `problemOf` found nothing. Takes over the memory. */
  appendFetched(batches: Uint8Array): void {
    const { store } = this.#options;
    let start = 0;
    forEachBatch(batches, (batch) => {
      store.append(batches.subarray(start, start + batch.size));
      start += batch.size;
      this.#noteVoters(batch);
    });
    this.#startFlush();
  }

  /** @throws the store's error */
  truncate(endOffset: number): void {
    assert(
      endOffset >= this.#deliveredOffset,
      `the metadata log is to be cut at ${endOffset}, and is committed up to ${this.#deliveredOffset}`,
    );
    this.#truncations += 1;
    this.#options.store.truncate(endOffset);
    this.#forgetPastEnd();
  }

  read(fromOffset: number, upToOffset: number, maxBytes: number): Uint8Array {
    return this.#options.store.read(fromOffset, upToOffset, maxBytes);
  }

  /** Hands out what is committed up to `endOffset`, each batch once. `visit` may append. */
  deliver(endOffset: number, leaderId: number, visit: (batch: MetadataBatch) => void): void {
    while (this.#deliveredOffset < endOffset) {
      const own = this.#own[0];
      if (own?.firstOffset === this.#deliveredOffset) {
        this.#own.shift();
        this.#deliveredOffset = own.lastOffset + 1;
        visit(own);
        continue;
      }
      const upTo = Math.min(endOffset, own?.firstOffset ?? endOffset);
      this.#forEach(this.#deliveredOffset, upTo, (batch) => {
        this.#deliveredOffset = batch.lastOffset + 1;
        visit(this.#decode(batch, leaderId));
      });
    }
  }

  /** Fulfilled when no flush is under way, ended well or not. */
  async flushed(): Promise<void> {
    while (this.#flushing !== null) await this.#flushing;
  }

  async close(): Promise<void> {
    await this.flushed();
    await this.#options.store.close();
  }

  #appendOwn(
    bytes: Uint8Array,
    batch: { epoch: number; leaderId: number; records: readonly MetadataRecord[] },
    count: number,
  ): number {
    const { store } = this.#options;
    const firstOffset = store.endOffset;
    const lastOffset = firstOffset + count - 1;
    store.append(bytes);
    assert(
      store.endOffset === lastOffset + 1,
      `the metadata log ends at ${store.endOffset} after an append up to ${lastOffset}`,
    );
    this.#own.push({ snapshot: false, firstOffset, lastOffset, ...batch });
    this.#startFlush();
    return lastOffset;
  }

  #startFlush(): void {
    this.#flushing ??= this.#flushAll();
  }

  /** Never rejects. Starts after the caller's turn, so that all appends of one turn share a flush. */
  async #flushAll(): Promise<void> {
    await Promise.resolve();
    try {
      while (this.#flushedOffset < this.endOffset) await this.#flushOnce();
    } catch (error) {
      this.#options.onFailed(error instanceof Error ? error : new Error(String(error)));
    } finally {
      this.#flushing = null;
    }
  }

  async #flushOnce(): Promise<void> {
    const target = this.endOffset;
    const truncations = this.#truncations;
    try {
      await this.#options.store.flush();
    } catch (error) {
      if (!(error instanceof LogFullError)) throw error;
      this.#forgetPastEnd();
      this.#options.onNoRoom(error);
      return;
    }
    if (truncations !== this.#truncations) return;
    this.#flushedOffset = target;
    this.#options.onFlushed();
  }

  #forgetPastEnd(): void {
    const { endOffset } = this;
    this.#flushedOffset = Math.min(this.#flushedOffset, endOffset);
    while ((this.#own.at(-1)?.lastOffset ?? -1) >= endOffset) this.#own.pop();
    while (this.votersOffset >= endOffset) this.#voterSets.pop();
  }

  #noteVoters(batch: StoredBatch): void {
    if (!batch.isControl) return;
    for (const [at, { key, value }] of batch.records.entries()) {
      const record = this.#options.codec.decodeControl(key, value);
      if (record?.type === 'Voters')
        this.#voterSets.push({ offset: batch.firstOffset + at, voters: record.voters });
    }
  }

  #decode(batch: StoredBatch, leaderId: number): MetadataBatch {
    const { firstOffset, lastOffset, epoch, isControl } = batch;
    const { codec } = this.#options;
    const records = isControl ? [] : batch.records.map(({ value }) => codec.decode(value));
    for (const record of records)
      if (record.type === 'UnknownRecord') this.#unknown.add(record.name);
    return { snapshot: false, firstOffset, lastOffset, epoch, leaderId, records };
  }

  #forEach(fromOffset: number, upToOffset: number, visit: (batch: StoredBatch) => void): void {
    for (let offset = fromOffset; offset < upToOffset; ) {
      const bytes = this.#options.store.read(offset, upToOffset, readChunkBytes);
      assert(bytes.length > 0, `the metadata log ends before offset ${upToOffset}, at ${offset}`);
      forEachBatch(bytes, (batch) => {
        offset = batch.lastOffset + 1;
        visit(batch);
      });
    }
  }
}
