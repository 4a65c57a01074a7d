/**
 * A fetch session with one broker (KIP-227): after the first request only what has changed is said, and the broker says
 * only what has changed either.
 *
 * Thread: the client's. One request at a time: `next`, then one of `onAnswer` and `onFailure`.
 *
 * Legal transitions, by the epoch of the next request:
 *   0 (says everything, a new session) --answered with an id--> 1 --answered--> 2 …
 *   any --lost, unknown to the broker, failed--> 0
 */
import type {
  FetchRequestFetchPartitionInput,
  FetchRequestFetchTopicInput,
  FetchRequestForgottenTopicInput,
} from '../../protocol/messages.gen.ts';

/** What to ask for of one partition. */
export interface FetchTarget {
  readonly topic: string;
  readonly topicId: string;
  readonly partition: number;
  readonly offset: number;
  /** Of the leader, as the metadata say; -1 if they do not. */
  readonly leaderEpoch: number;
  /** Of the last record before `offset`; -1 if not known. */
  readonly lastEpoch: number;
  readonly maxBytes: number;
}

export interface SessionRequest {
  readonly sessionId: number;
  readonly sessionEpoch: number;
  readonly topics: FetchRequestFetchTopicInput[];
  readonly forgottenTopicsData: FetchRequestForgottenTopicInput[];
}

const noSession = 0;
const firstEpoch = 0;
const epochMax = 0x7fffffff;

export class FetchSession {
  #id: number = noSession;
  #epoch: number = firstEpoch;
  /** What the broker knows that it is asked for, by id and partition. */
  #known: Map<string, FetchTarget> = new Map();

  /** The next request, for exactly these targets. */
  next(targets: readonly FetchTarget[]): SessionRequest {
    const isFull = this.#epoch === firstEpoch;
    const known = new Map<string, FetchTarget>();
    const changed: FetchTarget[] = [];
    for (const target of targets) {
      const key = `${target.topicId}-${target.partition}`;
      const before = this.#known.get(key);
      if (isFull || before === undefined || !isSame(before, target)) changed.push(target);
      known.set(key, target);
      this.#known.delete(key);
    }
    const forgotten = isFull ? [] : [...this.#known.values()];
    this.#known = known;
    return {
      sessionId: this.#id,
      sessionEpoch: this.#epoch,
      topics: topicsOf(changed),
      forgottenTopicsData: topicsOf(forgotten).map(({ topic, topicId, partitions }) => ({
        ...{ topic, topicId },
        partitions: partitions.map(({ partition }) => partition),
      })),
    };
  }

  /** @returns false when the session is lost and the request has to be made again */
  onAnswer(errorCode: number, sessionId: number): boolean {
    if (errorCode !== 0) {
      this.onFailure();
      return false;
    }
    if (sessionId === noSession) {
      // The broker has no room for another session: everything is said each time.
      this.#id = noSession;
      this.#epoch = firstEpoch;
      return true;
    }
    this.#id = sessionId;
    this.#epoch = this.#epoch === epochMax ? 1 : this.#epoch + 1;
    return true;
  }

  /** Nobody knows whether the broker has taken the request in. The next one closes the session and opens another. */
  onFailure(): void {
    this.#epoch = firstEpoch;
    this.#known.clear();
  }

  /** The connection is gone; the broker lets the session go by itself. */
  forget(): void {
    this.#id = noSession;
    this.onFailure();
  }
}

function isSame(a: FetchTarget, b: FetchTarget): boolean {
  return (
    a.offset === b.offset &&
    a.leaderEpoch === b.leaderEpoch &&
    a.lastEpoch === b.lastEpoch &&
    a.maxBytes === b.maxBytes
  );
}

interface WireTopic {
  readonly topic: string;
  readonly topicId: string;
  readonly partitions: FetchRequestFetchPartitionInput[];
}

/** Both names of a topic are given: which of them is sent is up to the version. */
function topicsOf(targets: readonly FetchTarget[]): WireTopic[] {
  const topics = new Map<string, WireTopic>();
  for (const one of targets) {
    const { topic, topicId, partition } = one;
    let listed = topics.get(topicId);
    if (listed === undefined) {
      listed = { topic, topicId, partitions: [] };
      topics.set(topicId, listed);
    }
    listed.partitions.push({
      partition,
      fetchOffset: one.offset,
      currentLeaderEpoch: one.leaderEpoch,
      lastFetchedEpoch: one.lastEpoch,
      partitionMaxBytes: one.maxBytes,
    });
  }
  return [...topics.values()];
}
