/** A disk of one metadata log and one vote file that loses at a crash what was not flushed, as a seed decides. */
import { baseOffsetOf, lastOffsetOf, leaderEpochOf } from '../../../engine/batch/header.ts';
import type { MetadataLogStore } from '../../../replication/raft/metadata_log_store.ts';
import type { QuorumStateStore } from '../../../replication/raft/quorum_state.ts';

export class SimulatedStore implements MetadataLogStore, QuorumStateStore {
  readonly #random: (bound: number) => number;
  readonly #batches: Uint8Array[] = [];
  #durableCount = 0;
  #stateText: string | null = null;
  #savingText: string | null = null;
  /** Raised by every crash: what was waiting for the disk before never hears from it. */
  #life = 0;
  #flushError: Error | null = null;
  flushes = 0;

  constructor(random: (bound: number) => number) {
    this.#random = random;
  }

  get endOffset(): number {
    const last = this.#batches.at(-1);
    return last === undefined ? 0 : lastOffsetOf(last, 0) + 1;
  }

  get lastEpoch(): number {
    const last = this.#batches.at(-1);
    return last === undefined ? 0 : leaderEpochOf(last, 0);
  }

  /** First offset and epoch of each batch. */
  get epochs(): [number, number][] {
    return this.#batches.map((batch) => [baseOffsetOf(batch, 0), leaderEpochOf(batch, 0)]);
  }

  get stateText(): string | null {
    return this.#stateText;
  }

  set stateText(text: string | null) {
    this.#stateText = text;
  }

  read(visit: (batches: Uint8Array) => void): void {
    for (let at = 0; at < this.#batches.length; ) {
      const count = 1 + this.#random(3);
      visit(Buffer.concat(this.#batches.slice(at, at + count)));
      at += count;
    }
  }

  append(batch: Uint8Array): void {
    this.#batches.push(batch);
  }

  flush(): Promise<void> {
    const { length } = this.#batches;
    return this.#device(() => {
      if (this.#flushError !== null) throw this.#flushError;
      this.#durableCount = Math.max(this.#durableCount, length);
      this.flushes += 1;
    });
  }

  /** From now on the device takes nothing. */
  failFlushes(): void {
    this.#flushError = new Error('EIO: the flush failed');
  }

  close(): Promise<void> {
    return this.#device(() => {});
  }

  load(): string | null {
    return this.#stateText;
  }

  save(text: string): Promise<void> {
    this.#savingText = text;
    return this.#device(() => {
      this.#stateText = text;
      this.#savingText = null;
    });
  }

  /** Cuts the power: of what was not flushed a prefix of the batches may survive, and the new or the old vote file. */
  crash(): void {
    this.#life += 1;
    const open = this.#batches.length - this.#durableCount;
    this.#batches.length = this.#durableCount + this.#random(open + 1);
    this.#durableCount = this.#batches.length;
    if (this.#savingText !== null && this.#random(2) === 0) this.#stateText = this.#savingText;
    this.#savingText = null;
  }

  /** Does `done` after some turns of the event loop; never, when the power is cut meanwhile. */
  async #device(done: () => void): Promise<void> {
    const life = this.#life;
    for (let turns = this.#random(3); turns >= 0; turns -= 1) await Promise.resolve();
    if (life !== this.#life) await new Promise(() => {});
    done();
  }
}
