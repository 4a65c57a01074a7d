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
   * @param without a broker that may not lead, though it is not fenced yet
   */
  change(reference: IndexedPartition, wanted: WantedPartition, without?: number): boolean {
    const partition = this.current(reference);
    const { topic } = reference;
    const rules = this.#rules(topic.name, partition, without);
    const record = planPartitionChange(topic.id, partition, wanted, rules);
    if (record !== null) this.#state.append([record]);
    return record !== null;
  }

  /**
   * Takes the broker out of ISRs and lets others lead what it leads: of all partitions, or of those that `only` says.
   * @param isLossy what the broker had acknowledged may be gone, so that it is no eligible leader replica either
   */
  withdraw(
    brokerId: number,
    isLossy: boolean,
    only?: (reference: IndexedPartition) => boolean,
  ): void {
    const { index } = this.#state;
    const led = index.led(brokerId);
    const followed = [...index.members(brokerId)].filter((reference) => !led.has(reference));
    // Those without a leader first: their clients wait.
    for (const reference of [...led, ...followed]) {
      if (only !== undefined && !only(reference)) continue;
      const isr = this.current(reference).isr.filter((id) => id !== brokerId);
      const election = this.electionOf(reference.topic.name);
      const lossy = isLossy && this.keeps('lossy replicas') ? { lossyReplica: brokerId } : {};
      this.change(reference, { election, isr, ...lossy }, brokerId);
    }
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

  #rules(topicName: string, partition: PartitionImage, without: number | undefined): ChangeRules {
    const { image } = this.#state;
    const directory = (id: number): string =>
      partition.directories[partition.replicas.indexOf(id)] ?? uuidZero;
    return {
      minIsr: this.#minIsr(topicName, partition),
      mayLead: (id) =>
        id !== without &&
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
