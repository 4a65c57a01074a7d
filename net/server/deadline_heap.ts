/**
 * A binary heap of things with a deadline, earliest first, from which any element can be taken in O(log n):
 * most long polls end long before their deadline, and must not stay in memory until it comes.
 */
import assert from 'node:assert/strict';

export interface Deadlined {
  /** Milliseconds on the owner's monotonic clock; fixed while in the heap. */
  readonly deadlineMs: number;
  /** Invariant: index in the heap's array, -1 while in none. Only the heap writes it. */
  heapIndex: number;
}

export class DeadlineHeap<T extends Deadlined> {
  readonly #items: T[] = [];

  get size(): number {
    return this.#items.length;
  }

  peek(): T | null {
    return this.#items[0] ?? null;
  }

  push(item: T): void {
    assert(item.heapIndex === -1, 'already in a heap');
    item.heapIndex = this.#items.length;
    this.#items.push(item);
    this.#up(item);
  }

  remove(item: T): void {
    const index = item.heapIndex;
    assert(this.#items[index] === item, `not in this heap: ${index}`);
    const last = this.#items.pop() as T;
    item.heapIndex = -1;
    if (last === item) return;
    this.#place(last, index);
    this.#up(last);
    this.#down(last);
  }

  #place(item: T, index: number): void {
    this.#items[index] = item;
    item.heapIndex = index;
  }

  #up(item: T): void {
    let index = item.heapIndex;
    while (index > 0) {
      const parentIndex = (index - 1) >> 1;
      const parent = this.#items[parentIndex] as T;
      if (parent.deadlineMs <= item.deadlineMs) break;
      this.#place(parent, index);
      index = parentIndex;
    }
    this.#place(item, index);
  }

  #down(item: T): void {
    let index = item.heapIndex;
    for (;;) {
      let childIndex = 2 * index + 1;
      const left = this.#items[childIndex];
      if (left === undefined) break;
      const right = this.#items[childIndex + 1];
      let child = left;
      if (right !== undefined && right.deadlineMs < left.deadlineMs) {
        child = right;
        childIndex += 1;
      }
      if (child.deadlineMs >= item.deadlineMs) break;
      this.#place(child, index);
      index = childIndex;
    }
    this.#place(item, index);
  }
}
