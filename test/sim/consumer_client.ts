/**
 * A consumer of KIP-848's protocol as the real ones behave: one heartbeat at a time, partitions given up before that is
 * acknowledged, everything told again after an error. It can die, leave, stall and come back.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { ConsumerGroupHeartbeatReply } from '../../engine/groups/group_api.ts';
import { ClientProcess } from './client_process.ts';
import type { ClientOptions, SimulatedClient } from './group_history.ts';
import type { GroupWorld } from './group_world.ts';
import { PartitionReader } from './partition_reader.ts';

export class ConsumerClient implements SimulatedClient {
  readonly process: ClientProcess<GroupWorld>;
  readonly reader: PartitionReader;
  isStable: boolean = false;
  isRefused: boolean = false;
  memberId = '';
  /** The member epoch. */
  generationId = 0;
  readonly #options: ClientOptions;
  #ids = 0;
  /** What it owns has changed since it last told. */
  #mustTell: boolean = false;
  /** It cannot know what the coordinator has heard. */
  #mustTellAll: boolean = false;

  constructor(world: GroupWorld, options: ClientOptions) {
    this.process = new ClientProcess(world);
    this.#options = options;
    this.reader = new PartitionReader(
      this.process,
      () => ({
        ...options,
        apiVersion: 9,
        memberId: this.memberId,
        generationId: this.generationId,
      }),
      // Heartbeats tell of everything that matters.
      () => undefined,
    );
  }

  start(): void {
    this.process.start();
    this.#rejoinAsNew(0);
  }

  crash(): void {
    this.process.die();
    this.#abandon();
  }

  leave(): void {
    const memberEpoch = this.#options.instanceId === null ? -1 : -2;
    this.process.ask(this.#request(memberEpoch, true), () => undefined);
    this.crash();
  }

  #abandon(): void {
    this.isStable = false;
    this.generationId = 0;
    this.reader.abandon();
    this.process.world.invariants.gaveUpAll(this.memberId);
  }

  /** In a group that was made anew epochs begin anew, too: under the old id a commit from before might be taken. */
  #rejoinAsNew(delayMs: number): void {
    this.#abandon();
    this.#ids += 1;
    this.memberId = `${this.#options.name}.${this.#ids}`;
    this.#rejoin(delayMs);
  }

  #rejoin(delayMs: number): void {
    this.#abandon();
    this.process.later(delayMs, () => {
      this.reader.begin();
      this.#heartbeat();
    });
  }

  #request(
    memberEpoch: number,
    isFull: boolean,
  ): Parameters<ClientProcess['ask']>[0] & { api: 'ConsumerGroupHeartbeat' } {
    const { groupId, topic, instanceId, rebalanceTimeoutMs } = this.#options;
    const partitions = [...this.reader.positions.keys()];
    const topicId = this.process.world.topics.get(topic)?.topicId ?? '';
    const owned = partitions.length === 0 ? [] : [{ topicId, partitions }];
    const body = {
      groupId,
      apiVersion: 1,
      memberId: this.memberId,
      memberEpoch,
      instanceId,
      rackId: null,
      rebalanceTimeoutMs: isFull ? rebalanceTimeoutMs : -1,
      subscribedTopicNames: isFull ? [topic] : null,
      subscribedTopicRegex: null,
      serverAssignor: this.#options.assignor,
      topicPartitions: isFull || this.#mustTell ? owned : null,
    };
    return { api: 'ConsumerGroupHeartbeat', body };
  }

  #heartbeat(): void {
    const isFull = this.generationId === 0 || this.#mustTellAll;
    const request = this.#request(this.generationId, isFull);
    this.#mustTell = false;
    this.#mustTellAll = false;
    this.process.ask(request, (answer) => {
      const reply = answer as ConsumerGroupHeartbeatReply | null;
      if (reply === null) this.#repeat(200);
      else this.#answered(reply);
    });
  }

  #repeat(delayMs: number): void {
    this.#mustTellAll = true;
    this.process.later(delayMs, () => this.#heartbeat());
  }

  #answered(reply: ConsumerGroupHeartbeatReply): void {
    switch (reply.errorCode) {
      case ErrorCode.NONE:
        this.#accept(reply);
        break;
      case ErrorCode.FENCED_MEMBER_EPOCH:
        this.process.world.count('fenced');
        this.#rejoin(100);
        break;
      case ErrorCode.UNKNOWN_MEMBER_ID:
        this.process.world.count('fenced');
        this.#rejoinAsNew(100);
        break;
      case ErrorCode.GROUP_ID_NOT_FOUND:
      case ErrorCode.UNRELEASED_INSTANCE_ID:
        this.#rejoinAsNew(1_000);
        break;
      case ErrorCode.FENCED_INSTANCE_ID:
        this.crash();
        break;
      case ErrorCode.GROUP_MAX_SIZE_REACHED:
        this.isRefused = true;
        this.process.world.count('refused: group is full');
        this.crash();
        break;
      default:
        this.#repeat(500);
    }
  }

  #accept(reply: ConsumerGroupHeartbeatReply): void {
    this.generationId = reply.memberEpoch;
    this.isStable = true;
    if (reply.assignment === null) {
      this.process.later(this.#options.heartbeatIntervalMs, () => this.#heartbeat());
      return;
    }
    const assigned = new Set(reply.assignment.topicPartitions.flatMap((topic) => topic.partitions));
    const { positions } = this.reader;
    const { invariants } = this.process.world;
    const revoked = [...positions.keys()].filter((partition) => !assigned.has(partition));
    const added = [...assigned].filter((partition) => !positions.has(partition));
    // Giving up takes a moment: records in hand are finished first.
    const delayMs = revoked.length === 0 ? 0 : this.process.world.random.below(3_000);
    this.process.later(delayMs, () => {
      for (const partition of revoked) {
        this.reader.remove(partition);
        invariants.gaveUp(this.memberId, partition);
      }
      for (const partition of added)
        invariants.tookOver(this.#options.groupId, this.memberId, partition);
      this.reader.add(added);
      this.#mustTell = true;
      this.#heartbeat();
    });
  }
}
