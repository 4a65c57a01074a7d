/** How far a consumer is behind, in records and in time. */
import type { Consumption } from './consumption.ts';
import { latestTimestamp } from './partition_cursor.ts';
import { keyOf, type TopicPartition } from './topic_partition.ts';

export interface PartitionLag extends TopicPartition {
  /** Of the message that comes next. */
  readonly position: number;
  /** Behind the last message that can be read. */
  readonly end: number;
  /** How many offsets lie between both: messages, unless the topic is compacted or transactional. */
  readonly records: number;
  /** Age of the batch that comes next; 0 with nothing to read, null while it has not been fetched. */
  readonly timeMs: number | null;
}

/** Asks the leaders for the ends. Throws a MillraceError. */
export async function lagOf<K, V>(
  consumption: Consumption<K, V>,
  nowMs: number,
  signal: AbortSignal | undefined,
): Promise<PartitionLag[]> {
  const cursors = consumption.cursors.filter(({ whereNext }) => whereNext !== null);
  const wanted = new Map<TopicPartition, number>(cursors.map((one) => [one, latestTimestamp]));
  const listed = await consumption.locator.list(wanted, signal);
  const ends = new Map(listed.map((one) => [keyOf(one), one.offset]));
  const lags: PartitionLag[] = [];
  for (const cursor of cursors) {
    const next = cursor.whereNext;
    const end = ends.get(keyOf(cursor));
    if (next === null || end === undefined) continue;
    const { topic, partition, nextTimestampMs } = cursor;
    const records = Math.max(0, end - next.offset);
    const ageMs = nextTimestampMs === null ? null : Math.max(0, nowMs - nextTimestampMs);
    const timeMs = records === 0 ? 0 : ageMs;
    lags.push({ topic, partition, position: next.offset, end, records, timeMs });
  }
  return lags;
}
