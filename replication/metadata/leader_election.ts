/** Elections that people ask for (KIP-460), and the balance of preferred leaders. */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import {
  type ControllerReply,
  ElectionType,
  type ElectLeadersRequest,
  type ElectLeadersResult,
  type PartitionOutcome,
  type TopicOutcomes,
} from './controller_api.ts';
import { done, refused } from './controller_reply.ts';
import type { TopicImage } from './image.ts';
import type { Leadership } from './leadership.ts';
import type { PartitionControl } from './partition_control.ts';

/** Leaders that move at once when they are balanced: each costs its clients a refresh of their metadata. */
const movesPerBalanceMax = 1_000;

export function electLeaders(
  state: Leadership,
  partitions: PartitionControl,
  { electionType, topics }: ElectLeadersRequest,
): ControllerReply<ElectLeadersResult> {
  if (electionType !== ElectionType.preferred && electionType !== ElectionType.unclean)
    return refused(ErrorCode.INVALID_REQUEST, `Unknown election type ${electionType}.`);
  const isUnclean = electionType === ElectionType.unclean;
  if (topics === null) return done({ topics: electAll(state, partitions, isUnclean) });
  return done({
    topics: topics.map(({ name, partitions: asked }) => {
      const topic = state.image.topic(name);
      return {
        name,
        partitions: asked.map((partitionIndex) =>
          topic === undefined
            ? unknown(partitionIndex, `No such topic as ${name}`)
            : electOne(state, partitions, isUnclean, topic, partitionIndex),
        ),
      };
    }),
  });
}

/** Says nothing of partitions that have the leader already which is asked for. */
function electAll(
  state: Leadership,
  partitions: PartitionControl,
  isUnclean: boolean,
): TopicOutcomes[] {
  const outcomes = new Map<TopicImage, PartitionOutcome[]>();
  const { leaderless, imbalanced } = state.index;
  for (const reference of [...(isUnclean ? leaderless : imbalanced)]) {
    const { topic, partitionId } = reference;
    const outcome = electOne(state, partitions, isUnclean, topic, partitionId);
    const others = outcomes.get(topic);
    if (others === undefined) outcomes.set(topic, [outcome]);
    else others.push(outcome);
  }
  return [...outcomes].map(([{ name }, ofTopic]) => ({
    name,
    partitions: ofTopic.sort((a, b) => a.partitionIndex - b.partitionIndex),
  }));
}

function electOne(
  { index }: Leadership,
  partitions: PartitionControl,
  isUnclean: boolean,
  topic: TopicImage,
  partitionIndex: number,
): PartitionOutcome {
  const reference = index.reference(topic, partitionIndex);
  if (reference === undefined)
    return unknown(partitionIndex, `No such partition as ${topic.name}-${partitionIndex}`);
  const isThere = isUnclean ? !index.leaderless.has(reference) : !index.imbalanced.has(reference);
  if (isThere)
    return {
      partitionIndex,
      errorCode: ErrorCode.ELECTION_NOT_NEEDED,
      errorMessage: 'Leader election not needed for topic partition.',
    };
  const before = partitions.current(reference).leader;
  partitions.change(reference, { election: isUnclean ? 'unclean' : 'preferred' });
  if (partitions.current(reference).leader !== before)
    return { partitionIndex, errorCode: ErrorCode.NONE, errorMessage: null };
  return isUnclean
    ? {
        partitionIndex,
        errorCode: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        errorMessage: 'Eligible topic partition leaders are not available.',
      }
    : {
        partitionIndex,
        errorCode: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        errorMessage: 'The preferred leader was not available.',
      };
}

function unknown(partitionIndex: number, errorMessage: string): PartitionOutcome {
  return { partitionIndex, errorCode: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, errorMessage };
}

/** Gives leadership back to preferred replicas that are in sync. Returns whether some are left for another go. */
export function balanceLeaders({ index }: Leadership, partitions: PartitionControl): boolean {
  let moves = 0;
  for (const reference of [...index.imbalanced]) {
    if (moves === movesPerBalanceMax) return true;
    if (partitions.change(reference, { election: 'preferred' })) moves += 1;
  }
  return false;
}
