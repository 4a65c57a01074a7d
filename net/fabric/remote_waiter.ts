/**
 * Waits at the leader for a batch of another shard, and sends on what the leader says.
 *
 * Thread: the partition's shard. The leader may speak before `append` has returned (of a batch that it had already);
 * that is kept until `begin` knows the offset. Answers are one or two: `written`, and with acks=all `committed`.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { Answerer } from '../../engine/thread/link.ts';
import type { AppendWaiter } from '../../replication/partition/leader.ts';
import { Answer, errorWord, WrittenWord } from './wire.ts';

/** The leader has not said yet. */
const unsaid = -1000;

export class RemoteWaiter implements AppendWaiter {
  endOffset = 0;
  readonly #answerer: Answerer;
  readonly #exchange: number;
  readonly #allReplicas: boolean;
  #baseOffset = -1;
  #logAppendTimeMs = -1n;
  #logStartOffset = -1;
  #hasBegun: boolean = false;
  #written: ErrorCode | typeof unsaid = unsaid;
  #committed: ErrorCode | typeof unsaid = unsaid;
  /** The last answer has gone. */
  #isOver: boolean = false;

  constructor(answerer: Answerer, exchange: number, allReplicas: boolean) {
    this.#answerer = answerer;
    this.#exchange = exchange;
    this.#allReplicas = allReplicas;
  }

  /** The leader has taken the batch. */
  begin(baseOffset: number, logAppendTimeMs: bigint, logStartOffset: number): void {
    this.#baseOffset = baseOffset;
    this.#logAppendTimeMs = logAppendTimeMs;
    this.#logStartOffset = logStartOffset;
    this.#hasBegun = true;
    if (this.#written !== unsaid) this.#sendWritten(this.#written);
    if (this.#committed !== unsaid) this.#sendCommitted(this.#committed);
  }

  onWritten(error: ErrorCode): void {
    this.#written = error;
    if (this.#hasBegun) this.#sendWritten(error);
  }

  onCommitted(error: ErrorCode): void {
    this.#committed = error;
    if (this.#hasBegun) this.#sendCommitted(error);
  }

  #sendWritten(error: ErrorCode): void {
    const { numbers, longs } = this.#answerer.words;
    this.#isOver = !this.#allReplicas || error !== ErrorCode.NONE;
    numbers[errorWord] = error;
    numbers[WrittenWord.baseOffset] = this.#baseOffset;
    numbers[WrittenWord.logStartOffset] = this.#logStartOffset;
    longs[WrittenWord.logAppendTimeMs] = this.#logAppendTimeMs;
    this.#answerer.answer(Answer.written, this.#exchange, this.#isOver);
  }

  #sendCommitted(error: ErrorCode): void {
    // A batch that was not written is not committed either: that has been said.
    if (this.#isOver) return;
    this.#isOver = true;
    this.#answerer.words.numbers[errorWord] = error;
    this.#answerer.answer(Answer.committed, this.#exchange, true);
  }
}
