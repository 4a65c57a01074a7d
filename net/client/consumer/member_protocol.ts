/**
 * What members of a classic group of consumers tell each other through the coordinator, which does not look inside:
 * `ConsumerProtocolSubscription` from each to the leader, `ConsumerProtocolAssignment` from the leader to each, and the
 * user data of the sticky assignors in the Java client's formats. Newer versions only add fields at the end, so that what
 * is newer than known is read as the newest known.
 */
import { codecFor, versionsOf } from '../../protocol/codec.ts';
import type { MessageTypes } from '../../protocol/messages.gen.ts';
import { ProtocolError, Reader } from '../../protocol/reader.ts';
import { encodeVersioned } from '../../protocol/record_codec.ts';
import type { Strategy, Subscriber } from './assignors.ts';
import { byTopic, flatten, type TopicPartition } from './topic_partition.ts';

/** With owned partitions, generation and rack. */
const subscriptionVersion = 3;
/** The Java client's. */
const assignmentVersion = 3;

/** What a member brings along when it joins. */
export interface Subscription {
  readonly topics: readonly string[];
  /** What it has now: nothing after an eager member has given all up. */
  readonly owned: readonly TopicPartition[];
  /** What it had in `generationId`, for the `sticky` assignor. */
  readonly previous: readonly TopicPartition[];
  readonly generationId: number;
}

export function encodeSubscription(strategy: Strategy, subscription: Subscription): Uint8Array {
  const { topics, owned, previous, generationId } = subscription;
  return encodeVersioned('ConsumerProtocolSubscription', subscriptionVersion, {
    topics: [...topics],
    ownedPartitions: toWire(owned),
    generationId,
    userData: userDataOf(strategy, previous, generationId),
  });
}

function userDataOf(
  strategy: Strategy,
  previous: readonly TopicPartition[],
  generationId: number,
): Uint8Array | null {
  switch (strategy) {
    case 'range':
    case 'roundrobin':
      return null;
    case 'cooperative-sticky': {
      const bytes = Buffer.alloc(4);
      bytes.writeInt32BE(generationId);
      return bytes;
    }
    case 'sticky':
      return stickyUserData(previous, generationId);
  }
}

/** An array of topics, each with an array of partitions, and the generation. */
function stickyUserData(previous: readonly TopicPartition[], generationId: number): Uint8Array {
  const topics = byTopic(previous);
  const parts: Uint8Array[] = [int32(topics.length)];
  for (const { topic, partitions } of topics) {
    const name = Buffer.from(topic);
    const length = Buffer.alloc(2);
    length.writeInt16BE(name.length);
    parts.push(length, name, int32(partitions.length), ...partitions.map(int32));
  }
  parts.push(int32(generationId));
  return Buffer.concat(parts);
}

function int32(value: number): Uint8Array {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

/** @throws ProtocolError on bytes that are no subscription */
export function decodeSubscription(
  strategy: Strategy,
  memberId: string,
  instanceId: string | null,
  bytes: Uint8Array,
): Subscriber {
  const { topics, ownedPartitions, generationId, userData } = decode(
    'ConsumerProtocolSubscription',
    bytes,
  );
  const owned = fromWire(ownedPartitions);
  const own = { memberId, instanceId, topics };
  // The members of an eager group have given everything up when they say what they have.
  if (strategy === 'sticky') return { ...own, ...readStickyUserData(userData) };
  if (strategy === 'cooperative-sticky' && generationId < 0 && userData !== null)
    return { ...own, owned, generationId: readGeneration(userData) };
  return { ...own, owned, generationId };
}

function readGeneration(userData: Uint8Array): number {
  return userData.length < 4 ? -1 : Buffer.from(userData).readInt32BE(0);
}

/** Other people's user data may be anything: then the member had nothing. Its first form ends before the generation. */
function readStickyUserData(
  userData: Uint8Array | null,
): Pick<Subscriber, 'owned' | 'generationId'> {
  const owned: TopicPartition[] = [];
  if (userData === null) return { owned, generationId: -1 };
  const reader = new Reader(userData);
  try {
    const topics = reader.count32(6, 1, 'topics');
    for (let at = 0; at < topics; at += 1) {
      const topic = reader.text(Math.max(0, reader.length16('topic')));
      const count = reader.count32(4, 1, 'partitions');
      for (let index = 0; index < count; index += 1)
        owned.push({ topic, partition: reader.view.getInt32(reader.take(4, 'partition')) });
    }
    const generationId =
      reader.remaining < 4 ? -1 : reader.view.getInt32(reader.take(4, 'generation'));
    return { owned, generationId };
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    return { owned: [], generationId: -1 };
  }
}

export function encodeAssignment(partitions: readonly TopicPartition[]): Uint8Array {
  return encodeVersioned('ConsumerProtocolAssignment', assignmentVersion, {
    assignedPartitions: toWire(partitions),
  });
}

/** No bytes are no partitions. @throws ProtocolError on bytes that are no assignment */
export function decodeAssignment(bytes: Uint8Array): TopicPartition[] {
  if (bytes.length === 0) return [];
  return fromWire(decode('ConsumerProtocolAssignment', bytes).assignedPartitions);
}

type WirePartitions = { topic: string; partitions: number[] }[];

function toWire(partitions: readonly TopicPartition[]): WirePartitions {
  return byTopic(partitions).map(({ topic, partitions: numbers }) => ({
    topic,
    partitions: [...numbers],
  }));
}

function fromWire(topics: WirePartitions): TopicPartition[] {
  return flatten(topics);
}

function decode<N extends 'ConsumerProtocolSubscription' | 'ConsumerProtocolAssignment'>(
  name: N,
  bytes: Uint8Array,
): MessageTypes[N] {
  const reader = new Reader(bytes);
  reader.enter(name);
  const version = reader.view.getInt16(reader.take(2, 'version'));
  if (version < 0) reader.fail('version', `${version}`);
  return codecFor(name, Math.min(version, versionsOf(name).max)).decode(reader);
}
