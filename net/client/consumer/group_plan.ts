/** A leader's plan of one generation of a classic group: who the members are, and who gets what. */
import type { JoinGroupResponse } from '../../protocol/messages.gen.ts';
import { assign, type Strategy, type Subscriber } from './assignors.ts';
import { decodeSubscription, encodeAssignment } from './member_protocol.ts';

export class GroupPlan {
  readonly topics: readonly string[];
  readonly #strategy: Strategy;
  readonly #subscribers: readonly Subscriber[];
  /** What the plan rests on; null before it is made. */
  #counts: ReadonlyMap<string, number> | null = null;

  /** @throws ProtocolError when a member's subscription cannot be read */
  constructor(joined: JoinGroupResponse, strategy: Strategy) {
    this.#strategy = strategy;
    this.#subscribers = joined.members.map(({ memberId, groupInstanceId, metadata }) =>
      decodeSubscription(strategy, memberId, groupInstanceId, metadata),
    );
    this.topics = [...new Set(this.#subscribers.flatMap(({ topics }) => topics))];
  }

  make(counts: ReadonlyMap<string, number>): { memberId: string; assignment: Uint8Array }[] {
    this.#counts = new Map(this.topics.map((topic) => [topic, counts.get(topic) ?? 0]));
    const assigned = assign(this.#strategy, this.#subscribers, counts);
    return [...assigned].map(([memberId, partitions]) => ({
      memberId,
      assignment: encodeAssignment(partitions),
    }));
  }

  /** Whether topics have other numbers of partitions by now. What `counts` does not name is as it was. */
  isOutdatedBy(counts: ReadonlyMap<string, number>): boolean {
    for (const [topic, count] of this.#counts ?? [])
      if ((counts.get(topic) ?? count) !== count) return true;
    return false;
  }
}
