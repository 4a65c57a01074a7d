/**
 * Moves partitions' log starts up: main has the new ones put on stable storage, then they count. So what a client was
 * once told is deleted stays deleted, whatever crashes.
 *
 * Thread: the shard's own. Concurrency: one request to main at a time for each log directory; what comes meanwhile
 * shares the next one. Durability: `advance` is fulfilled after the log directory's checkpoint has been flushed.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { LogStart } from '../../engine/log/checkpoint_table.ts';
import { parentOf } from '../../engine/log/partition_directory.ts';
import type { PartitionLeader } from '../../replication/partition/leader.ts';
import type { LogStartRequest } from '../shard_messages.ts';

interface Advance {
  offset: number;
  readonly resolve: ((error: ErrorCode) => void)[];
}

type Batch = Map<PartitionLeader, Advance>;

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
  advance(leader: PartitionLeader, offset: number): Promise<ErrorCode> {
    const path = parentOf(leader.log.dir);
    let dir = this.#dirs.get(path);
    if (dir === undefined) {
      dir = { waiting: new Map(), running: null };
      this.#dirs.set(path, dir);
    }
    const { promise, resolve } = Promise.withResolvers<ErrorCode>();
    const known = dir.waiting.get(leader);
    if (known === undefined) dir.waiting.set(leader, { offset, resolve: [resolve] });
    else {
      known.offset = Math.max(known.offset, offset);
      known.resolve.push(resolve);
    }
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
    for (const [leader, { offset }] of done) if (!failed) leader.advanceLogStart(offset);
    for (const [leader, { resolve }] of done) {
      const error = failed ? ErrorCode.KAFKA_STORAGE_ERROR : leader.refusal;
      for (const tell of resolve) tell(error);
    }
    this.#ask(path);
  }

  #ask(path: string): void {
    const dir = this.#dirs.get(path);
    if (dir === undefined || dir.running !== null || dir.waiting.size === 0) return;
    const batch: Batch = new Map();
    const starts: LogStart[] = [];
    for (const [leader, advance] of dir.waiting) {
      const { topic, topicId, partition, refusal } = leader;
      if (refusal !== ErrorCode.NONE) {
        for (const tell of advance.resolve) tell(refusal);
        continue;
      }
      batch.set(leader, advance);
      starts.push({ topic, topicId, partition, logStartOffset: advance.offset });
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
