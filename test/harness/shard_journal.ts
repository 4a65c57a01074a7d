/** How a test tells the shard threads of its own broker to write down what their disk does. */
import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads';

/** Structured-cloneable; the counter is shared. */
export interface ShardJournal {
  /** Each thread adds its number. */
  readonly path: string;
  readonly counter: Int32Array;
}

const key = 'shard journal';

/** For threads that this one starts from now on. */
export function leaveShardJournal(journal: ShardJournal): void {
  setEnvironmentData(key, journal as unknown as Parameters<typeof setEnvironmentData>[1]);
}

/** What the thread that started this one has left. */
export function findShardJournal(): ShardJournal {
  const found = getEnvironmentData(key) as unknown as ShardJournal | undefined;
  if (found === undefined) throw new Error('no journal was left for this thread');
  return found;
}
