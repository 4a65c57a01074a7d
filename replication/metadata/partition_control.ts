/**
 * Changes partitions of a controller that leads, by the rules of the cluster: who may lead, how many replicas must be in
 * sync, whether an unclean election is allowed.
 *
 * Thread and owner: those of the controller. Concurrency: none. Durability: none of its own, it appends records.
 */
import type { BrokerSessions } from './broker_sessions.ts';
import type { PartitionImage } from './image.ts';
import type { Leadership } from './leadership.ts';
import { defaultDirectory } from './new_partitions.ts';
import { type ChangeRules, planPartitionChange, type WantedPartition } from './partition_change.ts';
import type { IndexedPartition } from './partition_index.ts';
import { ConfigResourceType, uuidZero } from './records.ts';

/** Defaults of brokers, where neither the topic nor the cluster's dynamic settings say something else. */
export interface PartitionDefaults {
  readonly minInsyncReplicas: number;
  readonly uncleanLeaderElectionEnable: boolean;
  /** Rules that a controller lacks which tests must notice. */
  readonly without?: readonly ControllerRule[];
}

/** What keeps committed records, as tests leave it out. */
export type ControllerRule =
  | 'broker epochs'
  | 'partition epochs'
  | 'active members'
  | 'lossy replicas'
  | 'clean elections'
  | 'eligible below the minimum';

/** What an election depends on. */
const electionSettings = ['min.insync.replicas', 'unclean.leader.election.enable'] as const;

const nothing = {
  type: 'PartitionChangeRecord',
  isr: null,
  replicas: null,
  removingReplicas: null,
  addingReplicas: null,
  leaderRecoveryState: -1,
  directories: null,
  eligibleLeaderReplicas: null,
  lastKnownElr: null,
} as const;

export class PartitionControl {
  readonly #state: Leadership;
  readonly #sessions: BrokerSessions | null;
  readonly #defaults: PartitionDefaults;

  /** @param sessions null where there are none */
  constructor(state: Leadership, sessions: BrokerSessions | null, defaults: PartitionDefaults) {
    this.#state = state;
    this.#sessions = sessions;
    this.#defaults = defaults;
  }

  current({ topic, partitionId }: IndexedPartition): PartitionImage {
    return topic.partitions[partitionId]!;
  }

  keeps(rule: ControllerRule): boolean {
    return this.#defaults.without?.includes(rule) !== true;
  }

  /** Whether a replica that lacks committed records may lead the topic's partitions when no other one can. */
  allowsUnclean(topicName: string): boolean {
    if (!this.keeps('clean elections')) return true;
    const text = this.#setting(topicName, 'unclean.leader.election.enable');
    return text === undefined ? this.#defaults.uncleanLeaderElectionEnable : text === 'true';
  }

  /** The election that keeps a partition of the topic online. */
  electionOf(topicName: string): 'online' | 'unclean' {
    return this.allowsUnclean(topicName) ? 'unclean' : 'online';
  }

  /**
   * Appends what the change comes to. Returns false when that is nothing.
   * @param without brokers that may not lead, though they are not fenced yet
   */
  change(
    reference: IndexedPartition,
    wanted: WantedPartition,
    without: readonly number[] = [],
  ): boolean {
    const partition = this.current(reference);
    const { topic } = reference;
    const rules = this.#rules(topic.name, partition, without);
    const record = planPartitionChange(topic.id, partition, wanted, rules);
    if (record !== null) this.#state.append([record]);
    return record !== null;
  }

