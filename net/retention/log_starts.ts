/**
 * Moves partitions' log starts up: main has the new ones put on stable storage, then they count. So what a client was
 * once told is deleted stays deleted, whatever crashes. The same way recovery points come down, before a log is cut.
 *
 * Thread: the shard's own. Concurrency: one request to main at a time for each log directory; what comes meanwhile
 * shares the next one. Durability: `advance` is fulfilled after the log directory's checkpoint has been flushed.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { LogStart } from '../../engine/log/checkpoint_table.ts';
import { parentOf } from '../../engine/log/partition_directory.ts';
import type { PartitionReplica } from '../../replication/partition/replica.ts';
import type { LogStartRequest } from '../shard_messages.ts';

interface Advance {
  offset: number;
  recoveryPointMax?: number;
  readonly resolve: ((error: ErrorCode) => void)[];
}

type Batch = Map<PartitionReplica, Advance>;

const offsetMax = Number.MAX_SAFE_INTEGER;

interface LogDir {
  waiting: Batch;
  running: Batch | null;
}

export class LogStarts {
  readonly #post: (request: LogStartRequest) => void;
  readonly #dirs = new Map<string, LogDir>();
  /** Path of the log directory by number of the request. */
  readonly #asked = new Map<number, string>();
  #nextNumber = 0;

  /** @param post sends the request to main, whose answer comes to `stored` */
  constructor(post: (request: LogStartRequest) => void) {
    this.#post = post;
  }

  /**
   * Has the partition's log begin at `offset`, which must not be past its high watermark. Fulfilled with NONE when
   * nothing below it can be read any more, ever; KAFKA_STORAGE_ERROR when it could not be written down, and nothing has
   * changed; or the reason why the partition is not served any more.
   */
  advance(replica: PartitionReplica, offset: number): Promise<ErrorCode> {
    return this.#store(replica, offset, undefined);
  }

  /** Has it on stable storage that nothing past `offset` is known to be whole: the log is about to be cut there. */
  lowerRecoveryPoint(replica: PartitionReplica, offset: number): Promise<ErrorCode> {
    const { log } = replica;
    log.lowerRecoveryPoint(offset);
    return this.#store(replica, log.logStartOffset, offset);
  }

  #store(
    replica: PartitionReplica,
    offset: number,
    recoveryPointMax: number | undefined,
  ): Promise<ErrorCode> {
    const path = parentOf(replica.log.dir);
    let dir = this.#dirs.get(path);
    if (dir === undefined) {
      dir = { waiting: new Map(), running: null };
      this.#dirs.set(path, dir);
    }
    const { promise, resolve } = Promise.withResolvers<ErrorCode>();
    const known = dir.waiting.get(replica);
    const advance = known ?? { offset, resolve: [] };
    advance.offset = Math.max(advance.offset, offset);
    if (recoveryPointMax !== undefined)
      advance.recoveryPointMax = Math.min(advance.recoveryPointMax ?? offsetMax, recoveryPointMax);
    advance.resolve.push(resolve);
    dir.waiting.set(replica, advance);
    if (dir.running === null && dir.waiting.size === 1 && known === undefined)
      // The other partitions of a request come within this turn.
      queueMicrotask(() => this.#ask(path));
    return promise;
  }

  /** Main's answer. */
  stored(number: number, failed: boolean): void {
    const path = this.#asked.get(number);
    const dir = path === undefined ? undefined : this.#dirs.get(path);
    if (path === undefined || !dir?.running) return;
    this.#asked.delete(number);
    const done = dir.running;
    dir.running = null;
    for (const [replica, { offset }] of done) if (!failed) replica.advanceLogStart(offset);
    for (const [replica, { resolve }] of done) {
      const error = failed ? ErrorCode.KAFKA_STORAGE_ERROR : replica.refusal;
      for (const tell of resolve) tell(error);
    }
    this.#ask(path);
  }

  #ask(path: string): void {
    const dir = this.#dirs.get(path);
    if (dir === undefined || dir.running !== null || dir.waiting.size === 0) return;
    const batch: Batch = new Map();
    const starts: LogStart[] = [];
    for (const [replica, advance] of dir.waiting) {
      const { topic, topicId, partition, refusal } = replica;
      if (refusal !== ErrorCode.NONE) {
        for (const tell of advance.resolve) tell(refusal);
        continue;
      }
      batch.set(replica, advance);
      const { offset: logStartOffset, recoveryPointMax } = advance;
      const start = { topic, topicId, partition, logStartOffset };
      starts.push(recoveryPointMax === undefined ? start : { ...start, recoveryPointMax });
    }
    dir.waiting = new Map();
    if (batch.size === 0) return;
    dir.running = batch;
    const number = this.#nextNumber;
    this.#nextNumber += 1;
    this.#asked.set(number, path);
    this.#post({ number, path, starts });
  }
}
