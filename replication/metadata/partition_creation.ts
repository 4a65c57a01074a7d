/** What adding partitions to a topic means (KIP-195): which records, or why not. A pure function of image and request. */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { CreatePartitionsResult, TopicGrowth } from './controller_api.ts';
import type { MetadataImage, TopicImage } from './image.ts';
import { assignmentProblem, newPartition, placeOnBrokers } from './new_partitions.ts';
import type { RandomBelow } from './placement.ts';
import type { MetadataRecord } from './records.ts';
import { partitionsPerRequestMax } from './topic_creation.ts';

type Result = CreatePartitionsResult['topics'][number];

/** The outcome for one topic; no records when it is an error. */
export interface GrowthPlan {
  readonly result: Result;
  readonly records: readonly MetadataRecord[];
}

interface Problem {
  readonly errorCode: Exclude<ErrorCode, 0>;
  readonly errorMessage: string | null;
}

/**
 * Plans each topic of the request. A topic never shrinks: a count that is not larger than what there is, is refused
 * with INVALID_PARTITIONS and both numbers.
 */
export function planGrowths(
  image: MetadataImage,
  growths: readonly TopicGrowth[],
  random: RandomBelow,
): GrowthPlan[] {
  const names = new Map<string, number>();
  for (const { name } of growths) names.set(name, (names.get(name) ?? 0) + 1);
  const plans: GrowthPlan[] = [];
  let left = partitionsPerRequestMax;
  for (const [name, times] of names) {
    if (times > 1) {
      plans.push(
        refuse(name, {
          errorCode: ErrorCode.INVALID_REQUEST,
          errorMessage: 'Duplicate topic name.',
        }),
      );
      continue;
    }
    const growth = growths.find((one) => one.name === name)!;
    const plan = planGrowth(image, growth, left, random);
    left -= plan.records.length;
    plans.push(plan);
  }
  return plans;
}

function planGrowth(
  image: MetadataImage,
  growth: TopicGrowth,
  partitionsMax: number,
  random: RandomBelow,
): GrowthPlan {
  const { name, count } = growth;
  const topic = image.topic(name);
  if (topic === undefined)
    return refuse(name, { errorCode: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, errorMessage: null });
  const size = topic.partitions.length;
  if (count === size) return refuse(name, noIncrease(`Topic already has ${size} partition(s).`));
  if (count < size)
    return refuse(
      name,
      noIncrease(
        `The topic ${name} currently has ${size} partition(s); ${count} would not be an increase.`,
      ),
    );
  if (count - size > partitionsMax)
    return refuse(name, {
      errorCode: ErrorCode.POLICY_VIOLATION,
      errorMessage: `One request may create ${partitionsPerRequestMax} partitions. Ask for fewer, several times.`,
    });
  const replicas = replicasOf(image, topic, growth, random);
  if ('errorCode' in replicas) return refuse(name, replicas);
  return {
    result: { name, errorCode: ErrorCode.NONE, errorMessage: null },
    records: replicas.map((brokerIds, index) =>
      newPartition(image, topic.id, size + index, brokerIds),
    ),
  };
}

function replicasOf(
  image: MetadataImage,
  { partitions }: TopicImage,
  { count, assignments }: TopicGrowth,
  random: RandomBelow,
): readonly (readonly number[])[] | Problem {
  const added = count - partitions.length;
  const replicationFactor = partitions[0]!.replicas.length;
  if (assignments === null) {
    const placement = placeOnBrokers(image, added, replicationFactor, random);
    if (placement.problem === null) return placement.replicas;
    return {
      errorCode: ErrorCode.INVALID_REPLICATION_FACTOR,
      errorMessage: `Unable to replicate the partition ${replicationFactor} time(s): ${placement.problem}`,
    };
  }
  if (assignments.length !== added)
    return {
      errorCode: ErrorCode.INVALID_REPLICA_ASSIGNMENT,
      errorMessage: `Attempted to add ${added} additional partition(s), but only ${assignments.length} assignment(s) were specified.`,
    };
  for (const [index, brokerIds] of assignments.entries()) {
    const id = partitions.length + index;
    const problem = assignmentProblem(image, brokerIds, id, replicationFactor);
    if (problem !== null)
      return { errorCode: ErrorCode.INVALID_REPLICA_ASSIGNMENT, errorMessage: problem };
  }
  return assignments;
}

function noIncrease(errorMessage: string): Problem {
  return { errorCode: ErrorCode.INVALID_PARTITIONS, errorMessage };
}

function refuse(name: string, problem: Problem): GrowthPlan {
  return { result: { name, ...problem }, records: [] };
}
