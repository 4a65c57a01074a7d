/** What must hold in every history of a cluster; see `cluster_history.ts`. */
import assert from 'node:assert/strict';
import type { MetadataImage, PartitionImage } from '../../../replication/metadata/image.ts';
import { Committed, type Replica } from './cluster_replicas.ts';

export class ClusterChecks {
  readonly #topicName: string;
  readonly #allowsUnclean: boolean;
  readonly #onUnclean: () => void;
  readonly #committed: readonly Committed[];
  /** Leader epochs of the last unclean elections: what leaders before them commit counts no more. */
  readonly #uncleanSince: number[];
  /** False from an unclean election until somebody leads with its outcome. */
  readonly #isCut: boolean[];
  /** `partition/epoch` → leader. */
  readonly #leaders = new Map<string, number>();
  /** As committed so far, by partition. */
  #seen: (PartitionImage | undefined)[] = [];

  constructor(
    topicName: string,
    partitionCount: number,
    allowsUnclean: boolean,
    onUnclean: () => void,
  ) {
    this.#topicName = topicName;
    this.#allowsUnclean = allowsUnclean;
    this.#onUnclean = onUnclean;
    this.#committed = Array.from({ length: partitionCount }, () => new Committed());
    this.#isCut = Array.from({ length: partitionCount }, () => true);
    this.#uncleanSince = Array.from({ length: partitionCount }, () => 0);
  }

  onHighWatermark(partition: number, leader: Replica): void {
    const isOutdated = (leader.leading?.epoch ?? 0) < this.#uncleanSince[partition]!;
    if (!isOutdated) this.#committed[partition]!.extend(leader);
  }

  onCommitted(image: MetadataImage): void {
    const partitions = image.topic(this.#topicName)?.partitions ?? [];
    partitions.forEach((partition, index) => {
      const before = this.#seen[index];
      if (before === partition) return;
      if (before !== undefined) this.#checkChange(before, partition);
      this.#checkLeader(before, partition);
    });
    this.#seen = [...partitions];
  }

  #checkChange(before: PartitionImage, after: PartitionImage): void {
    assert(after.partitionEpoch > before.partitionEpoch, 'a change raises the partition epoch');
    assert(after.leaderEpoch >= before.leaderEpoch, 'the leader epoch grows');
    if (after.leader !== before.leader)
      assert(after.leaderEpoch > before.leaderEpoch, 'another leader has another epoch');
  }

  #checkLeader(before: PartitionImage | undefined, after: PartitionImage): void {
    const { leader, partitionId, leaderEpoch } = after;
    const key = `${partitionId}/${leaderEpoch}`;
    assert.equal(this.#leaders.get(key) ?? leader, leader, 'one leader in an epoch');
    this.#leaders.set(key, leader);
    if (leader === -1 || before?.leaderEpoch === leaderEpoch) return;
    const { isr = [], eligibleLeaderReplicas: elr = [] } = before ?? {};
    const isUnclean = after.leaderRecoveryState === 1 && ![...isr, ...elr].includes(leader);
    if (!isUnclean) return;
    this.#onUnclean();
    // One step may take the last eligible replica away and elect the last leader.
    const wasHopeless = isr.length === 0 && elr.length <= 1;
    assert(this.#allowsUnclean || wasHopeless, 'an unclean election that nobody has allowed');
    this.#uncleanSince[partitionId] = leaderEpoch;
    this.#isCut[partitionId] = false;
  }

  /** The broker begins to lead: who was only elected may be dead, or have lost its log. */
  onLeading(partition: number, replica: Replica): void {
    const committed = this.#committed[partition]!;
    if (this.#isCut[partition]) committed.check(replica);
    else committed.cut(replica);
    this.#isCut[partition] = true;
  }

  /** @param heard brokers that the controller has heard of in their present life */
  onAppended(image: MetadataImage, heard: ReadonlySet<number>): void {
    for (const partition of image.topic(this.#topicName)!.partitions) {
      const { leader, isr, replicas, eligibleLeaderReplicas: elr, directories } = partition;
      assert(leader === -1 || isr.includes(leader), `leader ${leader} is not in the ISR ${isr}`);
      assert.equal(new Set([...isr, ...elr]).size, isr.length + elr.length, `${isr} and ${elr}`);
      for (const id of [...isr, ...elr]) assert(replicas.includes(id), `${id} is no replica`);
      if (isr.some((id) => image.isActive(id) && heard.has(id)))
        for (const id of isr) assert(image.isActive(id), `${id} is in the ISR and not active`);
      assert.equal(new Set(replicas).size, replicas.length);
      assert.equal(directories.length, replicas.length);
      assert(replicas.length > 0);
    }
  }
}
