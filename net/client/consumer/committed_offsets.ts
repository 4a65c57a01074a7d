/**
 * The offsets that a group has committed: reading them, and committing. Commits of one consumer go out one after the other,
 * and what comes meanwhile is joined into the next, so that a later commit is never overtaken by an earlier one; a
 * partition's commit below the last one is not sent at all unless somebody has sought back.
 *
 * Thread: the client's. A commit is durable when its promise resolves.
 */
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { errorName } from '../../protocol/errors.ts';
import type { Cluster } from '../cluster.ts';
import { brokerError, MillraceError } from '../errors.ts';
import { sleep } from '../retry.ts';
import type { MemberIdentity } from './membership.ts';
import { byTopic, keyOf, type TopicPartition } from './topic_partition.ts';

/** The offset that is to be read next. */
export interface OffsetToCommit extends TopicPartition {
  readonly offset: number;
  /** Of the record before it; -1 if not known. */
  readonly leaderEpoch?: number;
  /** Whatever the reader wants to remember. */
  readonly metadata?: string;
}

export interface CommittedOffset extends TopicPartition {
  readonly offset: number;
  readonly leaderEpoch: number;
  readonly metadata: string;
}

export interface CommitOwner {
  readonly identity: MemberIdentity;
  /** It is to be a member and is none just now. */
  readonly isBetween: boolean;
  /** Whether this consumer has the partition: `going` while it is being given up, when nothing can be waited for. */
  standingOf(partition: TopicPartition): 'kept' | 'going' | 'none';
}

interface Waiting {
  readonly offsets: readonly OffsetToCommit[];
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** With leader epochs; by names, not ids. */
const commitVersions = { minVersion: 6, maxVersion: 9 } as const;
const fetchVersions = { minVersion: 8, maxVersion: 9 } as const;
const notAssignedCode = 'PARTITION_NOT_ASSIGNED';
const retryMs = 50;
/** What a commit waits for a rebalance to end. */
const rebalanceWaitMs = 30_000;

/** Told by the coordinator: the answer may be another one in the generation that comes. */
const ofGeneration: ReadonlySet<number> = new Set([
  ErrorCode.REBALANCE_IN_PROGRESS,
  ErrorCode.ILLEGAL_GENERATION,
  ErrorCode.UNKNOWN_MEMBER_ID,
  ErrorCode.STALE_MEMBER_EPOCH,
  ErrorCode.FENCED_MEMBER_EPOCH,
]);
/** To be asked again, of the coordinator that is found then. */
const ofCoordinator: ReadonlySet<number> = new Set([
  ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
  ErrorCode.COORDINATOR_NOT_AVAILABLE,
  ErrorCode.NOT_COORDINATOR,
  ErrorCode.REQUEST_TIMED_OUT,
  ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
]);

export class CommittedOffsets {
  readonly #cluster: Cluster;
  readonly #group: string;
  readonly #owner: CommitOwner;
  readonly #isCommitted: boolean;
  #waiting: Waiting[] = [];
  #running: Promise<void> | null = null;
  /** Of this assignment. */
  readonly #last = new Map<string, number>();

  constructor(cluster: Cluster, group: string, owner: CommitOwner, isCommitted: boolean) {
    this.#cluster = cluster;
    this.#group = group;
    this.#owner = owner;
    this.#isCommitted = isCommitted;
  }

  /** Forgets what was committed last: another one may have committed since, or somebody has sought. */
  forget({ topic, partition }: TopicPartition): void {
    this.#last.delete(keyOf({ topic, partition }));
  }

  /** What the group has committed. */
  note(one: CommittedOffset): void {
    this.#last.set(keyOf(one), one.offset);
  }

  lastOf(partition: TopicPartition): number {
    return this.#last.get(keyOf(partition)) ?? -1;
  }

