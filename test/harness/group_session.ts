/**
 * A member of a classic group, step by step: each call is one request or a few, and says what the broker said. The
 * leader gives partition numbers to the members in turn.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { errorName } from '../../net/protocol/errors.ts';
import { Client } from './client.ts';
import { ConnectionLostError, type Endpoint } from './connection.ts';

export interface GroupSessionOptions {
  readonly group: string;
  readonly topic: string;
  readonly partitions: number;
  /** Of a static member, or null. */
  readonly instance: string | null;
  readonly sessionTimeoutMs: number;
  readonly rebalanceTimeoutMs: number;
}

/** One generation, as a member lives it. */
export interface Generation {
  readonly generationId: number;
  readonly memberId: string;
  readonly partitions: readonly number[];
}

/** The group has moved on: join again. */
export class RejoinError extends Error {
  /** The member's id is not known any more. */
  readonly isForgotten: boolean;

  constructor(code: number) {
    super(errorName(code));
    this.isForgotten =
      code === ErrorCode.UNKNOWN_MEMBER_ID || code === ErrorCode.FENCED_INSTANCE_ID;
  }
}

const passing: ReadonlySet<number> = new Set([
  ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
  ErrorCode.COORDINATOR_NOT_AVAILABLE,
]);
const askAgainMs = 20;
/** A coordinator loads or moves for a moment; one that is not there for so long is lost. */
const patienceMs = 60_000;

export class GroupSession {
  readonly client: Client;
  readonly #options: GroupSessionOptions;

  private constructor(client: Client, options: GroupSessionOptions) {
    this.client = client;
    this.#options = options;
  }

  /** Connects, waits until the broker knows who coordinates the group, and goes there. */
  static async connect(endpoint: Endpoint, options: GroupSessionOptions): Promise<GroupSession> {
    const session = new GroupSession(await Client.connect(endpoint, 'member'), options);
    let coordinator = endpoint;
    await session.#ask(async () => {
      const { coordinators } = await session.client.request('FindCoordinator', {
        coordinatorKeys: [options.group],
      });
      coordinator = coordinators[0] ?? endpoint;
      return coordinators[0]?.errorCode ?? 0;
    });
    if (coordinator.port === endpoint.port) return session;
    session.close();
    return new GroupSession(await Client.connect(coordinator, 'member'), options);
  }

  close(): void {
    this.client.close();
  }

  /** Enters the group's next generation. @throws RejoinError, ConnectionLostError */
  async join(memberId: string): Promise<Generation> {
    const { group, instance, sessionTimeoutMs, rebalanceTimeoutMs } = this.#options;
    const deadline = performance.now() + patienceMs + rebalanceTimeoutMs;
    let id = memberId;
    for (;;) {
      const joined = await this.client.request(
        'JoinGroup',
        {
          groupId: group,
          sessionTimeoutMs,
          rebalanceTimeoutMs,
          memberId: id,
          groupInstanceId: instance,
          protocolType: 'test',
          protocols: [{ name: 'in turn', metadata: new Uint8Array(1) }],
        },
        rebalanceTimeoutMs + 30_000,
      );
      if (joined.errorCode === ErrorCode.MEMBER_ID_REQUIRED) {
        id = joined.memberId;
        continue;
      }
      if (passing.has(joined.errorCode)) {
        assertPatience(joined.errorCode, deadline);
        await sleep(askAgainMs);
        continue;
      }
      check(joined.errorCode);
      const { generationId, leader } = joined;
      id = joined.memberId;
      const isLeader = leader === id && !joined.skipAssignment;
      const ids = isLeader ? joined.members.map((member) => member.memberId) : [];
      return { generationId, memberId: id, partitions: await this.#sync(generationId, id, ids) };
    }
  }

  async #sync(generationId: number, memberId: string, members: readonly string[]) {
    const { group, instance, partitions } = this.#options;
    const all = Array.from({ length: partitions }, (_, partition) => partition);
    const assignments = members.map((one, at) => ({
      memberId: one,
      assignment: Buffer.from(all.filter((partition) => partition % members.length === at)),
    }));
    const { errorCode, assignment } = await this.client.request('SyncGroup', {
      groupId: group,
      generationId,
      memberId,
      groupInstanceId: instance,
      protocolType: 'test',
      protocolName: 'in turn',
      assignments,
    });
    check(errorCode);
    return [...assignment];
  }

  /** @throws RejoinError, ConnectionLostError */
  async heartbeat({ generationId, memberId }: Generation): Promise<void> {
    const { group, instance } = this.#options;
    await this.#ask(
      async () =>
        (
          await this.client.request('Heartbeat', {
            groupId: group,
            generationId,
            memberId,
            groupInstanceId: instance,
          })
        ).errorCode,
    );
  }

  /** Offsets by partition, as a member. @throws RejoinError, ConnectionLostError */
  async commit(generation: Generation, offsets: ReadonlyMap<number, number>): Promise<void> {
    const { group, topic, instance } = this.#options;
    const { generationId, memberId } = generation;
    const partitions = [...offsets].map(([partitionIndex, offset]) => ({
      partitionIndex,
      committedOffset: BigInt(offset),
      committedMetadata: '',
    }));
    await this.#ask(async () => {
      const answer = await this.client.connection.request('OffsetCommit', 8, {
        groupId: group,
        generationIdOrMemberEpoch: generationId,
        memberId,
        groupInstanceId: instance,
        topics: [{ name: topic, partitions }],
      });
      return answer.topics[0]?.partitions[0]?.errorCode ?? ErrorCode.NONE;
    });
  }

  /** What is committed, by partition; partitions without a commit are left out. */
  async committed(): Promise<Map<number, number>> {
    const { group } = this.#options;
    const found = new Map<number, number>();
    await this.#ask(async () => {
      const { groups } = await this.client.connection.request('OffsetFetch', 8, {
        groups: [{ groupId: group, topics: null }],
      });
      for (const { partitions } of groups[0]?.topics ?? [])
        for (const one of partitions) found.set(one.partitionIndex, Number(one.committedOffset));
      return groups[0]?.errorCode ?? ErrorCode.NONE;
    });
    return found;
  }

  async leave(memberId: string): Promise<void> {
    const { group, instance } = this.#options;
    await this.client.request('LeaveGroup', {
      groupId: group,
      members: [{ memberId, groupInstanceId: instance }],
    });
  }

  /** Asks until the coordinator is there. Throws when it is not for a minute. */
  async #ask(request: () => Promise<number>): Promise<void> {
    const deadline = performance.now() + patienceMs;
    for (;;) {
      const code = await request();
      if (!passing.has(code)) {
        check(code);
        return;
      }
      assertPatience(code, deadline);
      await sleep(askAgainMs);
    }
  }
}

function assertPatience(code: number, deadline: number): void {
  if (performance.now() < deadline) return;
  throw new Error(`the group's coordinator says ${errorName(code)} all the time`);
}

const movedOn: ReadonlySet<number> = new Set([
  ErrorCode.REBALANCE_IN_PROGRESS,
  ErrorCode.ILLEGAL_GENERATION,
  ErrorCode.UNKNOWN_MEMBER_ID,
  ErrorCode.FENCED_INSTANCE_ID,
  ...passing,
]);

function check(code: number): void {
  if (code === ErrorCode.NONE) return;
  if (code === ErrorCode.NOT_COORDINATOR)
    throw new ConnectionLostError('the group has another coordinator');
  if (movedOn.has(code)) throw new RejoinError(code);
  throw new Error(`the group's coordinator said ${errorName(code)}`);
}
