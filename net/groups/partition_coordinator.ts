/**
 * Drives the coordinator machine of one partition of `__consumer_offsets`: its records go into the partition's log, its
 * answers out when the machine lets them, its deadlines to a timer.
 *
 * Thread: the shard of the partition. Concurrency: none, every call runs to its end. Durability: an append counts as
 * committed when it is below the high watermark, which with `log.durability=fsync` covers flushed bytes only; the
 * machine answers nothing earlier. A commit that takes longer than `offsets.commit.timeout.ms` is answered with
 * COORDINATOR_NOT_AVAILABLE although it may still count.
 */
import { encodeBatch } from '../../engine/batch/encode.ts';
import type { Codec } from '../../engine/batch/header.ts';
import { type BatchInfo, newBatchInfo } from '../../engine/batch/rules.ts';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type {
  CoordinatorEffect,
  CoordinatorEvent,
  Instant,
} from '../../engine/groups/coordinator_events.ts';
import type { Client, GroupReply, GroupRequest } from '../../engine/groups/group_api.ts';
import type { GroupRecord } from '../../engine/groups/group_records.ts';
import { refusal } from '../../engine/groups/refusals.ts';
import { type AppendResult, newAppendResult } from '../../engine/log/append_result.ts';
import type { Clock } from '../../engine/ports.ts';
import type { AppendWaiter, PartitionLeader } from '../../replication/partition/leader.ts';
import { StringTooLongError } from '../protocol/writer.ts';
import type { Parkable, Parked, Purgatory } from '../server/purgatory.ts';
import type { ShardLogger } from '../shard_context.ts';
import { encodeGroupRecord } from './group_records.ts';

/** `GroupCoordinator`, which tells how it is to be driven. */
export interface CoordinatorMachine {
  readonly nextDeadlineMs: number;
  step(event: CoordinatorEvent, now: Instant): CoordinatorEffect[];
  tick(now: Instant): CoordinatorEffect[];
}

export interface PartitionCoordinatorOptions {
  readonly leader: PartitionLeader;
  readonly machine: CoordinatorMachine;
  readonly clock: Clock;
  /** Deadlines of coordinators and of commits that wait. */
  readonly timers: Purgatory<never>;
  readonly logger: ShardLogger;
  /** `offsets.topic.compression.codec`. */
  readonly compression: Codec;
  /** `offsets.commit.timeout.ms`. */
  readonly commitTimeoutMs: number;
  /** Runs the function in a later turn. */
  readonly defer: (run: () => void) => void;
}

/** Characters of a line in the broker's log. */
const logTextMax = 500;

interface FailedAppend {
  readonly appendId: number;
  readonly error: ErrorCode;
}

/** Reused for every append of the thread. */
const info: BatchInfo = newBatchInfo();
const result: AppendResult = newAppendResult();

export class PartitionCoordinator implements Parkable {
  readonly leader: PartitionLeader;
  readonly #options: PartitionCoordinatorOptions;
  readonly #machine: CoordinatorMachine;
  /** Who waits for the answer to each token. */
  readonly #waiting = new Map<number, (reply: GroupReply) => void>();
  #nextToken = 1;
  /** Of the request that is being given to the machine, and what it has answered there and then. */
  #askingToken = 0;
  #early: GroupReply | null = null;
  /** On their way into the log. One that has been given up is not here, and what the log says of it does not matter. */
  readonly #appends = new Set<CoordinatorAppend>();
  /**
   * What the log has refused and the machine has not heard of yet: it is told in a turn of its own, or one that tries the
   * same again at once would never let the others have theirs. Later appends are dropped until then.
   */
  #failed: FailedAppend | null = null;
  #timer: Parked<never> | null = null;
  #isLoaded: boolean = false;
  #isResigned: boolean = false;

  constructor(options: PartitionCoordinatorOptions) {
    this.#options = options;
    this.leader = options.leader;
    this.#machine = options.machine;
  }

