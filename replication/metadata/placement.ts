/**
 * Where the replicas of new partitions go: leaders evenly over the brokers, the replicas of a partition over as many
 * racks as there are, live brokers before fenced ones. The aims are those of Kafka's striped placement (KIP-36, KIP-631).
 */

export interface PlacementBroker {
  readonly id: number;
  readonly rack: string | null;
  /** A fenced broker may hold a replica when there are too few others, but never the leader. */
  readonly fenced: boolean;
}

/** Draws an integer from 0 to bound - 1. */
export type RandomBelow = (bound: number) => number;

/** The replicas of each partition, leader first, or `problem`: why it cannot be done, for people. */
export type Placement =
  | { readonly replicas: readonly (readonly number[])[]; readonly problem: null }
  | { readonly replicas: null; readonly problem: string };

export function placeReplicas(
  brokers: readonly PlacementBroker[],
  partitions: number,
  replicationFactor: number,
  random: RandomBelow,
): Placement {
  if (replicationFactor > brokers.length)
    return refusal(
      `The target replication factor of ${replicationFactor} cannot be reached because only ${brokers.length} broker(s) are registered.`,
    );
  const live = ring(
    brokers.filter((broker) => !broker.fenced),
    random,
  );
  const fenced = ring(
    brokers.filter((broker) => broker.fenced),
    random,
  );
  if (live.length === 0) return refusal('All brokers are currently fenced.');
  const replicas: number[][] = [];
  const start = random(live.length);
  for (let partition = 0; partition < partitions; partition += 1)
    replicas.push(placeOne(live, fenced, start + partition, replicationFactor));
  return { replicas, problem: null };
}

function refusal(problem: string): Placement {
  return { replicas: null, problem };
}

/** The brokers in an order in which neighbours stand in different racks as long as possible. */
function ring(brokers: readonly PlacementBroker[], random: RandomBelow): PlacementBroker[] {
  const racks = new Map<string | null, PlacementBroker[]>();
  for (const broker of shuffled(brokers, random)) {
    const rack = racks.get(broker.rack);
    if (rack === undefined) racks.set(broker.rack, [broker]);
    else rack.push(broker);
  }
  const result: PlacementBroker[] = [];
  for (let depth = 0; result.length < brokers.length; depth += 1)
    for (const rack of racks.values()) {
      const broker = rack[depth];
      if (broker !== undefined) result.push(broker);
    }
  return result;
}

function shuffled<T>(items: readonly T[], random: RandomBelow): T[] {
  const result = [...items];
  for (let index = result.length - 1; index > 0; index -= 1) {
    const other = random(index + 1);
    [result[index], result[other]] = [result[other]!, result[index]!];
  }
  return result;
}

/**
 * The leader is the ring's next broker. The followers are searched from a point that moves on with each lap of the
 * ring, so that the partitions which a broker leads do not all have the same followers.
 */
function placeOne(
  live: readonly PlacementBroker[],
  fenced: readonly PlacementBroker[],
  position: number,
  replicationFactor: number,
): number[] {
  const leaderIndex = position % live.length;
  const lap = Math.floor(position / live.length);
  const others: PlacementBroker[] = [];
  const otherCount = live.length - 1;
  for (let step = 0; step < otherCount; step += 1)
    others.push(live[(leaderIndex + 1 + ((lap + step) % otherCount)) % live.length]!);
  const chosen = [live[leaderIndex]!];
  for (const candidates of [others, fenced]) {
    take(candidates, chosen, replicationFactor, true);
    take(candidates, chosen, replicationFactor, false);
  }
  return chosen.map((broker) => broker.id);
}

function take(
  candidates: readonly PlacementBroker[],
  chosen: PlacementBroker[],
  count: number,
  newRacksOnly: boolean,
): void {
  for (const candidate of candidates) {
    if (chosen.length === count) return;
    if (chosen.includes(candidate)) continue;
    if (newRacksOnly && chosen.some((broker) => broker.rack === candidate.rack)) continue;
    chosen.push(candidate);
  }
}
