/**
 * Something that requests wait for, with room for whoever looks after those to note them at it. A fetch may wait for
 * thousands of partitions twice a second: to look each of them up in a table would be most of what an idle follower costs.
 */
export interface Awaited {
  /** Belongs to the thread's purgatory alone. Null: nobody has ever waited. */
  waiters: object[] | null;
}
