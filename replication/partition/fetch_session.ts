/**
 * A follower's end of a fetch session with its leader (KIP-227): ids, epochs, and which requests are under way.
 *
 * Legal transitions:
 *   fresh       --full request, session granted--> epoch 1      incremental from here on
 *   fresh       --full request, none granted-----> sessionless  every request is a full one
 *   epoch n     --incremental request------------> epoch n + 1  (wraps to 1)
 *   any         --error or lost connection-------> fresh        requests under way are void
 */

interface Outstanding {
  readonly number: number;
  readonly isFull: boolean;
  readonly isWaiting: boolean;
  /** Its session was given up meanwhile: the answer says nothing any more. */
  isVoid: boolean;
}

const epochMax = 0x7fffffff;

export class FetchSessionState {
  #id = 0;
  /** 0: the next request is a full one. */
  #epoch = 0;
  #isFresh: boolean = true;
  #lastNumber = 0;
  /** Oldest first; two at the most. */
  #outstanding: Outstanding[] = [];

  /** The next request names everything. */
  get isFull(): boolean {
    return this.#epoch === 0;
  }

  /** The next request is the first, and finds out whether the leader keeps a session. */
  get isFresh(): boolean {
    return this.#isFresh;
  }

  get outstandingCount(): number {
    return this.#outstanding.length;
  }

  /** Whether a request that has something new may go out behind the one under way, which only waits. */
  get mayOvertake(): boolean {
    const [first, second] = this.#outstanding;
    if (first === undefined || second !== undefined) return false;
    return first.isWaiting && !first.isFull && !first.isVoid;
  }

  /** A request goes out. `number` counts up from 1. */
  sent(isWaiting: boolean): { number: number; sessionId: number; sessionEpoch: number } {
    this.#lastNumber += 1;
    const number = this.#lastNumber;
    const sessionEpoch = this.#epoch;
    const isFull = this.isFull;
    this.#outstanding.push({ number, isFull, isWaiting, isVoid: false });
    if (!isFull) this.#epoch = sessionEpoch === epochMax ? 1 : sessionEpoch + 1;
    return { number, sessionId: this.#id, sessionEpoch };
  }

  /** The oldest request has its answer; undefined: there is none. */
  answered(): Readonly<Outstanding> | undefined {
    return this.#outstanding.shift();
  }

  /** The leader has answered a full request, with this session or 0 for none. */
  begun(id: number): void {
    this.#isFresh = false;
    this.#id = id;
    this.#epoch = id === 0 ? 0 : 1;
  }

  /** Begins anew. The full request that follows ends the session that the leader may still have. */
  reset(): void {
    for (const request of this.#outstanding) request.isVoid = true;
    this.#isFresh = true;
    this.#epoch = 0;
  }

  /** The leader does not know the session. */
  lost(): void {
    this.#id = 0;
  }

  /** The connection is gone, and the answers to what is under way with it. */
  disconnected(): void {
    this.#outstanding = [];
    this.reset();
  }
}
