/**
 * Members of a consumer group of a simulated cluster, whose coordinator moves with its partition: they join, read on from
 * what is committed, commit, stall, die and come back.
 *
 *   I6 what was committed is never taken back: who fetches the group's offsets finds what was acknowledged, or more
 *   a commit of an earlier generation is refused
 */
import assert from 'node:assert/strict';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type { TopicDescription } from '../../../engine/groups/coordinator_events.ts';
import type { GroupReply, GroupRequest } from '../../../engine/groups/group_api.ts';
import { uuidZero } from '../../../replication/metadata/records.ts';
import { ClassicClient } from '../classic_client.ts';
import type { ClientSurroundings } from '../client_process.ts';
import type { ReplyTo } from '../group_world.ts';
import type { SeededRandom } from '../seeded_random.ts';
import { Client, type ClientWorld } from './client.ts';
import { isFailure } from './network.ts';
import { topicName } from './topic_maker.ts';

const groupId = 'g';
/** Requests to join wait for other members. */
const joinTimeoutMs = 4_000;
const requestTimeoutMs = 1_500;

const movedErrors: readonly (ErrorCode | undefined)[] = [
  ErrorCode.NOT_COORDINATOR,
  ErrorCode.COORDINATOR_NOT_AVAILABLE,
  ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
];
const staleErrors: readonly (ErrorCode | undefined)[] = [
  ErrorCode.ILLEGAL_GENERATION,
  ErrorCode.UNKNOWN_MEMBER_ID,
];

interface Acknowledged {
  readonly partition: number;
  readonly generation: number;
  readonly offset: bigint;
}

export class GroupMembers implements ClientSurroundings {
  readonly random: SeededRandom;
  readonly topics: ReadonlyMap<string, TopicDescription>;
  readonly #world: ClientWorld;
  readonly #client: Client;
  readonly #members: readonly ClassicClient[];
  /** By partition. */
  readonly #acknowledged = new Map<number, Acknowledged>();
  /** Commits without an answer: in their generation they may still arrive, on a connection that was given up. */
  #unanswered: Acknowledged[] = [];
  /** Nobody dies or stalls any more. */
  isEnding: boolean = false;

