/** Names of partition directories, Kafka's. */
import type { Random } from '../ports.ts';

const deleteSuffix = '-delete';
const futureSuffix = '-future';
const straySuffix = '-stray';
const nameLengthMax = 255;

export interface TopicPartition {
  readonly topic: string;
  readonly partition: number;
}

export function partitionDirectoryName(topic: string, partition: number): string {
  return `${topic}-${partition}`;
}

/** Topic and partition of a directory in use, or null for any other name. */
export function parsePartitionDirectory(name: string): TopicPartition | null {
  if (isDeletedDirectory(name) || name.endsWith(futureSuffix) || name.endsWith(straySuffix))
    return null;
  const match = /^([A-Za-z0-9._-]{1,249})-(\d{1,10})$/.exec(name);
  return match === null ? null : { topic: match[1] as string, partition: Number(match[2]) };
}

/** A partition that was deleted and whose files remain to be removed. */
export function isDeletedDirectory(name: string): boolean {
  return name.endsWith(deleteSuffix) && name.includes('.');
}

/** `<dir>.<32 hex digits>-delete`, the topic's name cut so that it may be a file name. */
export function deletedDirectory(dir: string, random: Random): string {
  return withSuffix(dir, random, deleteSuffix);
}

/** The same for a directory that belongs to no partition that is known here. */
export function strayDirectory(dir: string, random: Random): string {
  return withSuffix(dir, random, straySuffix);
}

function withSuffix(dir: string, random: Random, end: string): string {
  const topicAt = dir.lastIndexOf('/') + 1;
  const topicEnd = Math.max(topicAt, dir.lastIndexOf('-'));
  const suffix = `${dir.slice(topicEnd)}.${Buffer.from(random.bytes(16)).toString('hex')}${end}`;
  return dir.slice(0, Math.min(topicEnd, topicAt + nameLengthMax - suffix.length)) + suffix;
}

/** The directory that holds `path`. */
export function parentOf(path: string): string {
  const slash = path.lastIndexOf('/');
  return slash > 0 ? path.slice(0, slash) : slash === 0 ? '/' : '.';
}
