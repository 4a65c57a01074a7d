/**
 * The `range` assignor: of each topic every subscriber gets a run of neighbouring partitions, the first ones one more
 * where they do not come out even. Members stand in the order of their instance or member ids, so that topics with as
 * many partitions and the same subscribers are split alike and can be joined.
 */
import type { Assignment, AssignorInput, AssignorMember } from './assignor.ts';
import type { TopicPartitions } from './group_records.ts';
import { byText } from './text_order.ts';

export function assignRange({ members, partitionCounts }: AssignorInput): Assignment {
  const order = [...members].sort(byIdentity);
  const subscribers = new Map<string, AssignorMember[]>();
  const assigned = new Map<string, TopicPartitions[]>();
  for (const member of order) {
    assigned.set(member.memberId, []);
    for (const topicId of member.topicIds) {
      const known = subscribers.get(topicId);
      if (known === undefined) subscribers.set(topicId, [member]);
      else known.push(member);
    }
  }
  for (const [topicId, able] of subscribers) {
    const count = partitionCounts.get(topicId) ?? 0;
    const share = Math.floor(count / able.length);
    const extras = count % able.length;
    let first = 0;
    for (const [index, { memberId }] of able.entries()) {
      const length = share + (index < extras ? 1 : 0);
      if (length === 0) break;
      const partitions = Array.from({ length }, (_, at) => first + at);
      assigned.get(memberId)?.push({ topicId, partitions });
      first += length;
    }
  }
  return assigned;
}

/** Static members first, by instance id; then the others by member id. */
function byIdentity(a: AssignorMember, b: AssignorMember): number {
  if ((a.instanceId === null) !== (b.instanceId === null)) return a.instanceId === null ? 1 : -1;
  return byText(a.instanceId ?? a.memberId, b.instanceId ?? b.memberId);
}