  constructor(world: ClientWorld, count: number, seed: number) {
    this.#world = world;
    this.#client = new Client(world, 'group', 5000, seed);
    this.random = this.#client.random;
    const partitionCount = world.committed.length;
    this.topics = new Map([[topicName, { topicId: '', partitionCount }]]);
    this.#members = Array.from(
      { length: count },
      () =>
        new ClassicClient(this, {
          name: 'member',
          groupId,
          topic: topicName,
          instanceId: null,
          sessionTimeoutMs: 2_000,
          rebalanceTimeoutMs: 1_500,
          heartbeatIntervalMs: 500,
          knowsMemberIdRequired: true,
          knowsSkipAssignment: true,
          assignor: null,
        }),
    );
  }

  get machineId(): number {
    return this.#client.process.machineId;
  }

  get nowMs(): number {
    return this.#world.timeline.nowMs;
  }

  count(what: string): void {
    this.#world.count(`27 group: ${what}`);
  }

  after(delayMs: number, run: () => void): void {
    this.#client.process.after(delayMs, run);
  }

  start(): void {
    for (const member of this.#members) this.after(this.random.below(2_000), () => member.start());
    if (this.#members.length > 0) this.#disturbLater();
  }

  /** Why the group has not come to rest, null if it has. */
  get problem(): string | null {
    const [first] = this.#members;
    for (const member of this.#members) {
      if (!member.isStable) return 'a member of the group is in no generation';
      if (member.generationId !== first?.generationId) return 'the group is in two generations';
      if (member.reader.commits === 0 && member.reader.positions.size > 0)
        return 'a member of the group has committed nothing yet';
    }
    return null;
  }

  /** From now on everybody must be able to commit. */
  end(): void {
    this.isEnding = true;
    for (const member of this.#members) {
      member.reader.commits = 0;
      if (!member.process.isAlive) member.start();
    }
  }

  send(request: GroupRequest, onReply: (reply: GroupReply | null) => void): void {
    const coordinator = this.#client.coordinator();
    if (coordinator === -1) {
      this.after(20 + this.random.below(100), () => onReply(null));
      return;
    }
    const floor = new Map([...this.#acknowledged].map(([at, one]) => [at, this.#leastOf(one)]));
    const timeoutMs = request.api === 'JoinGroup' ? joinTimeoutMs : requestTimeoutMs;
    this.#client.ask(
      coordinator,
      { type: 'group', request: withTopicIds(request) },
      (answer) => {
        if (isFailure(answer)) {
          this.#client.refresh();
          if (request.api === 'OffsetCommit') this.#unanswered.push(...commitsOf(request));
          onReply(null);
          return;
        }
        const reply = answer as GroupReply;
        this.#check(request, reply, floor);
        if (movedErrors.includes(errorOf(reply))) this.#client.refresh();
        onReply(reply);
      },
      timeoutMs,
    );
  }

  #check(request: GroupRequest, reply: GroupReply, floor: ReadonlyMap<number, bigint>): void {
    if (reply.api === 'OffsetFetch') {
      const { errorCode, topics } = reply.body as ReplyTo<'OffsetFetch'>;
      if (errorCode !== ErrorCode.NONE) return;
      for (const { partitionIndex, committedOffset } of topics[0]?.partitions ?? []) {
        const least = floor.get(partitionIndex) ?? -1n;
        assert(
          committedOffset >= least,
          `I6 the group's offset of partition ${partitionIndex} is ${committedOffset}, and ${least} was acknowledged`,
        );
      }
    }
    if (request.api !== 'OffsetCommit' || reply.api !== 'OffsetCommit') return;
    const error = errorOf(reply);
    if (staleErrors.includes(error)) this.count('stale commits refused');
    if (error !== ErrorCode.NONE) return;
    this.count('commits');
    for (const commit of commitsOf(request)) {
      const { partition, generation, offset } = commit;
      const least = floor.get(partition) ?? -1n;
      assert(
        offset >= least,
        `I6 the group's offset of partition ${partition} goes back to ${offset}, and ${least} was acknowledged`,
      );
      const known = this.#acknowledged.get(partition);
      if (known === undefined || generation > known.generation || offset > known.offset)
        this.#acknowledged.set(partition, commit);
      // Those of earlier generations are refused from now on, and what one has left behind in this partition is gone.
      this.#unanswered = this.#unanswered.filter(
        (one) => one.partition !== partition || one.generation >= generation,
      );
    }
  }

  /** What whoever asks must find: what was acknowledged, unless a commit that was sent before has come after it. */
  #leastOf({ partition, generation, offset }: Acknowledged): bigint {
    let least = offset;
    for (const one of this.#unanswered)
      if (one.partition === partition && one.generation === generation && one.offset < least)
        least = one.offset;
    return least;
  }

  #disturbLater(): void {
    this.after(1_000 + this.random.below(5_000), () => {
      if (this.isEnding) return;
      this.#disturb(this.#members[this.random.below(this.#members.length)] as ClassicClient);
      this.#disturbLater();
    });
  }

  #disturb(member: ClassicClient): void {
    if (!member.process.isAlive) return;
    const dice = this.random.below(3);
    if (dice === 0) {
      member.process.stall(this.random.below(5_000));
      return;
    }
    if (dice === 1) member.leave();
    else member.crash();
    this.after(this.random.below(3_000), () => {
      if (!member.process.isAlive) member.start();
    });
  }
}

function commitsOf({ body }: GroupRequest & { readonly api: 'OffsetCommit' }): Acknowledged[] {
  const generation = body.generationIdOrMemberEpoch;
  return (body.topics[0]?.partitions ?? []).map(({ partitionIndex, committedOffset }) => ({
    partition: partitionIndex,
    generation,
    offset: committedOffset,
  }));
}

/** As the handlers give it on, where the client has named the topic. */
function withTopicIds(request: GroupRequest): GroupRequest {
  if (request.api !== 'OffsetCommit') return request;
  const topics = request.body.topics.map((topic) => ({ ...topic, topicId: uuidZero }));
  return { api: request.api, body: { ...request.body, topics } };
}

function errorOf({ body }: GroupReply): ErrorCode | undefined {
  if ('errorCode' in body) return body.errorCode;
  if (!('topics' in body)) return undefined;
  const [partition] = body.topics[0]?.partitions ?? [];
  return partition !== undefined && 'errorCode' in partition ? partition.errorCode : undefined;
}
