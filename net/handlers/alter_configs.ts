/**
 * What AlterConfigs and IncrementalAlterConfigs have in common: what can be refused without asking the controller, in the
 * order and the words of Kafka's ConfigAdminManager, and the controller's answer for the rest.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { ConfigOperation } from '../../replication/metadata/config_alteration.ts';
import type { ConfigChange } from '../../replication/metadata/controller_api.ts';
import { ConfigResourceType } from '../../replication/metadata/records.ts';
import { topicNameProblem } from '../../replication/metadata/topic_name.ts';
import type { ShardContext } from '../shard_context.ts';

/** The requests have no time-out of their own. */
const timeoutMs = 30_000;

export interface AskedResource {
  readonly resourceType: number;
  readonly resourceName: string;
  readonly changes: readonly ConfigChange[];
}

export interface AlteredResource {
  readonly resourceType: number;
  readonly resourceName: string;
  readonly errorCode: ErrorCode;
  readonly errorMessage: string | null;
}

/** One answer for each resource asked for, in order; with success every thread of this broker acts on the new values. */
export async function alterConfigs(
  shard: ShardContext,
  asked: readonly AskedResource[],
  replacesAll: boolean,
  validateOnly: boolean,
): Promise<AlteredResource[]> {
  const times = new Map<string, number>();
  for (const one of asked) times.set(keyOf(one), (times.get(keyOf(one)) ?? 0) + 1);
  const refused = asked.map((one): AlteredResource | null =>
    times.get(keyOf(one)) === 1 ? refusalOf(one, shard.nodeId) : invalid(one, repeated),
  );
  const resources = asked
    .filter((_, index) => refused[index] === null)
    .map(({ resourceType, resourceName, changes }) => ({
      resourceType,
      resourceName:
        resourceType === ConfigResourceType.broker ? plainId(resourceName) : resourceName,
      replacesAll,
      changes,
    }));
  if (resources.length === 0) return refused as AlteredResource[];
  const reply = await shard.quorum.alterConfigs({ resources, validateOnly }, timeoutMs);
  let next = 0;
  return asked.map((one, index) => {
    const refusal = refused[index];
    if (refusal != null) return refusal;
    const { resourceType, resourceName } = one;
    const from = reply.errorCode === ErrorCode.NONE ? reply.result.resources[next] : reply;
    next += 1;
    const { errorCode, errorMessage } = from!;
    return { resourceType, resourceName, errorCode, errorMessage };
  });
}

const repeated = 'Each resource must appear at most once.';

function keyOf({ resourceType, resourceName }: AskedResource): string {
  return `${resourceType} ${resourceName}`;
}

/** "+1" and "01" are broker 1 too, and its settings are to be found under one name. */
function plainId(resourceName: string): string {
  return resourceName === '' ? '' : String(Number(resourceName));
}

function invalid(
  { resourceType, resourceName }: AskedResource,
  errorMessage: string,
  errorCode: ErrorCode = ErrorCode.INVALID_REQUEST,
): AlteredResource {
  return { resourceType, resourceName, errorCode, errorMessage };
}

function refusalOf(asked: AskedResource, nodeId: number): AlteredResource | null {
  const { resourceType, resourceName, changes } = asked;
  if (new Set(changes.map(({ name }) => name)).size !== changes.length)
    return invalid(asked, 'Error due to duplicate config keys');
  const unknown = changes.find(({ operation }) => !isOperation(operation));
  if (unknown !== undefined) return invalid(asked, `Unknown operations type ${unknown.operation}`);
  const empty = changes
    .filter(({ operation, value }) => operation !== ConfigOperation.delete && value === null)
    .map(({ name }) => name);
  if (empty.length > 0) return invalid(asked, `Null value not supported for : ${empty.join(', ')}`);
  switch (resourceType) {
    case ConfigResourceType.topic: {
      if (resourceName === '') return invalid(asked, 'Default topic resources are not allowed.');
      const problem = topicNameProblem(resourceName);
      if (problem === null) return null;
      return invalid(asked, problem, ErrorCode.INVALID_TOPIC_EXCEPTION);
    }
    case ConfigResourceType.broker:
      return otherNode(asked, nodeId);
    case ConfigResourceType.brokerLogger:
      return invalid(asked, 'Millrace has no loggers whose level could be changed one by one.');
    case ConfigResourceType.clientMetrics:
      return invalid(asked, 'Client metrics are not supported yet in this version.');
    case ConfigResourceType.group:
      return invalid(
        asked,
        'Settings of single groups are not supported yet in this version; those of the broker count for all groups.',
      );
    default:
      return invalid(asked, `Unknown resource type ${resourceType}`);
  }
}

function isOperation(operation: number): boolean {
  return operation >= ConfigOperation.set && operation <= ConfigOperation.subtract;
}

function otherNode(asked: AskedResource, nodeId: number): AlteredResource | null {
  const { resourceName } = asked;
  if (resourceName === '') return null;
  if (!/^[+-]?\d+$/.test(resourceName))
    return invalid(asked, `Node id must be an integer, but it is: ${resourceName}`);
  if (Number(resourceName) === nodeId) return null;
  return invalid(asked, `Unexpected broker id, expected ${nodeId}, but received ${resourceName}`);
}
