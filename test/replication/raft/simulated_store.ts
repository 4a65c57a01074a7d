/** A disk of one metadata log and one vote file that loses at a crash what was not flushed, as a seed decides. */
import { baseOffsetOf, lastOffsetOf, leaderEpochOf } from '../../../engine/batch/header.ts';
import {
  LogFullError,
  type MetadataLogStore,
} from '../../../replication/raft/metadata_log_store.ts';
import type { QuorumStateStore } from '../../../replication/raft/quorum_state.ts';

export class SimulatedStore implements MetadataLogStore, QuorumStateStore {
  readonly #random: (bound: number) => number;
  readonly #batches: Uint8Array[] = [];
  #durableCount = 0;
  #truncations = 0;
  #stateText: string | null = null;
  #savingText: string | null = null;
  /** Raised by every crash: what was waiting for the disk before never hears from it. */
  #life = 0;
  #flushError: Error | null = null;
  readonly #wait: (() => Promise<void>) | null;
  flushes = 0;
  /** There is no room for what has not been flushed. */
  isFull: boolean = false;

  /** @param wait how long the device takes for something; some turns of the event loop, if nothing is said */
  constructor(random: (bound: number) => number, wait: (() => Promise<void>) | null = null) {
    this.#random = random;
    this.#wait = wait;
  }

  /** Without snapshots nothing ever goes. */
  get startOffset(): number {
    return 0;
  }

  restartAt(): void {
    throw new Error('no snapshots here');
  }

  dropBelow(): void {}

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

  endOffsetForEpoch(epoch: number): { epoch: number; endOffset: number } {
    let found = -1;
    for (const batch of this.#batches) {
      const next = leaderEpochOf(batch, 0);
      if (next > epoch)
        return { epoch: found < 0 ? epoch : found, endOffset: baseOffsetOf(batch, 0) };
      found = next;
    }
    return found === epoch ? { epoch, endOffset: this.endOffset } : { epoch: -1, endOffset: -1 };
  }

  read(fromOffset: number, upToOffset: number, maxBytes: number): Uint8Array {
    const found: Uint8Array[] = [];
    let bytes = 0;
    const most = 1 + this.#random(3);
    for (const batch of this.#batches) {
      if (lastOffsetOf(batch, 0) < fromOffset) continue;
      if (lastOffsetOf(batch, 0) >= upToOffset || (bytes > 0 && bytes + batch.length > maxBytes))
        break;
      if (found.length === most && maxBytes < 1 << 20) break;
      found.push(batch);
      bytes += batch.length;
    }
    return new Uint8Array(Buffer.concat(found));
  }

  append(batch: Uint8Array): void {
    this.#batches.push(batch);
  }

  truncate(endOffset: number): void {
    while (this.endOffset > endOffset) this.#batches.pop();
    this.#durableCount = Math.min(this.#durableCount, this.#batches.length);
    this.#truncations += 1;
  }

  flush(): Promise<void> {
    const { length } = this.#batches;
    const truncations = this.#truncations;
    return this.#device(() => {
      if (this.#flushError !== null) throw this.#flushError;
      if (this.isFull && this.#durableCount < this.#batches.length) {
        this.#batches.length = this.#durableCount;
        throw new LogFullError('no room');
      }
      if (truncations === this.#truncations)
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
    if (this.#wait !== null) await this.#wait();
    else for (let turns = this.#random(3); turns >= 0; turns -= 1) await Promise.resolve();
    if (life !== this.#life) await new Promise(() => {});
    done();
  }
}
