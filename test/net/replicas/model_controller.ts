/**
 * A controller in a few lines for tests of replication: one topic `t` with one partition, brokers that come and go, and
 * the rules of AlterPartition. It never fails and everybody reaches it; what it decides arrives when the test says so.
 */
import assert from 'node:assert/strict';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { MetadataImage, type PartitionImage } from '../../../replication/metadata/image.ts';
import {
  type MetadataBatch,
  type MetadataRecord,
  type PartitionChangeRecord,
  uuidZero,
} from '../../../replication/metadata/records.ts';
import type { IsrAnswer, IsrProposal } from '../../../replication/partition/isr.ts';
import { clusterId, partitionChange, uuids } from '../../replication/metadata/fixtures.ts';

export const topic = 't';

export class ModelController {
  readonly image: MetadataImage = new MetadataImage(clusterId);
  readonly topicId: string = uuids(3)();
  readonly #listeners: ((batch: MetadataBatch) => void)[] = [];
  #offset = -1;

  /** All brokers, which have registered, are well, and the first of them leads the partition. */
  begin(ids: readonly number[], configs: Record<string, string>): void {
    const { topicId } = this;
    for (const id of ids) this.unfence(id);
    this.#append([
      { type: 'TopicRecord', name: topic, topicId },
      {
        type: 'PartitionRecord',
        topicId,
        partitionId: 0,
        replicas: ids,
        isr: ids,
        removingReplicas: [],
        addingReplicas: [],
        leader: ids[0]!,
        leaderRecoveryState: 0,
        leaderEpoch: 0,
        partitionEpoch: 0,
        directories: ids.map(() => uuidZero),
        eligibleLeaderReplicas: [],
        lastKnownElr: [],
      },
      ...Object.entries(configs).map(
        ([name, value]): MetadataRecord => ({
          type: 'ConfigRecord',
          resourceType: 2,
          resourceName: topic,
          name,
          value,
        }),
      ),
    ]);
  }

  onBatch(listener: (batch: MetadataBatch) => void): void {
    this.#listeners.push(listener);
  }

  get partition(): PartitionImage {
    const partition = this.image.partition(topic, 0);
    assert(partition !== undefined);
    return partition;
  }

  isAlive(id: number): boolean {
    return this.image.isAlive(id);
  }

  /** A broker starts: whatever an earlier life of it was doing is over. Returns its epoch. */
  register(brokerId: number): number {
    this.fence(brokerId);
    const brokerEpoch = this.#offset + 1;
    this.#append([
      {
        type: 'RegisterBrokerRecord',
        brokerId,
        incarnationId: uuidZero,
        brokerEpoch,
        endPoints: [],
        features: [],
        rack: null,
        fenced: true,
        inControlledShutdown: false,
        logDirs: [],
      },
    ]);
    return brokerEpoch;
  }

  unfence(id: number): void {
    if (this.isAlive(id)) return;
    this.#changeBroker(id, -1);
    const partition = this.image.partition(topic, 0);
    if (partition?.leader === -1 && partition.isr.includes(id)) this.change({ leader: id });
  }

  /** The broker is taken for dead: it leads no more, and leaves the ISR unless it is the last one there. */
  fence(id: number): void {
    if (!this.isAlive(id)) return;
    this.#changeBroker(id, 1);
    const partition = this.image.partition(topic, 0);
    if (partition === undefined) return;
    const others = partition.isr.filter((one) => one !== id);
    const isr = partition.isr.includes(id) && others.length > 0 ? others : null;
    const next = others.find((one) => this.isAlive(one)) ?? -1;
    const leader = partition.leader === id ? next : -2;
    if (isr !== null || leader !== -2) this.change({ isr, leader });
  }

  /** An election among those in sync, as for the preferred leader. */
  elect(id: number): void {
    const { isr, leader } = this.partition;
    if (isr.includes(id) && this.isAlive(id) && leader !== id) this.change({ leader: id });
  }

  change(change: Partial<PartitionChangeRecord>): void {
    this.#append([partitionChange(this.topicId, change)]);
  }

  /** AlterPartition (KIP-497, KIP-903). */
  alterPartition(brokerId: number, proposal: IsrProposal): IsrAnswer {
    const { leader, leaderEpoch, partitionEpoch } = this.partition;
    if (proposal.leaderEpoch !== leaderEpoch) return refusal(ErrorCode.FENCED_LEADER_EPOCH);
    if (leader !== brokerId) return refusal(ErrorCode.INVALID_REQUEST);
    if (proposal.partitionEpoch !== partitionEpoch)
      return refusal(ErrorCode.INVALID_UPDATE_VERSION);
    const areEligible = proposal.newIsr.every(({ brokerId: id, brokerEpoch }) => {
      const isCurrent = brokerEpoch === -1 || brokerEpoch === this.image.broker(id)?.epoch;
      return this.isAlive(id) && isCurrent;
    });
    if (!areEligible) return refusal(ErrorCode.INELIGIBLE_REPLICA);
    this.change({ isr: proposal.newIsr.map((member) => member.brokerId) });
    return { errorCode: ErrorCode.NONE, ...this.partition };
  }

  #changeBroker(brokerId: number, fenced: number): void {
    const broker = this.image.broker(brokerId);
    assert(broker !== undefined);
    this.#append([
      {
        type: 'BrokerRegistrationChangeRecord',
        brokerId,
        brokerEpoch: broker.epoch,
        fenced,
        inControlledShutdown: 0,
        logDirs: [],
      },
    ]);
  }

  #append(records: readonly MetadataRecord[]): void {
    const firstOffset = this.#offset + 1;
    this.#offset += records.length;
    const lastOffset = this.#offset;
    const batch = {
      snapshot: false,
      firstOffset,
      lastOffset,
      epoch: 1,
      leaderId: -1,
      records,
    } as const;
    this.image.apply(batch);
    for (const listener of this.#listeners) listener(batch);
  }
}

function refusal(errorCode: ErrorCode): IsrAnswer {
  return { errorCode, leaderEpoch: -1, isr: [], partitionEpoch: -1 };
}
