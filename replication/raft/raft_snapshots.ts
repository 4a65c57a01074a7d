/**
 * Snapshots of the metadata (KIP-630): when this node writes one, what it hands out of it, and what it takes from its leader
 * when the log that it lacks is gone.
 *
 * Thread: the quorum's. Concurrency: one is written or received at a time; writing goes on in slices, each in a turn of its
 * own. Durability: the log loses what a snapshot has only when that is on stable storage, name and all; the one before it is
 * kept with the log that follows on it, in case the newest cannot be read.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { DiskError } from '../../engine/ports.ts';
import type { MetadataRecord, MetadataRecordCodec, Voter } from '../metadata/records.ts';
import type { FetchSnapshotReply, FetchSnapshotRequest, SnapshotId } from './messages.ts';
import type { RaftEvent } from './raft_types.ts';
import { isSame, type PartialSnapshot, type SnapshotFiles } from './snapshot_files.ts';
import { decodeSnapshot, encodeSnapshot, type LoadedSnapshot } from './snapshot_format.ts';

export interface SnapshotSettings {
  readonly files: SnapshotFiles;
  /** The newest good one, to begin with; null without one. */
  readonly loaded: LoadedSnapshot | null;
  /** `metadata.log.max.record.bytes.between.snapshots` */
  readonly everyBytes: number;
  /** `metadata.log.max.snapshot.interval.ms`; 0: the time does not matter. */
  readonly intervalMs: number;
  /** `controller.quorum.fetch.snapshot.max.bytes` */
  readonly fetchBytesMax: number;
  /** Runs the function in a turn of its own. */
  readonly defer: (run: () => void) => void;
}

/** The metadata log, as far as snapshots are concerned; see `RaftLog`. */
interface SnapshottedLog {
  readonly snapshotId: SnapshotId | null;
  readonly bytesSinceSnapshot: number;
  readonly deliveredId: SnapshotId;
  readonly deliveredVoters: readonly Voter[] | null;
  noteSnapshot(id: SnapshotId, bytes: number): void;
  dropBelow(id: SnapshotId): void;
  restartWith(snapshot: LoadedSnapshot): void;
}

export interface RaftSnapshotsOptions {
  readonly settings: SnapshotSettings;
  readonly log: SnapshottedLog;
  readonly codec: MetadataRecordCodec;
  readonly wallMs: () => number;
  /** Monotonic ms. */
  readonly now: () => number;
  readonly onWarning: (message: string) => void;
  /** Whether the leader that it comes from is still followed, so that the log has not moved meanwhile. */
  readonly awaits: (id: SnapshotId) => boolean;
  /** It has taken the log's place. */
  readonly handOut: (snapshot: LoadedSnapshot) => void;
  readonly dispatch: (event: RaftEvent) => void;
  /** The disk is broken. */
  readonly onFailed: (error: Error) => void;
}

/** After a write that found no room. */
const retryMs = 60_000;

export class RaftSnapshots {
  readonly #options: RaftSnapshotsOptions;
  #partial: { readonly id: SnapshotId; readonly file: PartialSnapshot } | null = null;
  #isWriting: boolean = false;
  /** All of one is there, and the disk is waited for: it is neither given up nor followed by another one. */
  #isEnding: boolean = false;
  #isClosed: boolean = false;
  #lastMs: number;
  #notBeforeMs = Number.NEGATIVE_INFINITY;
  /** Fulfilled when nothing is waiting for the disk. */
  #ending: Promise<void> = Promise.resolve();

  constructor(options: RaftSnapshotsOptions) {
    this.#options = options;
    this.#lastMs = options.now();
  }

