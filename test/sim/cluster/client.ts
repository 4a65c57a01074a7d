/** What all clients of a simulated cluster have: a machine on the network, connections, and an idea of who leads. */
import { SeededRandom } from '../seeded_random.ts';
import type { ClientRequest, MetadataAnswer } from './client_api.ts';
import type { CommittedLog } from './committed_log.ts';
import { type Connection, isFailure, type Network } from './network.ts';
import { SimProcess } from './sim_process.ts';
import type { Timeline } from './timeline.ts';
import type { Trace } from './trace.ts';

/** What clients know of the world. */
export interface ClientWorld {
  readonly timeline: Timeline;
  readonly network: Network;
  readonly trace: Trace;
  readonly nodeIds: readonly number[];
  readonly committed: readonly CommittedLog[];
  readonly count: (what: string, times?: number) => void;
}

const requestTimeoutMs = 1_500;
const metadataTimeoutMs = 500;

export class Client {
  readonly world: ClientWorld;
  readonly name: string;
  readonly random: SeededRandom;
  readonly process: SimProcess;
  readonly #connections = new Map<number, Connection>();
  /** By partition. */
  readonly #leaders: { leader: number; leaderEpoch: number }[];
  #coordinator: MetadataAnswer['coordinator'] = { leader: -1, leaderEpoch: -1 };
  #isRefreshing: boolean = false;

  /** @param id number of its machine, which no node has */
  constructor(world: ClientWorld, name: string, id: number, seed: number) {
    this.world = world;
    this.name = name;
    this.random = new SeededRandom(seed);
    this.process = new SimProcess(world.timeline, id, () => {});
    this.#leaders = world.committed.map(() => ({ leader: -1, leaderEpoch: -1 }));
  }

  /** Leader and its epoch as far as this client knows; leader -1: unknown, and being asked for. */
  leaderOf(partition: number): { readonly leader: number; readonly leaderEpoch: number } {
    const known = this.#leaders[partition] as { leader: number; leaderEpoch: number };
    if (known.leader === -1) this.refresh();
    return known;
  }

  /** Who leads the partition of the groups, as far as this client knows; -1: unknown, and being asked for. */
  coordinator(): number {
    if (this.#coordinator.leader === -1) this.refresh();
    return this.#coordinator.leader;
  }

  ask(
    node: number,
    request: ClientRequest,
    done: (answer: unknown) => void,
    timeoutMs: number = request.type === 'metadata' ? metadataTimeoutMs : requestTimeoutMs,
  ): void {
    let connection = this.#connections.get(node);
    if (connection === undefined || connection.isClosed) {
      connection = this.world.network.connect(this.process, node);
      this.#connections.set(node, connection);
    }
    connection.request(request, timeoutMs, done);
  }

  /** Asks any broker who leads, unless that is under way. */
  refresh(): void {
    if (this.#isRefreshing) return;
    this.#isRefreshing = true;
    const { nodeIds } = this.world;
    const node = nodeIds[this.random.below(nodeIds.length)] as number;
    this.ask(node, { type: 'metadata' }, (answer) => {
      this.#isRefreshing = false;
      if (!isFailure(answer)) this.#learn(answer as MetadataAnswer);
    });
  }

  /** Older news than what is known is no news (KIP-320). */
  #learn({ partitions, coordinator }: MetadataAnswer): void {
    if (coordinator.leaderEpoch >= this.#coordinator.leaderEpoch) this.#coordinator = coordinator;
    for (const [partition, { leader, leaderEpoch }] of partitions.entries()) {
      const known = this.#leaders[partition];
      if (known === undefined || leaderEpoch < known.leaderEpoch) continue;
      known.leader = leader;
      known.leaderEpoch = leaderEpoch;
    }
  }
}
