/** Seeds draw what happens to a follower, its owners and its leader; a model of the leader says what it is asked for. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type {
  AnsweredPartition,
  ReplicaFetchRequest,
} from '../../../replication/partition/fetch_exchange.ts';
import type { FollowedPartition } from '../../../replication/partition/followed_partition.ts';
import { ReplicaFetch } from '../../../replication/partition/replica_fetch.ts';

const test = suite('fetches of a follower, by seeds');

const options = {
  maxWaitMs: 500,
  minBytes: 1,
  maxBytes: 8_000,
  partitionMaxBytes: 1_000,
  backoffMs: 1_000,
};
const errors = [
  ErrorCode.NOT_LEADER_OR_FOLLOWER,
  ErrorCode.KAFKA_STORAGE_ERROR,
  ErrorCode.OFFSET_OUT_OF_RANGE,
];
const topicId = 't';

/** Draws numbers below `end`, the same ones for the same seed. */
function drawer(seed: number): (end: number) => number {
  let state = seed >>> 0;
  return (end) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 0x1_0000_0000) * end);
  };
}

interface Fetched {
  readonly partition: number;
  readonly epoch: number;
  readonly offset: number;
}

/** A leader's sessions as KIP-227 has them. */
class SessionModel {
  #id = 0;
  #epoch = 0;
  readonly #held = new Map<number, Fetched>();

  get id(): number {
    return this.#id;
  }

  /** What the request fetches; null: it is not in order. */
  take(request: ReplicaFetchRequest): Fetched[] | null {
    const { sessionId, sessionEpoch, partitions, forgotten } = request;
    if (sessionEpoch === 0) {
      this.#held.clear();
      this.#id += 1;
      this.#epoch = 1;
    } else {
      if (sessionId !== this.#id || sessionEpoch !== this.#epoch) return null;
      this.#epoch += 1;
    }
    for (const { partition, currentLeaderEpoch: epoch, fetchOffset: offset } of partitions)
      this.#held.set(partition, { partition, epoch, offset });
    for (const { partition } of forgotten) this.#held.delete(partition);
    return [...this.#held.values()];
  }
}

/** What happened to one follower so far. */
class Run {
  readonly #seed: number;
  readonly #draw: (end: number) => number;
  readonly #fetch: ReplicaFetch = new ReplicaFetch(options);
  readonly #leader: SessionModel = new SessionModel();
  /** By partition: its leader epoch, and where its log ends. */
  readonly #followed = new Map<number, { epoch: number; end: number }>();
  /** With their owners, who will say that the log ends there. */
  readonly #owned: { part: FollowedPartition; end: number }[] = [];
  /** What each request that has no answer yet fetches. */
  #underWay: Fetched[][] = [];
  #nowMs = 0;

  constructor(seed: number) {
    this.#seed = seed;
    this.#draw = drawer(seed);
  }

  step(): void {
    const draw = this.#draw;
    if (draw(4) === 0) this.#nowMs += draw(30);
    switch (draw(9)) {
      case 0:
        this.#follow(draw(5));
        break;
      case 1:
        if (draw(4) === 0) this.#unfollow(draw(5));
        break;
      case 2:
        if (draw(10) > 0) break;
        this.#underWay = [];
        this.#fetch.disconnected();
        break;
      case 3:
      case 4:
        this.#settle();
        break;
      case 5:
      case 6:
        this.#answer();
        break;
      default:
        this.#ask();
    }
  }

  #follow(partition: number): void {
    const known = this.#followed.get(partition);
    if (known === undefined) this.#followed.set(partition, { epoch: 1, end: 0 });
    else if (this.#draw(3) === 0) known.epoch += 1;
    this.#fetch.follow(topicId, partition, this.#followed.get(partition)!.epoch);
  }

  #unfollow(partition: number): void {
    this.#fetch.unfollow(topicId, partition);
    this.#followed.delete(partition);
  }

  #settle(): void {
    const [settled] = this.#owned.splice(this.#draw(this.#owned.length), 1);
    if (settled === undefined) return;
    const { part, end } = settled;
    if (this.#draw(8) === 0) {
      this.#fetch.settled(part, ErrorCode.FENCED_LEADER_EPOCH, null, this.#nowMs);
      return;
    }
    const followed = this.#followed.get(part.partition);
    if (followed !== undefined && part.state !== 'over') followed.end = end;
    const position = { fetchOffset: end, lastFetchedEpoch: 0, logStartOffset: 0 };
    this.#fetch.settled(part, ErrorCode.NONE, position, this.#nowMs);
  }

  #answer(): void {
    const fetches = this.#underWay.shift();
    if (fetches === undefined) return;
    const partitions: AnsweredPartition[] = [];
    for (const { partition, offset } of fetches) {
      const kind = this.#draw(4);
      if (kind === 0) continue;
      const errorCode = kind === 1 ? errors[this.#draw(errors.length)]! : ErrorCode.NONE;
      const records = kind === 1 ? null : new Uint8Array(1 + this.#draw(9));
      const told = { highWatermark: offset, logStartOffset: 0, diverging: null };
      partitions.push({ topicId, partition, errorCode, records, ...told });
    }
    const { id: sessionId } = this.#leader;
    const response = { errorCode: ErrorCode.NONE, sessionId, partitions };
    for (const { followed, isAwaited } of this.#fetch.answered(response, this.#nowMs))
      if (isAwaited) {
        const end = followed.position!.fetchOffset + 1 + this.#draw(3);
        this.#owned.push({ part: followed, end });
      }
  }

  #ask(): void {
    for (const part of this.#fetch.takeUnknown(this.#nowMs))
      this.#owned.push({ part, end: this.#followed.get(part.partition)!.end });
    const request = this.#fetch.next(this.#nowMs);
    if (request === null) return;
    const fetches = this.#leader.take(request);
    assert(fetches !== null, `seed ${this.#seed}: epoch ${request.sessionEpoch} is out of order`);
    for (const { partition, epoch, offset } of fetches) {
      const what = `seed ${this.#seed}: ${partition} is fetched in epoch ${epoch} from ${offset}`;
      assert.deepEqual({ epoch, end: offset }, this.#followed.get(partition), what);
      const isAway = this.#owned.some(
        ({ part }) => part.partition === partition && part.state === 'away',
      );
      assert(!isAway, `${what} while its owner has records of it`);
    }
    this.#underWay.push(fetches);
  }
}

test('whatever happens, the leader is asked for exactly what is ready, where its owner said that it ends', () => {
  for (let seed = 1; seed <= 200; seed += 1) {
    const run = new Run(seed);
    for (let step = 0; step < 400; step += 1) run.step();
  }
});

test.run();
