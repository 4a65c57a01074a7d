/**
 * Lists that many partitions have alike: replicas, ISR, directory ids. Records come from a log or from another thread with
 * lists of their own, which would be most of what an image of many partitions takes.
 *
 * Thread: each has its own. Memory: `listsMax` lists; beyond that it begins anew, and what is in use stays with its users.
 */
const listsMax = 4_096;

export class SharedLists<Item extends number | string> {
  readonly #lists = new Map<string, readonly Item[]>();
  readonly #none: readonly Item[] = [];

  /** A list with the same items, which may be others' as well: nobody may change it, nor the one that was given. */
  of(list: readonly Item[]): readonly Item[] {
    if (list.length === 0) return this.#none;
    const key = list.join();
    const known = this.#lists.get(key);
    if (known !== undefined) return known;
    if (this.#lists.size === listsMax) this.#lists.clear();
    this.#lists.set(key, list);
    return list;
  }
}