  get isLoaded(): boolean {
    return this.#isLoaded;
  }

  get isResigned(): boolean {
    return this.#isResigned;
  }

  /** While loading: the next records of the log. */
  load(records: readonly GroupRecord[]): void {
    this.#step({ type: 'load', records });
  }

  /** Everything has been loaded: requests are served from now on. */
  loaded(): void {
    this.#isLoaded = true;
    this.#step({ type: 'loaded' });
  }

  /**
   * The answer comes when the machine gives it: at once, as for most heartbeats, or for a member that joins perhaps minutes
   * later. Never rejects.
   */
  request(client: Client, request: GroupRequest): GroupReply | Promise<GroupReply> {
    if (this.leader.refusal !== ErrorCode.NONE) this.resign();
    if (this.#isResigned) return refusal(request, ErrorCode.NOT_COORDINATOR);
    const token = this.#nextToken;
    this.#nextToken += 1;
    this.#askingToken = token;
    this.#step({ type: 'request', token, client, request });
    this.#askingToken = 0;
    const early = this.#early;
    this.#early = null;
    if (early !== null) return early;
    const { promise, resolve } = Promise.withResolvers<GroupReply>();
    if (request.api === 'OffsetCommit') this.#limit(token, request, resolve);
    else this.#waiting.set(token, resolve);
    return promise;
  }

  topicsChanged(changed: readonly string[], deleted: readonly string[]): void {
    this.#step({ type: 'topics_changed', changed, deleted });
  }

  /** The partition is led here no more, or the broker stops: whoever waits is sent to look for the coordinator again. */
  resign(): void {
    if (this.#isResigned) return;
    this.#step({ type: 'resigned' });
    this.#isResigned = true;
    if (this.#timer !== null) this.#options.timers.cancel(this.#timer);
    this.#timer = null;
  }

  /** For the timers. */
  tryComplete(): boolean {
    return false;
  }

  /** For the timers: the machine's deadline has come. */
  expire(): void {
    this.#timer = null;
    if (this.leader.refusal !== ErrorCode.NONE) this.resign();
    else this.#run(this.#machine.tick(this.#now()));
  }

  /** The log has stored an append for good, or has not. For the append. */
  onCommitted(append: CoordinatorAppend, error: ErrorCode): void {
    if (error === ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND && this.#appends.has(append)) {
      // It is in the log and cannot be undone: the replicas will be back, or another broker leads.
      this.leader.wait(append);
      return;
    }
    if (!this.#appends.delete(append)) return;
    const { appendId } = append;
    if (error === ErrorCode.NONE) this.#step({ type: 'committed', appendId });
    else this.#fail({ appendId, error });
  }

  #step(event: CoordinatorEvent): void {
    if (!this.#isResigned) this.#run(this.#machine.step(event, this.#now()));
  }

  #run(effects: readonly CoordinatorEffect[]): void {
    for (const effect of effects) {
      if (effect.type === 'append') {
        if (this.#failed !== null) continue;
        const error = this.#append(effect);
        if (error !== ErrorCode.NONE) this.#fail({ appendId: effect.appendId, error });
      } else if (effect.type === 'reply') {
        this.#answer(effect.token, effect.reply);
      } else this.#log(effect);
    }
    this.#setTimer(this.#machine.nextDeadlineMs);
  }

  #answer(token: number, reply: GroupReply): void {
    if (token === this.#askingToken) {
      this.#early = reply;
      return;
    }
    const answer = this.#waiting.get(token);
    this.#waiting.delete(token);
    answer?.(reply);
  }

  #append({ appendId, records }: CoordinatorEffect & { type: 'append' }): ErrorCode {
    const { clock, compression } = this.#options;
    const nowMs = clock.wallMs();
    const timestamp = BigInt(nowMs);
    const batch = encodeRecords(records, timestamp, compression);
    if (batch === null || batch.length > this.leader.batchRules.maxMessageBytes)
      return ErrorCode.MESSAGE_TOO_LARGE;
    info.recordCount = records.length;
    info.lastOffsetDelta = records.length - 1;
    info.baseTimestamp = timestamp;
    info.maxTimestamp = timestamp;
    info.offsetOfMaxTimestamp = 0;
    const append = new CoordinatorAppend(this, appendId);
    this.#appends.add(append);
    return this.leader.append(batch, 0, batch.length, info, true, nowMs, append, result);
  }

  /** The append and all later ones are not in the log and never will be. */
  #fail(failed: FailedAppend): void {
    for (const append of this.#appends)
      if (append.appendId >= failed.appendId) this.#appends.delete(append);
    const isAnnounced = this.#failed !== null;
    this.#failed = failed;
    if (isAnnounced) return;
    this.#options.defer(() => {
      const { appendId, error } = this.#failed ?? failed;
      this.#failed = null;
      this.#step({ type: 'append_failed', appendId, error });
    });
  }

