/**
 * A replica's metadata log: the store with what the quorum keeps about it, which voter set stands where, what is on
 * stable storage, what has been handed out as committed, where it begins because a snapshot has what was before.
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
import type { SnapshotId } from './messages.ts';
import {
  encodeControlBatch,
  encodeDataBatch,
  forEachBatch,
  type StoredBatch,
} from './metadata_batch.ts';
import { LogFullError, type MetadataLogStore } from './metadata_log_store.ts';
import type { RaftLogView } from './raft_types.ts';
import type { LoadedSnapshot } from './snapshot_format.ts';
import { VoterSets } from './voter_sets.ts';

/** As Kafka's raft client: the largest batch of the metadata log. */
const metadataBatchBytesMax: number = 8 * 1024 * 1024;
const readChunkBytes: number = 4 * 1024 * 1024;

function goesOnFrom(store: MetadataLogStore, { endOffset, epoch }: SnapshotId): boolean {
  if (store.endOffset < endOffset || store.startOffset >= endOffset)
    return store.startOffset === endOffset;
  const own = store.endOffsetForEpoch(epoch);
  return own.epoch === epoch && own.endOffset >= endOffset;
}

const unknownEnd = { epoch: -1, endOffset: -1 } as const;

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
  readonly #voterSets = new VoterSets();
  /** Appended here and not handed out yet. Invariant: in log order. */
  readonly #own: MetadataBatch[] = [];
  readonly #unknown = new Set<string>();
  #flushedOffset = 0;
  #deliveredOffset = 0;
  /** Of the record before it. */
  #deliveredEpoch = 0;
  /** The snapshot that ends where the log begins; null: it has everything. */
  #start: SnapshotId | null = null;
  #snapshotId: SnapshotId | null = null;
  #bytesSinceSnapshot = 0;
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

  /** Offset of the first record that can be read. */
  get startOffset(): number {
    return this.#start?.endOffset ?? 0;
  }

  /** The newest snapshot; null without one. */
  get snapshotId(): SnapshotId | null {
    return this.#snapshotId;
  }

  /** Of what has been appended since, or was there behind it at the start. */
  get bytesSinceSnapshot(): number {
    return this.#bytesSinceSnapshot;
  }

  /** What a snapshot of all that has been handed out is called. */
  get deliveredId(): SnapshotId {
    return { endOffset: this.#deliveredOffset, epoch: this.#deliveredEpoch };
  }

  /** The voters as they are committed. */
  get deliveredVoters(): readonly Voter[] | null {
    return this.#voterSets.before(this.#deliveredOffset);
  }

  get lastEpoch(): number {
    const { store } = this.#options;
    const start = this.#start;
    return start !== null && store.endOffset === start.endOffset ? start.epoch : store.lastEpoch;
  }

  get voters(): readonly Voter[] | null {
    return this.#voterSets.newest?.voters ?? null;
  }

  /** The voters of a log that names none: those of the configuration, as Kafka's quorums had it at first (KIP-595). */
  assumeVoters(voters: readonly Voter[]): void {
    this.#voterSets.assume(voters);
  }

  get votersOffset(): number {
    return this.#voterSets.newest?.offset ?? -1;
  }

  /** Names of record kinds that were read and that nothing here uses. */
  get unknownRecords(): readonly string[] {
    return [...this.#unknown];
  }

  /** Of epochs that lie before the log's start only the last one is known; -1 and -1 for those before. */
  endOffsetForEpoch(epoch: number): { readonly epoch: number; readonly endOffset: number } {
    const { store } = this.#options;
    const start = this.#start;
    const found = store.endOffsetForEpoch(epoch);
    if (start === null) return found;
    if (epoch < start.epoch) return unknownEnd;
    const isEmpty = store.endOffset === start.endOffset;
    return isEmpty || (found.endOffset >= 0 && found.endOffset <= start.endOffset) ? start : found;
  }

  /**
   * Goes over the log of a store that has just been opened; with `deliver` all of it is handed out at once. Begins with
   * the snapshot, if there is one, which counts as handed out.
   * @param ids of all snapshots that there are, oldest first
   * @throws Error with a text for people on damage
   */
  load(
    snapshot: LoadedSnapshot | null,
    ids: readonly SnapshotId[],
    deliver: ((batch: MetadataBatch) => void) | null,
  ): void {
    if (snapshot !== null) this.#beginWith(snapshot, ids);
    let { epoch, endOffset: nextOffset } = this.deliveredId;
    this.#forEach(nextOffset, this.endOffset, (batch) => {
      if (batch.firstOffset !== nextOffset || batch.epoch < epoch)
        throw new Error(
          `The metadata log is damaged: a batch at offset ${batch.firstOffset} of term ${batch.epoch} follows offset ` +
            `${nextOffset - 1} of term ${epoch}. Restore __cluster_metadata-0 from a copy.`,
        );
      nextOffset = batch.lastOffset + 1;
      epoch = batch.epoch;
      this.#bytesSinceSnapshot += batch.size;
      this.#noteVoters(batch);
      if (deliver === null) return;
      this.#delivered(batch);
      deliver(this.#decode(batch, -1));
    });
    this.#flushedOffset = this.endOffset;
  }

  /** A snapshot that has come from the leader takes the place of all that there is. @throws the store's error */
  restartWith(snapshot: LoadedSnapshot): void {
    assert(
      snapshot.id.endOffset > this.#deliveredOffset,
      `a snapshot up to ${snapshot.id.endOffset}, and ${this.#deliveredOffset} is committed`,
    );
    this.#truncations += 1;
    this.#options.store.restartAt(snapshot.id.endOffset);
    this.#own.length = 0;
    this.#voterSets.clear();
    this.#beginWith(snapshot, [snapshot.id]);
    this.#flushedOffset = this.endOffset;
  }

  /** A snapshot of what was handed out has been written. @param bytes what came since it was begun */
  noteSnapshot(id: SnapshotId, bytes: number): void {
    this.#snapshotId = id;
    this.#bytesSinceSnapshot = bytes;
  }

  /** The log begins where that snapshot ends. @throws the store's error */
  dropBelow(id: SnapshotId): void {
    this.#start = id;
    this.#options.store.dropBelow(id.endOffset);
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
      if (record.type === 'Voters') this.#voterSets.note(firstOffset + at, record.voters);
  }

  /** Batches of the leader in which `checkedAnswer` found nothing. Takes over the memory. */
  appendFetched(batches: Uint8Array): void {
    const { store } = this.#options;
    let start = 0;
    forEachBatch(batches, (batch) => {
      store.append(batches.subarray(start, start + batch.size));
      start += batch.size;
      this.#bytesSinceSnapshot += batch.size;
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
        this.#delivered(own);
        visit(own);
        continue;
      }
      const upTo = Math.min(endOffset, own?.firstOffset ?? endOffset);
      this.#forEach(this.#deliveredOffset, upTo, (batch) => {
        this.#delivered(batch);
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
    this.#bytesSinceSnapshot += bytes.length;
    this.#own.push({ snapshot: false, firstOffset, lastOffset, ...batch });
    this.#startFlush();
    return lastOffset;
  }

  /** A log that does not go on from the snapshot has nothing that is needed: it was to be replaced. */
  #beginWith({ id, voters }: LoadedSnapshot, ids: readonly SnapshotId[]): void {
    const { store } = this.#options;
    const { endOffset, epoch } = id;
    if (!goesOnFrom(store, id)) store.restartAt(endOffset);
    this.#start =
      store.startOffset === 0
        ? null
        : (ids.find((one) => one.endOffset >= store.startOffset) ?? id);
    this.#snapshotId = id;
    this.#bytesSinceSnapshot = 0;
    this.#deliveredOffset = endOffset;
    this.#deliveredEpoch = epoch;
    if (voters !== null) this.#voterSets.note(endOffset - 1, voters);
  }

  #delivered({ lastOffset, epoch }: { readonly lastOffset: number; readonly epoch: number }): void {
    this.#deliveredOffset = lastOffset + 1;
    this.#deliveredEpoch = epoch;
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
    this.#voterSets.forgetFrom(endOffset);
  }

  #noteVoters(batch: StoredBatch): void {
    if (!batch.isControl) return;
    for (const [at, { key, value }] of batch.records.entries()) {
      const record = this.#options.codec.decodeControl(key, value);
      if (record?.type === 'Voters') this.#voterSets.note(batch.firstOffset + at, record.voters);
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
