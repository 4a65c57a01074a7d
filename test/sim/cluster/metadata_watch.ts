/**
 * Looks at the metadata quorum of a simulated cluster: what its nodes say is committed, whom they elect.
 *
 *   one leader in a term; a voter's promise is kept; nothing committed is different elsewhere, or lost
 *   one cluster: all nodes follow one log
 *   a partition's leader is one of its in-sync replicas, its epochs only grow
 */
import assert from 'node:assert/strict';
import { metadataCodec } from '../../../net/metadata_codec.ts';
import type { MetadataImage, PartitionImage } from '../../../replication/metadata/image.ts';
import type { MetadataBatch, MetadataRecord } from '../../../replication/metadata/records.ts';

/** An ISR that a controller has written, and that may be committed much later, even after its death. */
interface ProposedIsr {
  readonly partitionEpoch: number;
  readonly isr: readonly number[];
}

interface Committed {
  readonly text: string;
  readonly lastOffset: number;
  readonly by: string;
}

export class MetadataWatch {
  readonly #batches = new Map<number, Committed>();
  #committedOffset = -1;
  readonly #leaders = new Map<number, string>();
  readonly #votes = new Map<string, string>();
  readonly #partitions = new Map<string, PartitionImage>();
  readonly #proposed = new Map<string, ProposedIsr[]>();
  #clusterId: string | null = null;
  elections = 0;

  /** Offset of the last record that any node has called committed. */
  get committedOffset(): number {
    return this.#committedOffset;
  }

  committed(who: string, batch: MetadataBatch): void {
    const text = textOf(batch);
    const known = this.#batches.get(batch.firstOffset);
    if (known === undefined) {
      assert(
        batch.firstOffset === this.#committedOffset + 1,
        `${who} commits metadata from offset ${batch.firstOffset}, the last was ${this.#committedOffset}`,
      );
      this.#batches.set(batch.firstOffset, { text, lastOffset: batch.lastOffset, by: who });
      this.#committedOffset = batch.lastOffset;
      return;
    }
    assert.equal(
      text,
      known.text,
      `metadata at offset ${batch.firstOffset}: ${who} commits something else than ${known.by}`,
    );
  }

  /** @param clusterId the one that the node belongs to now */
  belongs(who: string, clusterId: string): void {
    this.#clusterId ??= clusterId;
    assert.equal(clusterId, this.#clusterId, `${who} belongs to another cluster`);
  }

  elected(who: string, epoch: number, nextOffset: number): void {
    this.elections += 1;
    const known = this.#leaders.get(epoch) ?? who;
    assert.equal(who, known, `two leaders of the quorum in term ${epoch}`);
    // One that was stopped may find out late that it has won, and later that it was in vain.
    const isNewest = [...this.#leaders.keys()].every((other) => other <= epoch);
    this.#leaders.set(epoch, who);
    assert(
      nextOffset > this.#committedOffset || !isNewest,
      `${who} is elected in term ${epoch} at offset ${nextOffset}, committed is ${this.#committedOffset}`,
    );
  }

  /** A voter has promised a candidate its vote in a term. */
  voted(voter: string, epoch: number, candidate: string): void {
    const key = `${voter} ${epoch}`;
    const known = this.#votes.get(key) ?? candidate;
    assert.equal(candidate, known, `${voter} votes twice in term ${epoch}`);
    this.#votes.set(key, candidate);
  }

  /** The image of a node after a committed delta. */
  applied(who: string, image: MetadataImage): void {
    for (const topic of image.topics.values())
      for (const partition of topic.partitions) {
        const key = `${topic.id} ${partition.partitionId}`;
        const known = this.#partitions.get(key);
        if (known === partition) continue;
        checkPartition(who, partition);
        // Nodes that are behind see again what has been seen.
        if (known !== undefined && known.partitionEpoch >= partition.partitionEpoch) continue;
        assert(
          known === undefined || partition.leaderEpoch >= known.leaderEpoch,
          `${who}: the leader epoch falls from ${known?.leaderEpoch} to ${partition.leaderEpoch}`,
        );
        this.#partitions.set(key, partition);
      }
  }

  proposed(image: MetadataImage, records: readonly MetadataRecord[]): void {
    for (const record of records) {
      if (record.type !== 'PartitionChangeRecord' || record.isr === null) continue;
      const { topicId, partitionId, isr } = record;
      const partition = image.topicById(topicId)?.partitions[partitionId];
      if (partition === undefined) continue;
      const { partitionEpoch } = partition;
      const key = `${topicId} ${partitionId}`;
      this.#proposed.set(key, [...this.#pending(key), { partitionEpoch, isr }]);
    }
  }

  /** Who is in sync whatever of the proposed changes is committed. */
  surelyInSync(topicId: string, partitionId: number): readonly number[] {
    const pending = this.#pending(`${topicId} ${partitionId}`);
    const isr = this.partition(topicId, partitionId)?.isr ?? [];
    return isr.filter((id) => pending.every((proposal) => proposal.isr.includes(id)));
  }

  #pending(key: string): readonly ProposedIsr[] {
    const known = this.#partitions.get(key)?.partitionEpoch ?? -1;
    const proposed = this.#proposed.get(key) ?? [];
    return proposed.filter(({ partitionEpoch }) => partitionEpoch > known);
  }

  /** The newest state of a partition that any node has seen. */
  partition(topicId: string, partitionId: number): PartitionImage | undefined {
    return this.#partitions.get(`${topicId} ${partitionId}`);
  }
}

/** The same for what a leader has made and for what a follower has read. */
function textOf({ lastOffset, epoch, records }: MetadataBatch): string {
  const encoded = records.map((record) =>
    Buffer.from(metadataCodec.encode(record)).toString('hex'),
  );
  return `${lastOffset} in term ${epoch}: ${encoded.join()}`;
}

function checkPartition(who: string, partition: PartitionImage): void {
  const { leader, isr, replicas, eligibleLeaderReplicas } = partition;
  const text = JSON.stringify(partition);
  assert(leader === -1 || isr.includes(leader), `${who}: the leader is not in the ISR: ${text}`);
  assert(new Set(isr).size === isr.length, `${who}: somebody is in the ISR twice: ${text}`);
  for (const id of [...isr, ...eligibleLeaderReplicas])
    assert(replicas.includes(id), `${who}: broker ${id} is no replica: ${text}`);
  for (const id of eligibleLeaderReplicas)
    assert(!isr.includes(id), `${who}: broker ${id} is in the ISR and eligible: ${text}`);
  assert(
    isr.length > 0 || eligibleLeaderReplicas.length > 0 || partition.lastKnownElr.length > 0,
    `${who}: nobody may ever lead: ${text}`,
  );
}