  /** Throws a MillraceError: what kept some of the offsets from being committed. */
  commit(offsets: readonly OffsetToCommit[]): Promise<void> {
    if (offsets.length === 0) return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.#waiting.push({ offsets, resolve, reject });
      this.#running ??= this.#run().finally(() => {
        this.#running = null;
      });
    });
  }

  async fetch(
    partitions: readonly TopicPartition[],
    identity: MemberIdentity,
    signal?: AbortSignal,
  ): Promise<ReadonlyMap<string, CommittedOffset>> {
    const groupId = this.#group;
    const topics = byTopic(partitions).map(({ topic: name, partitions: numbers }) => ({
      name,
      partitionIndexes: [...numbers],
    }));
    const { memberId, generationId, isEpoch } = identity;
    const member = isEpoch && generationId >= 0 ? { memberId, memberEpoch: generationId } : {};
    const { groups } = await this.#cluster.request(
      { group: groupId },
      'OffsetFetch',
      (version) => ({
        requireStable: this.#isCommitted,
        groups: [{ groupId, topics, ...(version >= 9 ? member : {}) }],
      }),
      {
        ...{ signal, ...fetchVersions },
        errorOf: (answer) => coordinatorError(answer.groups[0]?.errorCode ?? 0),
      },
    );
    const answer = groups[0];
    const what = `the offsets of group ${JSON.stringify(groupId)}`;
    const errorCode = answer?.errorCode ?? ErrorCode.NONE;
    if (errorCode !== ErrorCode.NONE) throw brokerError(errorCode, what);
    const found = new Map<string, CommittedOffset>();
    for (const { name: topic, partitions: list } of answer?.topics ?? [])
      for (const one of list) {
        if (one.errorCode !== ErrorCode.NONE) throw brokerError(one.errorCode, what);
        if (one.committedOffset < 0n) continue;
        const where = { topic, partition: one.partitionIndex };
        found.set(keyOf(where), {
          ...where,
          offset: Number(one.committedOffset),
          leaderEpoch: one.committedLeaderEpoch,
          metadata: one.metadata ?? '',
        });
      }
    return found;
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      const waiting = this.#waiting;
      this.#waiting = [];
      const merged = new Map<string, OffsetToCommit>();
      for (const { offsets } of waiting)
        for (const one of offsets) {
          const { topic, partition } = one;
          const key = keyOf({ topic, partition });
          const known = merged.get(key)?.offset ?? this.lastOf(one);
          if (one.offset > known) merged.set(key, one);
        }
      const failed = await this.#commitAll(merged);
      for (const { offsets, resolve, reject } of waiting) {
        const error = offsets.map((one) => failed.get(keyOf(one))).find((e) => e !== undefined);
        if (error === undefined) resolve();
        else reject(error);
      }
    }
  }

  /** Returns what went wrong, by partition. */
  async #commitAll(
    wanted: ReadonlyMap<string, OffsetToCommit>,
  ): Promise<ReadonlyMap<string, unknown>> {
    const failed = new Map<string, unknown>();
    let left = new Map(wanted);
    const deadlineMs = performance.now() + rebalanceWaitMs;
    for (;;) {
      for (const [key, one] of left) {
        if (this.#owner.standingOf(one) !== 'none') continue;
        failed.set(key, notAssigned(one));
        left.delete(key);
      }
      if (left.size === 0) return failed;
      const isLast = performance.now() > deadlineMs || this.#cluster.signal.aborted;
      const again = await this.#commitOnce(left, failed, isLast);
      if (again.size > 0) await sleep(retryMs, this.#cluster.signal).catch(() => undefined);
      left = again;
    }
  }

  /** One attempt. Returns what may be committed in the generation that comes. */
  async #commitOnce(
    offsets: ReadonlyMap<string, OffsetToCommit>,
    failed: Map<string, unknown>,
    isLast: boolean,
  ): Promise<Map<string, OffsetToCommit>> {
    const again = new Map<string, OffsetToCommit>();
    const note = (key: string, one: OffsetToCommit, errorCode: number): void => {
      if (errorCode === ErrorCode.NONE) this.#last.set(key, one.offset);
      else if (ofGeneration.has(errorCode) && !isLast && this.#owner.standingOf(one) === 'kept')
        again.set(key, one);
      else failed.set(key, brokerError(errorCode, `commit offset ${one.offset} of ${key}`));
    };
    if (this.#owner.isBetween) {
      for (const [key, one] of offsets) note(key, one, ErrorCode.UNKNOWN_MEMBER_ID);
      return again;
    }
    try {
      for (const [key, errorCode] of await this.#send([...offsets.values()])) {
        const one = offsets.get(key);
        if (one !== undefined) note(key, one, errorCode);
      }
    } catch (error) {
      for (const key of offsets.keys()) failed.set(key, error);
      again.clear();
    }
    return again;
  }

  async #send(offsets: readonly OffsetToCommit[]): Promise<Map<string, number>> {
    const groupId = this.#group;
    const { memberId, instanceId, generationId } = this.#owner.identity;
    const byName = new Map<string, OffsetToCommit[]>();
    for (const one of offsets) byName.set(one.topic, [...(byName.get(one.topic) ?? []), one]);
    const topics = [...byName].map(([name, list]) => ({
      name,
      partitions: list.map(({ partition, offset, leaderEpoch = -1, metadata = '' }) => ({
        partitionIndex: partition,
        committedOffset: offset,
        committedLeaderEpoch: leaderEpoch,
        committedMetadata: metadata,
      })),
    }));
    const member = { memberId, generationIdOrMemberEpoch: generationId };
    const answer = await this.#cluster.request(
      { group: groupId },
      'OffsetCommit',
      (version) => ({
        ...{ groupId, topics, ...member },
        ...(version >= 7 ? { groupInstanceId: instanceId } : {}),
      }),
      {
        ...commitVersions,
        errorOf: ({ topics: list }) => {
          const codes = list.flatMap(({ partitions }) => partitions.map((one) => one.errorCode));
          return codes.map(coordinatorError).find((code) => code !== ErrorCode.NONE) ?? 0;
        },
      },
    );
    const codes = new Map<string, number>();
    for (const { name: topic, partitions } of answer.topics)
      for (const { partitionIndex: partition, errorCode } of partitions)
        codes.set(keyOf({ topic, partition }), errorCode);
    return codes;
  }
}

/** Whether a commit failed only because others have the partition now, and read it from the commit before. */
export function isTakenOver(error: unknown): boolean {
  if (!(error instanceof MillraceError)) return false;
  if (error.code === notAssignedCode) return true;
  return [...ofGeneration].some((code) => errorName(code) === error.code);
}

function coordinatorError(code: number): number {
  return ofCoordinator.has(code) ? code : ErrorCode.NONE;
}

function notAssigned(one: TopicPartition): MillraceError {
  return new MillraceError(
    notAssignedCode,
    `commit of ${keyOf(one)}, which this consumer does not have (any more)`,
    {
      isRetriable: false,
      remedy:
        'After a rebalance another member reads it from the last commit on: commit in `onRebalance`, before it goes.',
    },
  );
}