  #log({ level, message }: CoordinatorEffect & { type: 'log' }): void {
    const { logger } = this.#options;
    const { topic, partition } = this.leader;
    // Clients choose how their groups and members are called, and what they give for a reason.
    const text = message.length > logTextMax ? `${message.slice(0, logTextMax)}…` : message;
    logger[level]({ partition: `${topic}-${partition}` }, text);
  }

  /** A client is not to wait for ever for a disk that stands still; later it may ask again. */
  #limit(token: number, request: GroupRequest, answer: (reply: GroupReply) => void): void {
    const { timers, commitTimeoutMs } = this.#options;
    const limit: Parkable = {
      tryComplete: () => false,
      expire: () => {
        this.#waiting.delete(token);
        answer(refusal(request, ErrorCode.COORDINATOR_NOT_AVAILABLE));
      },
    };
    const parked = timers.park(limit, [], commitTimeoutMs);
    this.#waiting.set(token, (reply) => {
      timers.cancel(parked);
      answer(reply);
    });
  }

  #setTimer(deadlineMs: number): void {
    const { timers } = this.#options;
    if (this.#timer !== null) {
      // One that stands earlier than needed fires for nothing once: cheaper than moving it with every heartbeat.
      if (this.#timer.deadlineMs <= deadlineMs) return;
      timers.cancel(this.#timer);
      this.#timer = null;
    }
    if (deadlineMs === Number.POSITIVE_INFINITY) return;
    this.#timer = timers.park(this, [], deadlineMs - timers.nowMs());
  }

  #now(): Instant {
    return { monotonicMs: this.#options.timers.nowMs(), wallMs: this.#options.clock.wallMs() };
  }
}

/**
 * Null if a record cannot say what a client has told: a name that is no UTF-8 takes three times as many bytes when it is
 * written, and may be too long then.
 */
function encodeRecords(
  records: readonly GroupRecord[],
  timestamp: bigint,
  codec: Codec,
): Uint8Array | null {
  const encoded = [];
  try {
    for (const record of records) encoded.push({ ...encodeGroupRecord(record), timestamp });
  } catch (error) {
    if (error instanceof StringTooLongError) return null;
    throw error;
  }
  return encodeBatch({ records: encoded, codec });
}

/** One batch of a coordinator on its way into the log. */
class CoordinatorAppend implements AppendWaiter {
  endOffset = 0;
  readonly appendId: number;
  readonly #coordinator: PartitionCoordinator;

  constructor(coordinator: PartitionCoordinator, appendId: number) {
    this.#coordinator = coordinator;
    this.appendId = appendId;
  }

  /** Its memory is nobody else's: there is nothing to give back. */
  onWritten(_error: ErrorCode): void {}

  onCommitted(error: ErrorCode): void {
    this.#coordinator.onCommitted(this, error);
  }
}
