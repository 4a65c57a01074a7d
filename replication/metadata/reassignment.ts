/**
 * Moving partitions to other brokers (KIP-455). A reassignment goes on by itself: the new replicas are added and fetch, the
 * leader takes them into the ISR, and with the last of them the change of the ISR takes the old ones out
 * (`partition_change.ts`).
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type {
  AlterPartitionReassignmentsRequest,
  AlterPartitionReassignmentsResult,
  ControllerReply,
  PartitionOutcome,
} from './controller_api.ts';
import { done } from './controller_reply.ts';
import type { MetadataImage, PartitionImage } from './image.ts';
import type { Leadership } from './leadership.ts';
import { replicasProblem } from './new_partitions.ts';
import type { WantedPartition } from './partition_change.ts';
import type { PartitionControl } from './partition_control.ts';

interface Problem {
  readonly errorCode: Exclude<ErrorCode, 0>;
  readonly errorMessage: string;
}

type Change = Omit<WantedPartition, 'election'>;

export function alterReassignments(
  state: Leadership,
  partitions: PartitionControl,
  request: AlterPartitionReassignmentsRequest,
): ControllerReply<AlterPartitionReassignmentsResult> {
  return done({
    topics: request.topics.map(({ name, partitions: asked }) => ({
      name,
      partitions: asked.map(({ partitionIndex, replicas }) =>
        alterOne(state, partitions, request, name, partitionIndex, replicas),
      ),
    })),
  });
}

function alterOne(
  { image, index }: Leadership,
  partitions: PartitionControl,
  { allowReplicationFactorChange }: AlterPartitionReassignmentsRequest,
  name: string,
  partitionIndex: number,
  replicas: readonly number[] | null,
): PartitionOutcome {
  const topic = image.topic(name);
  const reference = topic && index.reference(topic, partitionIndex);
  if (reference === undefined)
    return outcome(partitionIndex, {
      errorCode: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
      errorMessage:
        topic === undefined
          ? `Unable to find a topic named ${name}.`
          : `Unable to find partition ${name}:${partitionIndex}.`,
    });
  const current = partitions.current(reference);
  const change =
    replicas === null
      ? cancelled(current, partitions.allowsUnclean(name), `${name}:${partitionIndex}`)
      : reassigned(image, current, replicas, allowReplicationFactorChange);
  if ('errorCode' in change) return outcome(partitionIndex, change);
  partitions.change(reference, { ...change, election: partitions.electionOf(name) });
  return outcome(partitionIndex, { errorCode: ErrorCode.NONE, errorMessage: null });
}

function reassigned(
  image: MetadataImage,
  { replicas, addingReplicas, isr, eligibleLeaderReplicas }: PartitionImage,
  target: readonly number[],
  allowReplicationFactorChange: boolean,
): Change | Problem {
  const problem = replicasProblem(image, target);
  if (problem !== null)
    return { errorCode: ErrorCode.INVALID_REPLICA_ASSIGNMENT, errorMessage: problem };
  const original = replicas.filter((id) => !addingReplicas.includes(id));
  if (!allowReplicationFactorChange && original.length !== target.length)
    return {
      errorCode: ErrorCode.INVALID_REPLICATION_FACTOR,
      errorMessage: `The replication factor is changed from ${original.length} to ${target.length}, which the request does not allow.`,
    };
  // What a reassignment before this one was adding goes at once, unless committed records may rest on it.
  const needed = [...isr, ...eligibleLeaderReplicas];
  const leaving = [...original, ...addingReplicas.filter((id) => needed.includes(id))];
  const removing = leaving.filter((id) => !target.includes(id)).sort(ascending);
  return {
    replicas: [...target, ...removing],
    removingReplicas: removing,
    addingReplicas: target.filter((id) => !original.includes(id)).sort(ascending),
  };
}

/** Back to the replicas of before. */
function cancelled(
  { replicas, addingReplicas, removingReplicas, isr }: PartitionImage,
  allowsUnclean: boolean,
  name: string,
): Change | Problem {
  if (addingReplicas.length === 0 && removingReplicas.length === 0)
    return {
      errorCode: ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
      errorMessage: 'No partition reassignment is in progress.',
    };
  const original = replicas.filter((id) => !addingReplicas.includes(id));
  const inSync = isr.filter((id) => original.includes(id));
  if (inSync.length === 0 && !allowsUnclean)
    return {
      errorCode: ErrorCode.INVALID_REPLICA_ASSIGNMENT,
      errorMessage: `Unable to revert partition assignment for ${name} because it would require an unclean leader election.`,
    };
  return { replicas: original, isr: inSync, removingReplicas: [], addingReplicas: [] };
}

function ascending(a: number, b: number): number {
  return a - b;
}

function outcome(
  partitionIndex: number,
  result: { readonly errorCode: ErrorCode; readonly errorMessage: string | null },
): PartitionOutcome {
  return { partitionIndex, ...result };
}
