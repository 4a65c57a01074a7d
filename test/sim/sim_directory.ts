/** A directory of the simulated disk: its names as they are, as the device has them, and the changes between. */
import type { SeededRandom } from './seeded_random.ts';
import type { SimFile } from './sim_file.ts';

export type SimNode = SimFile | SimDirectory;

/** One atomic change of names. */
interface NameChange {
  readonly remove: string | null;
  readonly add: string | null;
  readonly node: SimNode | null;
}

export class SimDirectory {
  names: Map<string, SimNode> = new Map<string, SimNode>();
  #durable = new Map<string, SimNode>();
  #pending: NameChange[] = [];

  add(name: string, node: SimNode): void {
    this.#change({ remove: null, add: name, node });
  }

  remove(name: string): void {
    this.#change({ remove: name, add: null, node: null });
  }

  rename(from: string, to: string, node: SimNode): void {
    this.#change({ remove: from, add: to, node });
  }

  #change(change: NameChange): void {
    apply(this.names, change);
    this.#pending.push(change);
  }

  /** What a flush that begins now will make durable. */
  beginFlush(): readonly NameChange[] {
    return [...this.#pending];
  }

  endFlush(changes: readonly NameChange[]): void {
    const covered = new Set(changes);
    for (const change of this.#pending) if (covered.has(change)) apply(this.#durable, change);
    this.#pending = this.#pending.filter((change) => !covered.has(change));
  }

  /** What a power cut would leave: a journal keeps the first few changes, other file systems any of them. */
  afterCrash(random: SeededRandom): Map<string, SimNode> {
    const names = new Map(this.#durable);
    const isJournal = random.chance(0.5);
    const kept = random.below(this.#pending.length + 1);
    this.#pending.forEach((change, at) => {
      if (isJournal ? at < kept : random.chance(0.5)) apply(names, change);
    });
    return names;
  }

  crash(random: SeededRandom): void {
    this.names = this.afterCrash(random);
    this.#durable = new Map(this.names);
    this.#pending = [];
    for (const node of this.names.values()) node.crash(random);
  }

  /** All nodes below this directory, itself included. */
  *nodes(): Generator<SimNode> {
    yield this;
    for (const node of this.names.values()) {
      if (node instanceof SimDirectory) yield* node.nodes();
      else yield node;
    }
  }
}

function apply(names: Map<string, SimNode>, change: NameChange): void {
  if (change.remove !== null) names.delete(change.remove);
  if (change.add !== null && change.node !== null) names.set(change.add, change.node);
}
