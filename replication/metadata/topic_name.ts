/** Which names a topic may have, and which of them would be mistaken for each other, as Kafka's `Topic` class says. */
import { metadataTopicName } from './records.ts';

/** Leaves room for `-<partition>` and the suffixes of directories within a file name's 255 bytes. */
const topicNameLengthMax = 249;

/** Topics of the brokers' own: clients are told so, and tools leave them out by default. */
const internalTopics: ReadonlySet<string> = new Set([
  '__consumer_offsets',
  '__transaction_state',
  '__share_group_state',
]);

export function isInternalTopic(name: string): boolean {
  return internalTopics.has(name);
}

/** The cluster's own log has a topic's name, but is none: nobody may create it. */
export function isReservedTopic(name: string): boolean {
  return name === metadataTopicName;
}

/** Why a name is not allowed, for people; null when it is. */
export function topicNameProblem(name: string): string | null {
  if (name === '') return 'Topic name is invalid: the empty string is not allowed.';
  if (name === '.' || name === '..') return `Topic name is invalid: '${name}' is not allowed.`;
  if (name.length > topicNameLengthMax)
    return `Topic name is invalid: its length of ${name.length} is above the limit of ${topicNameLengthMax}.`;
  if (!/^[a-zA-Z0-9._-]+$/.test(name))
    return `Topic name is invalid: '${name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'`;
  return null;
}

/**
 * Names that collide: '.' becomes '_' in the names of metrics, so that `a.b` and `a_b` would be one there. Kafka refuses
 * the second of such a pair. Owned by the controller; `add` and `delete` follow its topics.
 */
export class CollidingNames {
  readonly #names = new Map<string, Set<string>>();

  /** The topic that stands in the way of a new one, or undefined. */
  colliding(name: string): string | undefined {
    if (!hasCollisionCharacter(name)) return undefined;
    for (const other of this.#names.get(normalised(name)) ?? []) if (other !== name) return other;
    return undefined;
  }

  add(name: string): void {
    if (!hasCollisionCharacter(name)) return;
    const key = normalised(name);
    const names = this.#names.get(key);
    if (names === undefined) this.#names.set(key, new Set([name]));
    else names.add(name);
  }

  delete(name: string): void {
    const key = normalised(name);
    const names = this.#names.get(key);
    if (names === undefined) return;
    names.delete(name);
    if (names.size === 0) this.#names.delete(key);
  }
}

function hasCollisionCharacter(name: string): boolean {
  return name.includes('.') || name.includes('_');
}

function normalised(name: string): string {
  return name.replaceAll('.', '_');
}