  /**
   * Takes the brokers out of ISRs and lets others lead what they lead, all at once: who was in sync until then is
   * eligible where nobody is left.
   * @param only of these partitions alone
   */
  withdraw(
    brokerIds: readonly number[],
    only: (reference: IndexedPartition) => boolean = () => true,
  ): void {
    for (const reference of this.#concerned(brokerIds))
      if (only(reference)) this.#leaveOut(reference, brokerIds, {});
  }

  /**
   * A new life of the broker begins, in which what it had acknowledged may be gone: it is no eligible leader replica.
   * @param isDamaged whether it is known to be gone
   */
  distrust(brokerId: number, isDamaged: (reference: IndexedPartition) => boolean): void {
    const replica = this.keeps('lossy replicas') ? { lossyReplica: brokerId } : {};
    for (const reference of this.#concerned([brokerId]))
      this.#leaveOut(reference, [brokerId], { ...replica, isDamaged: isDamaged(reference) });
    for (const reference of [...this.#state.index.leaderless])
      if (isDamaged(reference)) {
        const election = this.electionOf(reference.topic.name);
        this.change(reference, { election, lossyReplica: brokerId, isDamaged: true }, [brokerId]);
      }
  }

  /**
   * The same for a broker that may not lead at the moment and has lost nothing. It stays in the ISRs of which this
   * controller has heard no other member that lives: nobody can have committed anything without it, and those who were
   * there may never come back, or damaged. `leaveOutInactive` does the rest.
   */
  suspend(brokerId: number): void {
    for (const reference of this.#concerned([brokerId])) {
      const { isr } = this.current(reference);
      const lives = (id: number): boolean => id !== brokerId && this.#isHeard(id);
      if (isr.some(lives)) this.#leaveOut(reference, [brokerId], {});
      else this.change(reference, { election: this.electionOf(reference.topic.name) }, [brokerId]);
    }
  }

  /** The broker lives: those who do not need not be in sync any more where it is. */
  leaveOutInactive(brokerId: number): void {
    const { image, index } = this.#state;
    for (const reference of [...index.members(brokerId)]) {
      const { isr } = this.current(reference);
      const inactive = isr.filter((id) => !image.isActive(id));
      if (inactive.length > 0 && isr.includes(brokerId)) this.#leaveOut(reference, inactive, {});
    }
  }

  /** Partitions that the brokers lead or are needed by. Those without a leader first: their clients wait. */
  #concerned(brokerIds: readonly number[]): ReadonlySet<IndexedPartition> {
    const { index } = this.#state;
    const led = brokerIds.flatMap((id) => [...index.led(id)]);
    return new Set([...led, ...brokerIds.flatMap((id) => [...index.members(id)])]);
  }

  #leaveOut(
    reference: IndexedPartition,
    brokerIds: readonly number[],
    loss: Pick<WantedPartition, 'lossyReplica' | 'isDamaged'>,
  ): void {
    const isr = this.current(reference).isr.filter((id) => !brokerIds.includes(id));
    this.change(
      reference,
      { election: this.electionOf(reference.topic.name), isr, ...loss },
      brokerIds,
    );
  }

  #isHeard(brokerId: number): boolean {
    return this.#state.image.isActive(brokerId) && this.#sessions?.isHeard(brokerId) === true;
  }

  /** The leader stays, with a new epoch: its log may have lost its end. */
  raiseLeaderEpoch(reference: IndexedPartition): void {
    const { leader, partitionId } = this.current(reference);
    this.#state.append([{ ...nothing, topicId: reference.topic.id, partitionId, leader }]);
  }

  /** A broker has come, or a setting has changed: who has no leader may get one now. */
  electMissing(): void {
    this.#reconsider(this.#state.index.leaderless);
  }

  /** Brings in line what a controller before this one may have left half done. */
  reconsiderAll(): void {
    const { leaderless, withElr } = this.#state.index;
    this.#reconsider(new Set([...leaderless, ...withElr]));
  }

  /** Follows changed overrides of a resource as far as elections depend on them. */
  followSettings(resourceType: number, resourceName: string, names: readonly string[]): void {
    if (!electionSettings.some((name) => names.includes(name))) return;
    if (resourceType === ConfigResourceType.broker && resourceName === '') this.reconsiderAll();
    if (resourceType !== ConfigResourceType.topic) return;
    const { leaderless, withElr } = this.#state.index;
    const references = [...leaderless, ...withElr];
    this.#reconsider(new Set(references.filter(({ topic }) => topic.name === resourceName)));
  }

  #reconsider(references: ReadonlySet<IndexedPartition>): void {
    for (const reference of [...references])
      this.change(reference, { election: this.electionOf(reference.topic.name) });
  }

  #rules(topicName: string, partition: PartitionImage, without: readonly number[]): ChangeRules {
    const { image } = this.#state;
    const directory = (id: number): string =>
      partition.directories[partition.replicas.indexOf(id)] ?? uuidZero;
    return {
      minIsr: this.#minIsr(topicName, partition),
      mayLead: (id) =>
        !without.includes(id) &&
        image.isActive(id) &&
        this.#sessions?.isOffline(id, directory(id)) !== true,
      keepsReplica: (id) =>
        directory(id) === uuidZero || image.broker(id)?.logDirs.includes(directory(id)) === true,
      directoryOf: (id) => defaultDirectory(image, id),
    };
  }

  /** Never more than there are replicas, as in Kafka. */
  #minIsr(topicName: string, { replicas }: PartitionImage): number {
    if (!this.keeps('eligible below the minimum')) return Number.POSITIVE_INFINITY;
    const text = this.#setting(topicName, 'min.insync.replicas');
    const wanted = text === undefined ? this.#defaults.minInsyncReplicas : Number(text);
    return Math.min(wanted, replicas.length);
  }

  #setting(topicName: string, name: (typeof electionSettings)[number]): string | undefined {
    const { image } = this.#state;
    return (
      image.topicConfigs(topicName).get(name) ??
      image.configs(ConfigResourceType.broker, '').get(name)
    );
  }
}
