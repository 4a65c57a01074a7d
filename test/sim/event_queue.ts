/** What is going to happen in a simulated world, by virtual time. Of things due at once the one that was put first comes first. */
interface Entry {
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;
}

export class EventQueue {
  readonly #heap: Entry[] = [];
  #order = 0;

  get nextMs(): number {
    return this.#heap[0]?.atMs ?? Infinity;
  }

  add(atMs: number, run: () => void): void {
    const heap = this.#heap;
    this.#order += 1;
    const entry = { atMs, order: this.#order, run };
    let at = heap.length;
    heap.push(entry);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (isBefore(heap[parent] as Entry, entry)) break;
      heap[at] = heap[parent] as Entry;
      at = parent;
    }
    heap[at] = entry;
  }

  /** Takes the next one out. There must be one. */
  take(): () => void {
    const heap = this.#heap;
    const top = heap[0] as Entry;
    const last = heap.pop() as Entry;
    let at = 0;
    for (let child = 1; child < heap.length; child = 2 * at + 1) {
      const right = child + 1;
      if (right < heap.length && isBefore(heap[right] as Entry, heap[child] as Entry))
        child = right;
      if (isBefore(last, heap[child] as Entry)) break;
      heap[at] = heap[child] as Entry;
      at = child;
    }
    if (heap.length > 0) heap[at] = last;
    return top.run;
  }
}

function isBefore(a: Entry, b: Entry): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}
