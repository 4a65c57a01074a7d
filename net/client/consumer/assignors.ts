/**
 * Who gets what in a classic group: the leader of a generation computes it for all members. Names and results are those of
 * the Java client's assignors, so that members of both may lead the same group. Racks are not looked at.
 *
 * - `range`: of each topic every subscriber gets a run of neighbouring partitions.
 * - `roundrobin`: all partitions in turn to the members in turn.
 * - `sticky`: loads that differ by one at most where the subscriptions allow it, and as few moves as that takes (KIP-54).
 * - `cooperative-sticky`: the same in two steps: what changes hands goes to nobody until who has it has given it up, so that
 *   what stays is never interrupted (KIP-429).
 */
import { assignRange } from '../../../engine/groups/range_assignor.ts';
import { byText } from '../../../engine/groups/text_order.ts';
import { assignUniform } from '../../../engine/groups/uniform_assignor.ts';
import { byTopic, flatten, keyOf, type TopicPartition } from './topic_partition.ts';

export type Strategy = 'range' | 'roundrobin' | 'sticky' | 'cooperative-sticky';

/** What a member says of itself when it joins. */
export interface Subscriber {
  readonly memberId: string;
  readonly instanceId: string | null;
  readonly topics: readonly string[];
  /** What it has, or had in `generationId`. */
  readonly owned: readonly TopicPartition[];
  /** -1 if it does not say. */
  readonly generationId: number;
}

/** By member id, for every member. */
export type GroupAssignment = ReadonlyMap<string, readonly TopicPartition[]>;

/** `partitionCounts`: of the topics that exist, by name. Others are left out. */
export function assign(
  strategy: Strategy,
  members: readonly Subscriber[],
  partitionCounts: ReadonlyMap<string, number>,
): GroupAssignment {
  switch (strategy) {
    case 'range':
      return assignWith(assignRange, members, partitionCounts);
    case 'roundrobin':
      return assignInTurn(members, partitionCounts);
    case 'sticky':
      return assignSticky(members, partitionCounts);
    case 'cooperative-sticky':
      return withoutTransfers(members, assignSticky(members, partitionCounts));
  }
}

/** Has one of the broker's assignors do it, for which names are as good as ids. */
function assignWith(
  assignor: typeof assignRange,
  members: readonly Subscriber[],
  partitionCounts: ReadonlyMap<string, number>,
): GroupAssignment {
  const subscribed = new Set(members.flatMap(({ topics }) => topics));
  const counts = new Map([...partitionCounts].filter(([topic]) => subscribed.has(topic)));
  const assigned = assignor({
    members: members.map(({ memberId, instanceId, topics, owned }) => ({
      memberId,
      instanceId,
      topicIds: [...new Set(topics)].filter((topic) => counts.has(topic)).sort(byText),
      target: byTopic(owned).map(({ topic, partitions }) => ({ topicId: topic, partitions })),
    })),
    partitionCounts: counts,
    isHomogeneous: isHomogeneous(members, counts),
  });
  return new Map(
    [...assigned].map(([memberId, topics]) => [
      memberId,
      flatten(topics.map(({ topicId, partitions }) => ({ topic: topicId, partitions }))),
    ]),
  );
}

function isHomogeneous(
  members: readonly Subscriber[],
  counts: ReadonlyMap<string, number>,
): boolean {
  return members.every(
    ({ topics }) => new Set(topics.filter((topic) => counts.has(topic))).size === counts.size,
  );
}

function assignInTurn(
  members: readonly Subscriber[],
  partitionCounts: ReadonlyMap<string, number>,
): GroupAssignment {
  const order = [...members].sort(byIdentity);
  const assigned = new Map(order.map(({ memberId }) => [memberId, [] as TopicPartition[]]));
  const topics = [...new Set(members.flatMap((member) => member.topics))].sort(byText);
  let turn = 0;
  for (const topic of topics)
    for (let partition = 0; partition < (partitionCounts.get(topic) ?? 0); partition += 1) {
      while (order[turn % order.length]?.topics.includes(topic) !== true) turn += 1;
      assigned.get(order[turn % order.length]?.memberId ?? '')?.push({ topic, partition });
      turn += 1;
    }
  return assigned;
}

/** Static members first, by instance id; then the others by member id. */
function byIdentity(a: Subscriber, b: Subscriber): number {
  if ((a.instanceId === null) !== (b.instanceId === null)) return a.instanceId === null ? 1 : -1;
  return byText(a.instanceId ?? a.memberId, b.instanceId ?? b.memberId);
}

function assignSticky(
  members: readonly Subscriber[],
  partitionCounts: ReadonlyMap<string, number>,
): GroupAssignment {
  const owners = ownersOf(members);
  const honest = [...members].sort(byIdentity).map((member) => ({
    ...member,
    owned: member.owned.filter((one) => owners.get(keyOf(one))?.memberId === member.memberId),
  }));
  return assignWith(assignUniform, honest, partitionCounts);
}

interface Owner {
  readonly memberId: string;
  readonly generationId: number;
}

/**
 * Whose word counts where several say that they have a partition: that of the latest generation. Of one generation only
 * one can be right, and nobody knows which: then nobody had it (KIP-341).
 */
function ownersOf(members: readonly Subscriber[]): ReadonlyMap<string, Owner> {
  const owners = new Map<string, Owner>();
  for (const { memberId, generationId, owned } of members)
    for (const one of owned) {
      const key = keyOf(one);
      const known = owners.get(key);
      if (known === undefined || generationId > known.generationId)
        owners.set(key, { memberId, generationId });
      else if (generationId === known.generationId) owners.set(key, { memberId: '', generationId });
    }
  return owners;
}

/** Leaves out what a member would get while another one still has it. */
function withoutTransfers(
  members: readonly Subscriber[],
  assigned: GroupAssignment,
): GroupAssignment {
  const claims = new Map<string, Set<string>>();
  for (const { memberId, owned } of members)
    for (const one of owned) {
      const key = keyOf(one);
      const known = claims.get(key);
      if (known === undefined) claims.set(key, new Set([memberId]));
      else known.add(memberId);
    }
  const isFree = (memberId: string, one: TopicPartition): boolean => {
    const claimed = claims.get(keyOf(one));
    return claimed === undefined || claimed.has(memberId);
  };
  return new Map(
    [...assigned].map(([memberId, partitions]) => [
      memberId,
      partitions.filter((one) => isFree(memberId, one)),
    ]),
  );
}
