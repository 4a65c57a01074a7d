/** The process of a simulated client: it lives and dies, can stall, and hears nothing of what an earlier life asked for. */
import type { TopicDescription } from '../../engine/groups/coordinator_events.ts';
import type { GroupReply, GroupRequest } from '../../engine/groups/group_api.ts';
import type { SeededRandom } from './seeded_random.ts';

/** What a client knows of the world that it lives in. */
export interface ClientSurroundings {
  readonly nowMs: number;
  readonly random: SeededRandom;
  readonly topics: ReadonlyMap<string, TopicDescription>;
  count(what: string): void;
  after(delayMs: number, run: () => void): void;
  /** The answer is null when the connection broke. */
  send(request: GroupRequest, onReply: (reply: GroupReply | null) => void): void;
}

export class ClientProcess<World extends ClientSurroundings = ClientSurroundings> {
  readonly world: World;
  isAlive: boolean = false;
  #life = 0;
  #stalledUntilMs = 0;

  constructor(world: World) {
    this.world = world;
  }

  start(): void {
    this.isAlive = true;
    this.world.count('joins');
  }

  die(): void {
    this.isAlive = false;
    this.#life += 1;
  }

  /** Does nothing for so long, and then goes on as if nothing had happened. */
  stall(delayMs: number): void {
    if (!this.isAlive) return;
    this.world.count('late heartbeats');
    this.#stalledUntilMs = this.world.nowMs + delayMs;
  }

  /** Sends a request; its answer, or null for a broken connection, is heard when the client is awake, in this life only. */
  ask(request: GroupRequest, onReply: (reply: unknown) => void): void {
    const life = this.#life;
    this.world.send(request, (reply) =>
      this.#whenAwake(life, () => onReply(reply === null ? null : reply.body)),
    );
  }

  later(delayMs: number, run: () => void): void {
    const life = this.#life;
    this.world.after(delayMs, () => this.#whenAwake(life, run));
  }

  #whenAwake(life: number, run: () => void): void {
    if (life !== this.#life) return;
    const leftMs = this.#stalledUntilMs - this.world.nowMs;
    if (leftMs > 0) this.world.after(leftMs, () => this.#whenAwake(life, run));
    else run();
  }
}
