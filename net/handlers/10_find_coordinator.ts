/**
 * FindCoordinator (key 10): which broker coordinates a group.
 *
 * v0 groups only · v1 key type, error message, throttle time · v2 as v1 · v3 flexible · v4 several keys (KIP-699) ·
 * v5 errors of transactions v2 (KIP-890) · v6 share groups as a key type (KIP-932).
 *
 * The topic of the groups' state is created when somebody first asks. Kafka answers COORDINATOR_NOT_AVAILABLE at first;
 * here the answer waits for the creation, as for topics made on first use.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { brokersOf, type Caller } from '../cluster_view.ts';
import { ensureOffsetsTopic, partitionOfGroup } from '../groups/offsets_topic.ts';
import type {
  FindCoordinatorRequest,
  FindCoordinatorResponseCoordinatorInput,
  FindCoordinatorResponseInput,
} from '../protocol/messages.gen.ts';
import { type Handler, rpc } from '../server/registry.ts';
import type { ShardServices } from '../shard_services.ts';

/** Kafka's `CoordinatorType`. */
const keyTypes = { group: 0, transaction: 1, share: 2 } as const;

export function findCoordinatorHandler(services: ShardServices): Handler {
  return rpc('FindCoordinator', 0, 6, async (request, ctx) => {
    const batched = ctx.apiVersion >= 4;
    const keys = batched ? request.coordinatorKeys : [request.key];
    const coordinators = await findAll(services, request, keys, ctx);
    if (batched) return { coordinators };
    const [found] = coordinators;
    return oldResponse(found as FindCoordinatorResponseCoordinatorInput);
  });
}

function oldResponse(found: FindCoordinatorResponseCoordinatorInput): FindCoordinatorResponseInput {
  const { errorCode, errorMessage, nodeId, host, port } = found;
  return { errorCode, errorMessage, nodeId, host, port };
}

async function findAll(
  services: ShardServices,
  request: FindCoordinatorRequest,
  keys: readonly string[],
  caller: Caller,
): Promise<FindCoordinatorResponseCoordinatorInput[]> {
  if (request.keyType !== keyTypes.group) {
    const reason = refusalOf(request.keyType);
    return keys.map((key) => unavailable(key, ErrorCode.INVALID_REQUEST, reason));
  }
  const topic = await ensureOffsetsTopic(services, services.config.groups);
  const brokers = brokersOf(services.image, caller.connection.listener, false);
  return keys.map((key) => {
    const partition = topic?.partitions[partitionOfGroup(key, topic.partitions.length)];
    const leader = brokers.find(({ broker }) => broker.id === partition?.leader);
    if (leader === undefined)
      return unavailable(
        key,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        'The coordinator is not available.',
      );
    const { broker, host, port } = leader;
    return {
      key,
      nodeId: broker.id,
      host,
      port,
      errorCode: ErrorCode.NONE,
      errorMessage: null,
    };
  });
}

function refusalOf(keyType: number): string {
  if (keyType === keyTypes.transaction) return 'Transactions are not supported yet.';
  if (keyType === keyTypes.share) return 'Share groups are not supported.';
  return `There is no coordinator of type ${keyType}.`;
}

function unavailable(
  key: string,
  errorCode: ErrorCode,
  errorMessage: string,
): FindCoordinatorResponseCoordinatorInput {
  return { key, nodeId: -1, host: '', port: -1, errorCode, errorMessage };
}
