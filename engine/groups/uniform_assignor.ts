/**
 * The `uniform` assignor: loads that differ by one at most where the subscriptions allow it, and as few moves as that
 * takes. Partitions first stay where they were, then go to whoever has least.
 */
import type { Assignment, AssignorInput, AssignorMember } from './assignor.ts';
import type { TopicPartitions } from './group_records.ts';

interface Load {
  readonly member: AssignorMember;
  readonly byTopic: Map<string, number[]>;
  count: number;
}

interface Unassigned {
  readonly topicId: string;
  readonly partition: number;
}

export function assignUniform(input: AssignorInput): Assignment {
  const loads = input.members.map((member): Load => ({ member, byTopic: new Map(), count: 0 }));
  if (input.isHomogeneous) assignByQuota(input, loads);
  else assignByBalance(input, loads);
  return new Map(loads.map(({ member, byTopic }) => [member.memberId, toTopics(byTopic)]));
}

function toTopics(byTopic: ReadonlyMap<string, readonly number[]>): TopicPartitions[] {
  return [...byTopic].map(([topicId, partitions]) => ({ topicId, partitions }));
}

function give(load: Load, topicId: string, partition: number): void {
  const partitions = load.byTopic.get(topicId);
  if (partitions === undefined) load.byTopic.set(topicId, [partition]);
  else partitions.push(partition);
  load.count += 1;
}

/** All may have everything: each gets its share, counted in advance. */
function assignByQuota({ partitionCounts }: AssignorInput, loads: readonly Load[]): void {
  let total = 0;
  for (const count of partitionCounts.values()) total += count;
  const quota = Math.floor(total / Math.max(loads.length, 1));
  let extras = total - quota * loads.length;
  const taken = new Taken(partitionCounts);
  for (const load of loads) {
    for (const { topicId, partitions } of load.member.target)
      for (const partition of partitions) {
        const mayTakeExtra = load.count === quota && extras > 0;
        if (load.count >= quota && !mayTakeExtra) break;
        if (!taken.take(topicId, partition)) continue;
        if (mayTakeExtra) extras -= 1;
        give(load, topicId, partition);
      }
  }
  let at = 0;
  for (const { topicId, partition } of taken.rest()) {
    for (let load = loads[at]; load !== undefined; load = loads[at]) {
      if (load.count < quota) break;
      if (load.count === quota && extras > 0) {
        extras -= 1;
        break;
      }
      at += 1;
    }
    const load = loads[at];
    if (load === undefined) return;
    give(load, topicId, partition);
  }
}

/** Which partitions have been handed out. */
class Taken {
  readonly #taken = new Map<string, Uint8Array>();

  constructor(partitionCounts: ReadonlyMap<string, number>) {
    for (const [topicId, count] of partitionCounts) this.#taken.set(topicId, new Uint8Array(count));
  }

  /** False if it does not exist or has been taken. */
  take(topicId: string, partition: number): boolean {
    const taken = this.#taken.get(topicId);
    if (taken === undefined || taken[partition] !== 0) return false;
    taken[partition] = 1;
    return true;
  }

  rest(): Unassigned[] {
    const rest: Unassigned[] = [];
    for (const [topicId, taken] of this.#taken)
      for (const [partition, isTaken] of taken.entries())
        if (isTaken === 0) rest.push({ topicId, partition });
    return rest;
  }
}

/**
 * Members differ in what they may have. Everything stays where it was, the rest goes to the subscriber with the least
 * load, topics with few subscribers first; then topic by topic the most loaded give to the least loaded while that
 * makes them more alike.
 */
function assignByBalance(input: AssignorInput, loads: readonly Load[]): void {
  const subscribers = new Map<string, Load[]>();
  for (const load of loads)
    for (const topicId of load.member.topicIds) {
      const known = subscribers.get(topicId);
      if (known === undefined) subscribers.set(topicId, [load]);
      else known.push(load);
    }
  const taken = new Taken(input.partitionCounts);
  for (const load of loads) {
    const may = new Set(load.member.topicIds);
    for (const { topicId, partitions } of load.member.target)
      for (const partition of partitions)
        if (may.has(topicId) && taken.take(topicId, partition)) give(load, topicId, partition);
  }
  const rest = taken.rest();
  const countOf = ({ topicId }: Unassigned): number => subscribers.get(topicId)?.length ?? 0;
  rest.sort((a, b) => countOf(a) - countOf(b));
  for (const { topicId, partition } of rest) {
    const least = leastLoaded(subscribers.get(topicId) ?? []);
    if (least !== null) give(least, topicId, partition);
  }
  // Each round moves every topic; more rounds than this change next to nothing.
  for (let round = 0; round < 16; round += 1) {
    let moved = false;
    for (const [topicId, able] of subscribers) moved = balanceTopic(topicId, able) || moved;
    if (!moved) return;
  }
}

function leastLoaded(loads: readonly Load[]): Load | null {
  let least: Load | null = null;
  for (const load of loads) if (least === null || load.count < least.count) least = load;
  return least;
}

function balanceTopic(topicId: string, able: readonly Load[]): boolean {
  let moved = false;
  for (;;) {
    const least = leastLoaded(able);
    let most: Load | null = null;
    for (const load of able) {
      if ((load.byTopic.get(topicId)?.length ?? 0) === 0) continue;
      if (most === null || load.count > most.count) most = load;
    }
    if (least === null || most === null || most.count - least.count < 2) return moved;
    const partitions = most.byTopic.get(topicId) ?? [];
    const partition = partitions.pop();
    if (partition === undefined) return moved;
    if (partitions.length === 0) most.byTopic.delete(topicId);
    most.count -= 1;
    give(least, topicId, partition);
    moved = true;
  }
}
