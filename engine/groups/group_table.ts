/**
 * All groups of a coordinator, with their offsets. A group may exist without offsets; offsets never without a group.
 *
 * A group is of the type of its members. An empty one changes its type with the first member of the other, and keeps its
 * offsets; while it has members, the other protocol's are refused.
 *
 * Thread and concurrency: as `GroupCoordinator`, which owns it. Durability: a group may be ahead of the log, offsets are not.
 */
import type { ClassicGroup } from './classic_group.ts';
import { ClassicState } from './classic_group.ts';
import { newClassicGroup } from './classic_rebalance.ts';
import type { ConsumerGroup } from './consumer_group.ts';
import { newConsumerGroup } from './consumer_heartbeat.ts';
import type { CoordinatorRuntime } from './coordinator_runtime.ts';
import { GroupOffsets } from './group_offsets.ts';

export type Group = ClassicGroup | ConsumerGroup;

/** Whether it has no members, and is not on its way out either. */
export function isEmptyGroup(group: Group): boolean {
  return group.type === 'classic'
    ? group.state === ClassicState.empty
    : group.isEmpty && !group.isDead;
}

export function isDeadGroup(group: Group): boolean {
  return group.type === 'classic' ? group.state === ClassicState.dead : group.isDead;
}

export class GroupTable {
  readonly #runtime: CoordinatorRuntime;
  readonly #groups = new Map<string, Group>();
  readonly #offsets = new Map<string, GroupOffsets>();

  constructor(runtime: CoordinatorRuntime) {
    this.#runtime = runtime;
  }

  get all(): Iterable<Group> {
    return this.#groups.values();
  }

  get(groupId: string): Group | undefined {
    return this.#groups.get(groupId);
  }

  /** Puts a new group without members there, in the place of what there was. */
  newClassic(groupId: string): ClassicGroup {
    const group = newClassicGroup(this.#runtime, groupId);
    group.stateSinceMs = Math.floor(this.#runtime.wallMs);
    this.#groups.set(groupId, group);
    return group;
  }

  /** As `newClassic`. */
  newConsumer(groupId: string): ConsumerGroup {
    const group = newConsumerGroup(this.#runtime, groupId);
    this.#groups.set(groupId, group);
    return group;
  }

  /** Puts a group back, or takes away the one that is there. */
  restore(groupId: string, group: Group | undefined): void {
    if (group === undefined) this.#groups.delete(groupId);
    else this.#groups.set(groupId, group);
  }

  delete(group: Group): void {
    this.#groups.delete(group.groupId);
    this.#offsets.delete(group.groupId);
  }

  forgetOffsets(groupId: string): void {
    this.#offsets.delete(groupId);
  }

  offsetsOf(groupId: string): GroupOffsets | undefined {
    return this.#offsets.get(groupId);
  }

  /** Of a group that exists, or will when loading is over. */
  offsetsFor(groupId: string): GroupOffsets {
    const known = this.#offsets.get(groupId);
    if (known !== undefined) return known;
    const offsets = new GroupOffsets(groupId);
    this.#offsets.set(groupId, offsets);
    return offsets;
  }
}
