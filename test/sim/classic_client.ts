/**
 * A consumer of the classic protocol as the real ones behave: joins, assigns when it leads, heartbeats, reads on from
 * what is committed, commits. It can die, leave, stall and come back.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { JoinGroupReply } from '../../engine/groups/group_api.ts';
import { ClientProcess, type ClientSurroundings } from './client_process.ts';
import type { ClientOptions, SimulatedClient } from './group_history.ts';
import type { ReplyTo } from './group_world.ts';
import { PartitionReader } from './partition_reader.ts';

/** Of version 0: the topic, no user data. */
export function subscription(topic: string): Uint8Array {
  const name = Buffer.from(topic);
  const bytes = Buffer.alloc(2 + 4 + 2 + name.length + 4);
  bytes.writeInt32BE(1, 2);
  bytes.writeInt16BE(name.length, 6);
  name.copy(bytes, 8);
  bytes.writeInt32BE(-1, 8 + name.length);
  return bytes;
}

export class ClassicClient implements SimulatedClient {
  readonly process: ClientProcess;
  readonly reader: PartitionReader;
  isStable: boolean = false;
  isRefused: boolean = false;
  generationId = -1;
  memberId = '';
  readonly #options: ClientOptions;
  readonly #protocols: readonly { readonly name: string; readonly metadata: Uint8Array }[];
  /** Grows with each generation, so that the heartbeats of an earlier one end. */
  #generationLife = 0;

  constructor(world: ClientSurroundings, options: ClientOptions) {
    this.process = new ClientProcess(world);
    this.#options = options;
    this.#protocols = [{ name: 'range', metadata: subscription(options.topic) }];
    this.reader = new PartitionReader(
      this.process,
      () => ({
        ...options,
        apiVersion: 8,
        memberId: this.memberId,
        generationId: this.generationId,
      }),
      (error) => {
        // That the group rebalances is told by the heartbeat.
        if (error === ErrorCode.UNKNOWN_MEMBER_ID || error === ErrorCode.ILLEGAL_GENERATION)
          this.#failed(error);
      },
    );
  }

  start(): void {
    this.process.start();
    this.memberId = '';
    this.#join();
  }

  crash(): void {
    this.process.die();
    this.#abandonGeneration();
  }

  leave(): void {
    const { groupId, instanceId: groupInstanceId } = this.#options;
    const member = { memberId: this.memberId, groupInstanceId, reason: null };
    const body = { groupId, members: [member] };
    this.process.ask({ api: 'LeaveGroup', body }, () => undefined);
    this.crash();
  }

  #abandonGeneration(): void {
    this.isStable = false;
    this.#generationLife += 1;
    this.reader.abandon();
  }

  #join(): void {
    this.#abandonGeneration();
    const options = this.#options;
    const body = {
      groupId: options.groupId,
      sessionTimeoutMs: options.sessionTimeoutMs,
      rebalanceTimeoutMs: options.rebalanceTimeoutMs,
      memberId: this.memberId,
      groupInstanceId: options.instanceId,
      protocolType: 'consumer',
      protocols: this.#protocols,
      reason: null,
      requireKnownMemberId: options.knowsMemberIdRequired,
      supportSkippingAssignment: options.knowsSkipAssignment,
    };
    this.process.ask({ api: 'JoinGroup', body }, (reply) => {
      if (reply === null) this.process.later(200, () => this.#join());
      else this.#joined(reply as JoinGroupReply);
    });
  }

  #joined(reply: JoinGroupReply): void {
    switch (reply.errorCode) {
      case ErrorCode.NONE:
        this.memberId = reply.memberId;
        this.generationId = reply.generationId;
        this.#sync(reply);
        break;
      case ErrorCode.MEMBER_ID_REQUIRED:
        this.memberId = reply.memberId;
        this.#join();
        break;
      case ErrorCode.GROUP_MAX_SIZE_REACHED:
        this.isRefused = true;
        this.process.world.count('refused: group is full');
        this.crash();
        break;
      default:
        this.#failed(reply.errorCode);
    }
  }

  /** What clients do about an error: join again, under a new id if need be; a fenced one gives up. */
  #failed(error: ErrorCode): void {
    switch (error) {
      case ErrorCode.FENCED_INSTANCE_ID:
        this.process.world.count('fenced');
        this.crash();
        break;
      case ErrorCode.UNKNOWN_MEMBER_ID:
        this.memberId = '';
        this.#abandonGeneration();
        this.process.later(10, () => this.#join());
        break;
      default:
        this.#abandonGeneration();
        this.process.later(100, () => this.#join());
    }
  }

  #sync(joined: JoinGroupReply): void {
    const leads = joined.leader === this.memberId && !joined.skipAssignment;
    const body = {
      groupId: this.#options.groupId,
      generationId: this.generationId,
      memberId: this.memberId,
      groupInstanceId: this.#options.instanceId,
      protocolType: 'consumer',
      protocolName: joined.protocolName,
      assignments: leads ? this.#assign(joined.members) : [],
    };
    this.process.ask({ api: 'SyncGroup', body }, (answer) => {
      const reply = answer as ReplyTo<'SyncGroup'> | null;
      if (reply === null) this.process.later(200, () => this.#sync(joined));
      else if (reply.errorCode !== ErrorCode.NONE) this.#failed(reply.errorCode);
      else {
        this.isStable = true;
        this.reader.begin();
        this.reader.add([...reply.assignment]);
        this.#heartbeat(this.#generationLife);
      }
    });
  }

  #assign(
    members: JoinGroupReply['members'],
  ): { readonly memberId: string; readonly assignment: Uint8Array }[] {
    const count = this.process.world.topics.get(this.#options.topic)?.partitionCount ?? 0;
    return members.map(({ memberId }, index) => {
      const partitions: number[] = [];
      for (let at = index; at < count; at += members.length) partitions.push(at);
      return { memberId, assignment: Uint8Array.from(partitions) };
    });
  }

  #heartbeat(life: number): void {
    if (life !== this.#generationLife) return;
    const { groupId, instanceId: groupInstanceId, heartbeatIntervalMs } = this.#options;
    const { generationId, memberId } = this;
    const body = { groupId, generationId, memberId, groupInstanceId };
    this.process.ask({ api: 'Heartbeat', body }, (answer) => {
      if (life !== this.#generationLife) return;
      const reply = answer as ReplyTo<'Heartbeat'> | null;
      const error = reply?.errorCode ?? ErrorCode.COORDINATOR_NOT_AVAILABLE;
      switch (error) {
        case ErrorCode.NONE:
        case ErrorCode.COORDINATOR_NOT_AVAILABLE:
        case ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        case ErrorCode.NOT_COORDINATOR:
          this.process.later(heartbeatIntervalMs, () => this.#heartbeat(life));
          break;
        case ErrorCode.REBALANCE_IN_PROGRESS:
          this.#join();
          break;
        default:
          this.#failed(error);
      }
    });
  }
}
