/**
 * The follower's side of one term: it fetches from the leader, one request at a time, and flushes what it got before it
 * asks for more, so that its fetch offset is a statement about its disk.
 *
 * Part of the Raft core: no IO, no clock.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { FetchReply, FetchSnapshotReply, SnapshotId } from './messages.ts';
import type { RaftContext } from './raft_types.ts';

/** Kafka's `MAX_FETCH_WAIT_MS` and `MAX_BATCH_SIZE_BYTES` of the raft client. */
const fetchWaitMs = 500;
const fetchBytesMax: number = 8 * 1024 * 1024;
/** After a broken connection the first attempt follows at once, later ones after so long. */
const reconnectMs = 20;
const noRoomRetryMs = 500;

export class RaftFollower {
  readonly epoch: number;
  readonly leaderId: number;
  /** When the leader was heard last; what others say of it does not count (KIP-996). */
  heardAtMs: number = Number.NEGATIVE_INFINITY;
  /** When its silence has lasted too long. */
  silentAtMs: number;
  /** As the leader says it; the log here may be behind. */
  #leaderHighWatermark = 0;
  /** The leader has found no difference up to this log's end, so that all of it is the leader's. */
  #isMatched: boolean = false;
  readonly #context: RaftContext;
  #token = -1;
  #retryAtMs: number;
  #brokenInARow = 0;
  /** What is being copied because the leader's log does not go back far enough, and how far that is; null: nothing. */
  #snapshot: { readonly id: SnapshotId; readonly position: number } | null = null;

  constructor(context: RaftContext, leader: { id: number; epoch: number }, nowMs: number) {
    this.#context = context;
    this.leaderId = leader.id;
    this.epoch = leader.epoch;
    this.#retryAtMs = nowMs;
    this.silentAtMs = this.#patienceEndMs(nowMs);
  }

  get wakeAtMs(): number {
    return this.#isFlushed ? Math.min(this.silentAtMs, this.#retryAtMs) : this.silentAtMs;
  }

  /** Everything below is committed, as far as the leader's word and this node's disk go. */
  get committedOffset(): number {
    return this.#isMatched
      ? Math.min(this.#leaderHighWatermark, this.#context.log.flushedOffset)
      : 0;
  }

  isAnswered(token: number): boolean {
    return token === this.#token;
  }

  /** Not while anything waits for its flush: the fetch offset would promise it. */
  isDue(nowMs: number): boolean {
    return nowMs >= this.#retryAtMs && this.#isFlushed;
  }

  /** @param highWatermark what this node knows to be committed */
  fetch(token: number, highWatermark: number): void {
    const { config, log, clusterId } = this.#context;
    this.expect(token);
    const snapshot = this.#snapshot;
    const fetcher = {
      clusterId,
      replicaId: config.self.id,
      replicaDirectoryId: config.self.directoryId,
      currentLeaderEpoch: this.epoch,
    };
    this.#context.emit({
      type: 'send',
      to: this.leaderId,
      token: this.#token,
      request:
        snapshot === null
          ? {
              type: 'fetch',
              ...fetcher,
              fetchOffset: log.endOffset,
              lastFetchedEpoch: log.lastEpoch,
              highWatermark,
              maxWaitMs: fetchWaitMs,
              maxBytes: fetchBytesMax,
            }
          : {
              type: 'fetchSnapshot',
              ...fetcher,
              snapshotId: snapshot.id,
              position: snapshot.position,
              maxBytes: config.snapshotBytesMax,
            },
      timeoutMs: (snapshot === null ? fetchWaitMs : 0) + config.timeouts.requestTimeoutMs,
    });
  }

  /** The leader has been asked something; the answer has this token. */
  expect(token: number): void {
    this.#retryAtMs = Number.POSITIVE_INFINITY;
    this.#token = token;
  }

  /** An answer without an error has come. */
  received(reply: FetchReply, nowMs: number): void {
    this.#heard(nowMs);
    this.#leaderHighWatermark = Math.max(this.#leaderHighWatermark, reply.highWatermark);
    if (reply.snapshotId !== null) {
      this.#snapshot = { id: reply.snapshotId, position: 0 };
      return;
    }
    if (reply.divergingEpoch !== null) {
      this.#truncate(reply.divergingEpoch);
      return;
    }
    this.#isMatched = true;
    if (reply.records.length > 0)
      this.#context.emit({ type: 'appendFetched', records: reply.records });
  }

  /** A piece of the snapshot, or an error: the leader may have another one by now. */
  receivedSnapshot(reply: FetchSnapshotReply, nowMs: number): void {
    const asked = this.#snapshot;
    const { snapshotId, size, position, unalignedRecords: bytes } = reply;
    const isGood =
      reply.errorCode === ErrorCode.NONE &&
      asked?.id.endOffset === snapshotId.endOffset &&
      asked.id.epoch === snapshotId.epoch &&
      asked.position === position &&
      bytes.length > 0;
    if (!isGood) {
      this.#snapshot = null;
      this.retry(nowMs);
      return;
    }
    this.#heard(nowMs);
    this.#snapshot = { id: asked.id, position: position + bytes.length };
    // When all of it is there, what becomes of it is awaited.
    if (position + bytes.length >= size) this.#retryAtMs = Number.POSITIVE_INFINITY;
    this.#context.emit({ type: 'keepSnapshot', id: asked.id, size, position, bytes });
  }

  /** Whether that snapshot is still what this node wants. */
  awaits(id: SnapshotId): boolean {
    const own = this.#snapshot?.id;
    return own?.endOffset === id.endOffset && own.epoch === id.epoch;
  }

  /** The snapshot has taken the log's place, or there was no room for it, or it was damaged. */
  endSnapshot(isInstalled: boolean, nowMs: number): void {
    this.#snapshot = null;
    this.#token = -1;
    this.#retryAtMs = isInstalled ? nowMs : nowMs + noRoomRetryMs;
  }

  foundNoRoom(nowMs: number): void {
    if (this.#retryAtMs < Number.POSITIVE_INFINITY) this.#retryAtMs = nowMs + noRoomRetryMs;
  }

  /** The request came to nothing. */
  retry(nowMs: number): void {
    this.#token = -1;
    this.#retryAtMs = nowMs + (this.#brokenInARow === 0 ? 0 : reconnectMs);
    this.#brokenInARow += 1;
  }

  #heard(nowMs: number): void {
    this.#token = -1;
    this.#brokenInARow = 0;
    this.#retryAtMs = nowMs;
    this.heardAtMs = nowMs;
    this.silentAtMs = this.#patienceEndMs(nowMs);
  }

  get #isFlushed(): boolean {
    const { config, log } = this.#context;
    return config.without === 'flush before fetch' || log.flushedOffset >= log.endOffset;
  }

  #patienceEndMs(nowMs: number): number {
    const { config } = this.#context;
    return nowMs + config.timeouts.fetchTimeoutMs * (1 + config.random() / 8);
  }

  /** To where the histories part, as far as this log knows the epoch that the leader names; never into a snapshot. */
  #truncate(diverging: { readonly epoch: number; readonly endOffset: number }): void {
    const { log } = this.#context;
    const own = log.endOffsetForEpoch(diverging.epoch);
    const isShared = own.epoch === diverging.epoch;
    const endOffset = isShared ? Math.min(own.endOffset, diverging.endOffset) : own.endOffset;
    this.#context.emit({
      type: 'truncate',
      endOffset: Math.max(log.snapshotId?.endOffset ?? 0, Math.min(endOffset, log.endOffset)),
    });
  }
}