  /** Something was committed. @param records all of it, as of now; read later, slice by slice */
  committed(records: () => Iterable<MetadataRecord>): void {
    if (this.#partial !== null || this.#isEnding || this.#isClosed || !this.#isDue()) return;
    const { settings, log, codec, wallMs } = this.#options;
    const id = log.deliveredId;
    const content = { id, voters: log.deliveredVoters, records: records() };
    try {
      const file = settings.files.begin(id);
      this.#partial = { id, file };
      this.#isWriting = true;
      this.#writeOn(id, file, encodeSnapshot(content, codec, wallMs()), log.bytesSinceSnapshot);
    } catch (error) {
      this.#couldNot(error);
    }
  }

  /** A piece of a snapshot, for a follower. */
  answer({
    snapshotId,
    position,
    maxBytes,
  }: FetchSnapshotRequest): Omit<FetchSnapshotReply, 'leaderId' | 'leaderEpoch'> {
    const { files, fetchBytesMax } = this.#options.settings;
    const asked = { type: 'fetchSnapshot', snapshotId, position } as const;
    const piece = files.read(snapshotId, position, Math.min(maxBytes, fetchBytesMax));
    if (piece !== null)
      return {
        ...asked,
        errorCode: ErrorCode.NONE,
        size: piece.size,
        unalignedRecords: piece.bytes,
      };
    const isThere = files.ids.some((id) => isSame(id, snapshotId));
    const errorCode = isThere ? ErrorCode.POSITION_OUT_OF_RANGE : ErrorCode.SNAPSHOT_NOT_FOUND;
    return { ...asked, errorCode, size: 0, unalignedRecords: new Uint8Array(0) };
  }

  /** A piece from the leader. When it was the last one, one of the callbacks follows. */
  receive(id: SnapshotId, size: number, position: number, bytes: Uint8Array): void {
    if (this.#isEnding) {
      this.#refuse(id);
      return;
    }
    try {
      if (position === 0) {
        this.#giveUp();
        this.#partial = { id, file: this.#options.settings.files.begin(id) };
      }
      const partial = this.#partial;
      if (partial === null || !isSame(partial.id, id) || partial.file.size !== position) {
        this.#refuse(id);
        return;
      }
      partial.file.append(bytes);
      if (partial.file.size >= size) this.#ending = this.#install(id, partial.file);
    } catch (error) {
      this.#refuse(id);
      this.#couldNot(error);
    }
  }

  /** Fulfilled when the disk is at rest; nothing is begun any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#ending;
    this.#giveUp();
  }

  #isDue(): boolean {
    const { settings, log, now } = this.#options;
    const { everyBytes, intervalMs } = settings;
    if (log.deliveredId.endOffset <= (log.snapshotId?.endOffset ?? 0)) return false;
    if (now() < this.#notBeforeMs) return false;
    const isOld = intervalMs > 0 && now() - this.#lastMs >= intervalMs;
    return isOld || log.bytesSinceSnapshot >= everyBytes;
  }

  #writeOn(
    id: SnapshotId,
    file: PartialSnapshot,
    batches: Iterator<Uint8Array>,
    bytesBefore: number,
  ): void {
    if (this.#isClosed || this.#partial?.file !== file) return;
    try {
      const { value, done } = batches.next();
      if (done === true) {
        this.#ending = this.#finish(id, file, bytesBefore);
        return;
      }
      file.append(value);
    } catch (error) {
      this.#couldNot(error);
      return;
    }
    this.#options.settings.defer(() => this.#writeOn(id, file, batches, bytesBefore));
  }

  /** Never rejects. */
  async #finish(id: SnapshotId, file: PartialSnapshot, bytesBefore: number): Promise<void> {
    const { log, settings, now } = this.#options;
    this.#isEnding = true;
    try {
      await file.finish();
      if (this.#partial?.file !== file || id.endOffset <= (log.snapshotId?.endOffset ?? 0)) {
        // One from the leader has overtaken it.
        settings.files.remove(id);
        return;
      }
      this.#partial = null;
      this.#isWriting = false;
      this.#lastMs = now();
      log.noteSnapshot(id, log.bytesSinceSnapshot - bytesBefore);
      this.#prune(id);
    } catch (error) {
      this.#couldNot(error);
    } finally {
      this.#isEnding = false;
    }
  }

  /** @throws DiskError */
  #prune(newest: SnapshotId): void {
    const { log, settings } = this.#options;
    const { files } = settings;
    const before = files.ids.findLast(({ endOffset }) => endOffset < newest.endOffset);
    if (before === undefined) return;
    log.dropBelow(before);
    for (const id of files.ids) if (id.endOffset < before.endOffset) files.remove(id);
  }

  /** Never rejects. */
  async #install(id: SnapshotId, file: PartialSnapshot): Promise<void> {
    const { settings, codec, log, awaits, handOut, dispatch, onWarning, now } = this.#options;
    const { files } = settings;
    this.#isEnding = true;
    try {
      const snapshot = decoded(id, file.readAll(), codec);
      if (typeof snapshot === 'string') {
        onWarning(
          `A snapshot of the metadata came damaged from the leader, and is fetched again: ${snapshot}.`,
        );
        this.#giveUp();
        this.#refuse(id);
        return;
      }
      await file.finish();
      const isWanted = this.#partial?.file === file && !this.#isClosed && awaits(id);
      if (this.#partial?.file === file) this.#partial = null;
      if (!isWanted) {
        files.remove(id);
        return;
      }
      log.restartWith(snapshot);
      this.#lastMs = now();
      handOut(snapshot);
      dispatch({ type: 'snapshotInstalled', id });
      for (const one of files.ids) if (one.endOffset < id.endOffset) files.remove(one);
    } catch (error) {
      this.#refuse(id);
      this.#couldNot(error);
    } finally {
      this.#isEnding = false;
    }
  }

  #refuse(id: SnapshotId): void {
    this.#options.dispatch({ type: 'snapshotFailed', id });
  }

  #giveUp(): void {
    this.#partial?.file.abandon();
    this.#partial = null;
    this.#isWriting = false;
  }

  #couldNot(error: unknown): void {
    const { onWarning, onFailed, now } = this.#options;
    const isOwn = this.#isWriting;
    this.#giveUp();
    if (!(error instanceof DiskError) || !error.isPassing) {
      onFailed(error instanceof Error ? error : new Error(String(error)));
      return;
    }
    if (isOwn) this.#notBeforeMs = now() + retryMs;
    onWarning(`No snapshot of the metadata could be written: ${error.message}`);
  }
}

/** The newest snapshot that can be read; null without one. What is damaged is told, and left where it is. */
export function newestSnapshot(
  files: SnapshotFiles,
  codec: MetadataRecordCodec,
  onWarning: (message: string) => void,
): LoadedSnapshot | null {
  for (let id = files.latest; id !== null; id = files.latest) {
    const snapshot = decoded(id, files.readAll(id), codec);
    if (typeof snapshot !== 'string') return snapshot;
    onWarning(
      `The snapshot of the metadata that ends at offset ${id.endOffset} cannot be used: ${snapshot}. An older one is taken, or the whole log.`,
    );
    files.forget(id);
  }
  return null;
}

function decoded(
  id: SnapshotId,
  bytes: Uint8Array,
  codec: MetadataRecordCodec,
): LoadedSnapshot | string {
  try {
    return decodeSnapshot(id, bytes, codec);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
