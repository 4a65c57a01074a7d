/**
 * Finds a controller's partitions by what can happen to them: by the brokers that lead them or are needed by them, and those
 * that wait for a leader. So an event costs what it changes, not what there is.
 *
 * Thread and owner: those of the image whose changes it hears. Concurrency: none. Durability: none, it is rebuilt.
 */
import type { ChangeListener } from './changes.ts';
import type { MetadataImage, PartitionImage, TopicImage } from './image.ts';

/** Stays the same for a partition's whole life. */
export interface IndexedPartition {
  readonly topic: TopicImage;
  readonly partitionId: number;
}

type Place = Pick<PartitionImage, 'leader' | 'isr' | 'eligibleLeaderReplicas' | 'replicas'>;

/** A partition that is not there. */
const nowhere: Place = { leader: -1, isr: [], eligibleLeaderReplicas: [], replicas: [] };

type References = Set<IndexedPartition>;

const none: ReadonlySet<IndexedPartition> = new Set();
const ignore = (): void => {};

export class PartitionIndex implements ChangeListener {
  readonly #references = new Map<TopicImage, IndexedPartition[]>();
  readonly #led = new Map<number, References>();
  /** By the members of ISR and ELR. */
  readonly #members = new Map<number, References>();
  readonly #leaderless: References = new Set();
  readonly #withElr: References = new Set();
  readonly #imbalanced: References = new Set();
  readonly topicCreated: () => void = ignore;
  readonly configChanged: () => void = ignore;
  readonly brokerChanged: () => void = ignore;
  readonly featuresChanged: () => void = ignore;

  constructor(image: MetadataImage) {
    for (const topic of image.topics.values())
      for (const { partitionId } of topic.partitions) this.partitionCreated(topic, partitionId);
  }

  /** Partitions that the broker leads. */
  led(brokerId: number): ReadonlySet<IndexedPartition> {
    return this.#led.get(brokerId) ?? none;
  }

  /** Partitions whose ISR or ELR has the broker. */
  members(brokerId: number): ReadonlySet<IndexedPartition> {
    return this.#members.get(brokerId) ?? none;
  }

  get leaderless(): ReadonlySet<IndexedPartition> {
    return this.#leaderless;
  }

  /** Partitions with eligible leader replicas. */
  get withElr(): ReadonlySet<IndexedPartition> {
    return this.#withElr;
  }

  /** Partitions that another than their first replica leads, or nobody. */
  get imbalanced(): ReadonlySet<IndexedPartition> {
    return this.#imbalanced;
  }

  reference(topic: TopicImage, partitionId: number): IndexedPartition | undefined {
    return this.#references.get(topic)?.[partitionId];
  }

  partitionCreated(topic: TopicImage, partitionId: number): void {
    const references = this.#references.get(topic) ?? [];
    this.#references.set(topic, references);
    const reference = { topic, partitionId };
    references[partitionId] = reference;
    this.#move(reference, nowhere, topic.partitions[partitionId]!);
  }

  partitionChanged(topic: TopicImage, previous: PartitionImage): void {
    const reference = this.#references.get(topic)![previous.partitionId]!;
    this.#move(reference, previous, topic.partitions[previous.partitionId]!);
  }

  topicDeleted(topic: TopicImage): void {
    for (const reference of this.#references.get(topic) ?? []) {
      this.#move(reference, topic.partitions[reference.partitionId]!, nowhere);
      this.#leaderless.delete(reference);
    }
    this.#references.delete(topic);
  }

  /** Touches only what is different: most changes of very many partitions at once are of one broker. */
  #move(reference: IndexedPartition, from: Place, to: Place): void {
    if (from.leader !== to.leader) {
      this.#led.get(from.leader)?.delete(reference);
      if (to.leader !== -1) put(this.#led, to.leader, reference);
    }
    mark(this.#leaderless, reference, to.leader === -1);
    mark(this.#withElr, reference, to.eligibleLeaderReplicas.length > 0);
    mark(this.#imbalanced, reference, to.leader !== (to.replicas[0] ?? -1));
    for (const id of from.isr) if (!hasMember(to, id)) this.#members.get(id)?.delete(reference);
    for (const id of from.eligibleLeaderReplicas)
      if (!hasMember(to, id)) this.#members.get(id)?.delete(reference);
    for (const id of to.isr) if (!hasMember(from, id)) put(this.#members, id, reference);
    for (const id of to.eligibleLeaderReplicas)
      if (!hasMember(from, id)) put(this.#members, id, reference);
  }
}

function hasMember({ isr, eligibleLeaderReplicas }: Place, brokerId: number): boolean {
  return isr.includes(brokerId) || eligibleLeaderReplicas.includes(brokerId);
}

function mark(set: References, reference: IndexedPartition, isIn: boolean): void {
  if (isIn) set.add(reference);
  else set.delete(reference);
}

function put(sets: Map<number, References>, brokerId: number, reference: IndexedPartition): void {
  const set = sets.get(brokerId);
  if (set === undefined) sets.set(brokerId, new Set([reference]));
  else set.add(reference);
}
