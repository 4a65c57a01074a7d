/** A controller with several brokers that live as long as their tests want: registration, heartbeats, ISR changes. */
import assert from 'node:assert/strict';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type { ControllerOptions } from '../../../replication/metadata/controller.ts';
import type {
  AlteredPartition,
  BrokerHeartbeatRequest,
  BrokerHeartbeatResult,
  ControllerReply,
  PartitionToAlter,
  RegisterBrokerRequest,
} from '../../../replication/metadata/controller_api.ts';
import type { BrokerImage, PartitionImage } from '../../../replication/metadata/image.ts';
import type { MetadataRecord } from '../../../replication/metadata/records.ts';
import { newTopic, TestController, uuids } from './fixtures.ts';

export const sessionTimeoutMs = 9_000;

export class TestCluster {
  readonly node: TestController;
  readonly #incarnations = uuids(5);

  /** @param ids of brokers that are there and unfenced */
  constructor(ids: readonly number[], overrides: Partial<ControllerOptions> = {}) {
    this.node = new TestController({ sessionTimeoutMs, ...overrides });
    for (const id of ids) this.start(id);
  }

  broker(id: number): BrokerImage {
    const broker = this.node.controller.image.broker(id);
    assert(broker !== undefined, `no broker ${id}`);
    return broker;
  }

  partition(topic: string, partitionId = 0): PartitionImage {
    const partition = this.node.controller.image.partition(topic, partitionId);
    assert(partition !== undefined);
    return partition;
  }

  /** Leader, ISR and ELR in short: `1 [1,2] (3)`. */
  state(topic: string, partitionId = 0): string {
    const { leader, isr, eligibleLeaderReplicas: elr } = this.partition(topic, partitionId);
    const ascending = [...elr].sort((a, b) => a - b);
    return `${leader} [${isr}]${elr.length === 0 ? '' : ` (${ascending})`}`;
  }

  /** A process of the broker begins, after any session before it. */
  register(id: number, overrides: Partial<RegisterBrokerRequest> = {}): number {
    return this.node.register(id, { incarnationId: this.#incarnations(), ...overrides });
  }

  beat(id: number, overrides: Partial<BrokerHeartbeatRequest> = {}): BrokerHeartbeatResult {
    const { reply } = this.askBeat(id, overrides);
    assert(reply.result !== null, `error ${reply.errorCode}`);
    return reply.result;
  }

  askBeat(
    id: number,
    overrides: Partial<BrokerHeartbeatRequest> = {},
  ): { records: MetadataRecord[]; reply: ControllerReply<BrokerHeartbeatResult> } {
    return this.node.ask<'brokerHeartbeat'>({
      type: 'brokerHeartbeat',
      brokerId: id,
      brokerEpoch: this.node.controller.image.broker(id)?.epoch ?? -1,
      currentMetadataOffset: this.node.log.length - 1,
      wantFence: false,
      wantShutDown: false,
      offlineLogDirs: [],
      ...overrides,
    });
  }

  /** Registers and unfences. */
  start(id: number, overrides: Partial<RegisterBrokerRequest> = {}): void {
    this.register(id, overrides);
    assert.equal(this.beat(id).isFenced, false);
  }

  /** A start after which nothing is missing that the broker had acknowledged. */
  startWhole(id: number): void {
    this.start(id, { previousBrokerEpoch: this.broker(id).epoch });
  }

  /** The process is gone, and that is known. */
  lose(id: number): MetadataRecord[] {
    const { nowMs, controller } = this.node;
    return this.node.take(controller.step({ type: 'brokerUnreachable', brokerId: id, nowMs }));
  }

  create(
    name: string,
    assignments: readonly (readonly number[])[],
    configs: Readonly<Record<string, string>> = {},
  ): void {
    const topic = newTopic(name, {
      assignments: assignments.map((brokerIds, partitionIndex) => ({ partitionIndex, brokerIds })),
      configs: Object.entries(configs).map(([key, value]) => ({ name: key, value })),
    });
    const { topics } = this.node.result<'createTopics'>({
      type: 'createTopics',
      topics: [topic],
      validateOnly: false,
    });
    assert.equal(topics[0]?.errorCode, ErrorCode.NONE, topics[0]?.errorMessage ?? '');
  }

  /** The leader asks for the ISR, knowing all epochs unless told otherwise. */
  askIsr(
    topic: string,
    isr: readonly number[],
    overrides: Partial<PartitionToAlter> = {},
    brokerId: number = this.partition(topic, overrides.partitionIndex).leader,
  ): AlteredPartition {
    const current = this.partition(topic, overrides.partitionIndex);
    const partition: PartitionToAlter = {
      partitionIndex: current.partitionId,
      leaderEpoch: current.leaderEpoch,
      partitionEpoch: current.partitionEpoch,
      leaderRecoveryState: 0,
      newIsr: isr.map((id) => ({ brokerId: id, brokerEpoch: this.broker(id).epoch })),
      ...overrides,
    };
    const topicId = this.node.controller.image.topic(topic)!.id;
    const { topics } = this.node.result<'alterPartition'>({
      type: 'alterPartition',
      brokerId,
      brokerEpoch: this.broker(brokerId).epoch,
      topics: [{ topicId, partitions: [partition] }],
    });
    return topics[0]!.partitions[0]!;
  }

  /** The same, where it must be granted. */
  isr(topic: string, isr: readonly number[], overrides: Partial<PartitionToAlter> = {}): void {
    assert.equal(this.askIsr(topic, isr, overrides).errorCode, ErrorCode.NONE);
  }
}
