/**
 * What a simulated cluster is like, drawn from its seed: its size, its settings, how fast its disks and its network are,
 * and which kinds of faults it has to endure. Runs differ more when each leaves some faults out (swarm testing).
 */
import { SeededRandom } from '../seeded_random.ts';
import { type FaultKind, faultKinds } from './fault_plan.ts';

export interface Swarm {
  readonly seed: number;
  readonly nodes: 1 | 3 | 5;
  readonly partitions: number;
  readonly replicationFactor: number;
  readonly minInsyncReplicas: number;
  /** Producers that want every batch stored once (idempotent, acks=all). */
  readonly producers: number;
  /** Producers that do not wait for all replicas: acks=1 and acks=0. */
  readonly hastyProducers: number;
  readonly readers: number;
  /** Of a consumer group; 0: there is none. */
  readonly members: number;
  readonly inFlightMax: number;
  /** A producer sends its next batch after up to so many milliseconds. */
  readonly produceEveryMs: number;
  readonly recordsMax: number;
  readonly valueBytesMax: number;
  readonly networkDelayMs: number;
  readonly breakChance: number;
  /** A flush takes 1 up to so many milliseconds. */
  readonly flushMs: number;
  readonly segmentBytes: number;
  /** How often nodes write their checkpoints. */
  readonly checkpointEveryMs: number;
  readonly sessionTimeoutMs: number;
  readonly replicaLagTimeMaxMs: number;
  readonly electionTimeoutMs: number;
  readonly fetchWaitMaxMs: number;
  /** Metadata log bytes between two snapshots. */
  readonly snapshotEveryBytes: number;
  readonly faultKinds: readonly FaultKind[];
  /** Faults come this far apart, on average. */
  readonly faultEveryMs: number;
  readonly safetyMs: number;
}

/** The least number of events of a run, liveness phase included. */
export const eventsMin = 5_000;

export function swarmOf(seed: number): Swarm {
  const random = new SeededRandom(seed * 8 + 1);
  const pick = <T>(...choices: readonly T[]): T => choices[random.below(choices.length)] as T;
  const nodes = pick<1 | 3 | 5>(3, 3, 3, 3, 5, 5, 1);
  const replicationFactor = nodes === 1 ? 1 : pick(3, 3, 3, 2, Math.min(nodes, 4));
  const networkDelayMs = pick(2, 5, 20);
  const valueBytesMax = pick(20, 200, 3_000);
  return {
    seed,
    nodes,
    partitions: nodes === 1 ? pick(1, 2) : pick(1, 1, 2, 3),
    replicationFactor,
    minInsyncReplicas: nodes === 1 ? 1 : pick(1, 2, 2),
    producers: pick(1, 2, 3),
    hastyProducers: pick(0, 0, 1, 2),
    readers: pick(1, 2),
    members: pick(0, 0, 2),
    inFlightMax: pick(1, 5, 5),
    produceEveryMs: pick(50, 120, 300),
    recordsMax: pick(1, 3),
    valueBytesMax,
    networkDelayMs,
    breakChance: pick(0, 0, 0.0005, 0.005),
    flushMs: pick(2, 10, 40),
    // A batch has to fit into a segment.
    segmentBytes: pick(valueBytesMax > 1_000 ? 10_000 : 4_000, 16_000, 1 << 20),
    checkpointEveryMs: pick(300, 2_000, 10_000),
    sessionTimeoutMs: pick(1_000, 3_000),
    replicaLagTimeMaxMs: pick(800, 2_500),
    electionTimeoutMs: pick(300, 1_000),
    fetchWaitMaxMs: pick(100, 500),
    snapshotEveryBytes: pick(500, 2_000, 10_000),
    faultKinds: faultKinds.filter(() => random.chance(0.45)),
    faultEveryMs: pick(300, 800, 2_000),
    safetyMs: pick(10_000, 16_000),
  };
}
