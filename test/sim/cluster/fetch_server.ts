/**
 * Serves the followers of the partitions that a simulated broker leads: fetch sessions (production code), looks at the
 * leaders' logs, and requests that wait for something to come.
 */
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import {
  type FetchPartition,
  type FetchSession,
  FetchSessions,
  partitionKey,
} from '../../../net/server/fetch_sessions.ts';
import type {
  AnsweredPartition,
  ReplicaFetchRequest,
  ReplicaFetchResponse,
} from '../../../replication/partition/fetch_exchange.ts';
import type { PartitionLeader } from '../../../replication/partition/leader.ts';
import type { FetchMessage } from './node_fetcher.ts';
import type { SimProcess } from './sim_process.ts';

/** Where the partition is led, if it is here. */
export type LeaderOf = (asked: FetchPartition) => PartitionLeader | undefined;

/** Looks at a partition for a follower. */
export type LookForFollower = (
  asked: FetchPartition,
  brokerId: number,
  brokerEpoch: number,
  bytesLeft: number,
  isFirst: boolean,
) => AnsweredPartition;

interface Waiting {
  readonly brokerId: number;
  /** Answers with whatever there is. */
  readonly finish: () => void;
  /** Answers if there is something. */
  readonly look: () => void;
}

interface Found {
  readonly answered: readonly AnsweredPartition[];
  /** In which there was nothing new. */
  readonly quiet: readonly FetchPartition[];
  /** Not to be kept waiting. */
  readonly isNews: boolean;
  /** The follower is told so. */
  readonly tell: () => void;
}

const sessionsMax = 100;

export class FetchServer {
  readonly #process: SimProcess;
  readonly #now: () => number;
  readonly #look: LookForFollower;
  readonly #leaderOf: LeaderOf;
  readonly #sessions: FetchSessions;
  #waiting: Waiting[] = [];
  #lastSessionId = 0;

  constructor(process: SimProcess, now: () => number, look: LookForFollower, leaderOf: LeaderOf) {
    this.#process = process;
    this.#now = now;
    this.#look = look;
    this.#leaderOf = leaderOf;
    this.#sessions = new FetchSessions(sessionsMax, () => {
      this.#lastSessionId += 1;
      return this.#lastSessionId;
    });
  }

  serve(
    { brokerId, brokerEpoch, request }: FetchMessage,
    answer: (response: ReplicaFetchResponse) => void,
  ): void {
    // A broker has one connection here, and what comes behind a request that waits ends its wait.
    for (const waiting of [...this.#waiting]) if (waiting.brokerId === brokerId) waiting.finish();
    const resolved = this.#sessions.resolve(
      {
        sessionId: request.sessionId,
        sessionEpoch: request.sessionEpoch,
        usesTopicIds: true,
        isFollower: true,
        partitions: request.partitions.map(asked),
        forgotten: request.forgotten.map(({ topicId, partition }) =>
          partitionKey('', topicId, partition),
        ),
      },
      this.#now(),
    );
    if (resolved.error !== 0) {
      answer({ errorCode: resolved.error, sessionId: 0, partitions: [] });
      return;
    }
    const { sessionId, incremental, session } = resolved;
    if (session !== null) this.#sessions.identify(session, { brokerId, brokerEpoch });
    // Those of a session change while the request waits: a rest may end.
    const look = (): Found =>
      this.#lookAtAll(resolved.partitions, incremental, brokerId, brokerEpoch, request);
    const respond = ({ answered, quiet, tell }: Found): void => {
      tell();
      if (session !== null) this.#rest(session, quiet);
      answer({ errorCode: ErrorCode.NONE, sessionId, partitions: answered });
    };
    const first = look();
    if (session !== null) session.lastFetchMs = this.#now();
    if (first.isNews || request.maxWaitMs === 0) respond(first);
    else this.#park(brokerId, request.maxWaitMs, look, respond);
  }

  #rest(session: FetchSession, quiet: readonly FetchPartition[]): void {
    for (const asked of quiet) {
      const leader = this.#leaderOf(asked);
      if (leader !== undefined) this.#sessions.rest(session, asked, leader);
    }
  }

  /** There is more to read. */
  wake(): void {
    for (const { look } of [...this.#waiting]) look();
  }

  #park(
    brokerId: number,
    maxWaitMs: number,
    look: () => Found,
    respond: (found: Found) => void,
  ): void {
    let cancel = (): void => {};
    const end = (found: Found): void => {
      cancel();
      this.#waiting = this.#waiting.filter((one) => one !== waiting);
      respond(found);
    };
    const waiting: Waiting = {
      brokerId,
      finish: () => end(look()),
      look: () => {
        const found = look();
        if (found.isNews) end(found);
      },
    };
    cancel = this.#process.after(maxWaitMs, waiting.finish);
    this.#waiting.push(waiting);
  }

  #lookAtAll(
    partitions: Iterable<FetchPartition>,
    incremental: boolean,
    brokerId: number,
    brokerEpoch: number,
    { maxBytes }: ReplicaFetchRequest,
  ): Found {
    const answered: AnsweredPartition[] = [];
    const quiet: FetchPartition[] = [];
    const tells: (() => void)[] = [];
    let bytesLeft = maxBytes;
    let isNews = false;
    for (const one of partitions) {
      const found = this.#look(one, brokerId, brokerEpoch, bytesLeft, bytesLeft === maxBytes);
      const { errorCode, highWatermark, logStartOffset } = found;
      const bytes = found.records?.length ?? 0;
      bytesLeft -= bytes;
      const isUrgent = bytes > 0 || errorCode !== ErrorCode.NONE || found.diverging !== null;
      if (isUrgent) isNews = true;
      const isTold =
        one.toldHighWatermark === highWatermark && one.toldLogStartOffset === logStartOffset;
      if (incremental && !isUrgent && isTold) {
        quiet.push(one);
        continue;
      }
      answered.push(found);
      tells.push(() => {
        const isPlain = errorCode === ErrorCode.NONE && found.diverging === null;
        one.toldHighWatermark = isPlain ? highWatermark : -1;
        one.toldLogStartOffset = logStartOffset;
      });
    }
    const tell = (): void => {
      for (const note of tells) note();
    };
    return { answered, quiet, isNews, tell };
  }
}

function asked(one: ReplicaFetchRequest['partitions'][number]): FetchPartition {
  const { topicId, partition, fetchOffset, maxBytes, currentLeaderEpoch, lastFetchedEpoch } = one;
  return {
    topic: '',
    topicId,
    partition,
    fetchOffset,
    maxBytes,
    currentLeaderEpoch,
    lastFetchedEpoch,
    toldHighWatermark: -1,
    toldLogStartOffset: -1,
    restsAt: null,
  };
}
