/**
 * DescribeCluster (key 60, KIP-700).
 *
 * v1 endpoint type: brokers or controllers (KIP-919) · v2 fenced brokers on request (KIP-1073).
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { brokersOf, type Caller, clusterOperations, operationsNotAsked } from '../cluster_view.ts';
import type {
  DescribeClusterRequest,
  DescribeClusterResponseInput,
} from '../protocol/messages.gen.ts';
import { type Handler, rpc } from '../server/registry.ts';
import type { ShardContext } from '../shard_context.ts';

/** Kafka's `EndpointType`. */
const EndpointType = { broker: 1, controller: 2 } as const;

export function describeClusterHandler(shard: ShardContext): Handler {
  return rpc('DescribeCluster', 0, 2, (request, ctx) => answerDescribeCluster(shard, request, ctx));
}

/** The answer itself. All listeners are brokers' ones: asked for controllers they say that this is the wrong door. */
export function answerDescribeCluster(
  shard: ShardContext,
  request: DescribeClusterRequest,
  caller: Caller,
): DescribeClusterResponseInput {
  const { image } = shard;
  if (request.endpointType !== EndpointType.broker) return wrongEndpoint(request.endpointType);
  const includeFenced = request.includeFencedBrokers;
  const brokers = brokersOf(image, caller.connection.listener, includeFenced);
  return {
    throttleTimeMs: 0,
    errorCode: ErrorCode.NONE,
    endpointType: EndpointType.broker,
    clusterId: shard.clusterId,
    controllerId: image.controllerId,
    brokers: brokers.map(({ broker, host, port }) => ({
      brokerId: broker.id,
      host,
      port,
      rack: broker.rack,
      isFenced: broker.fenced,
    })),
    clusterAuthorizedOperations: request.includeClusterAuthorizedOperations
      ? clusterOperations
      : operationsNotAsked,
  };
}

function wrongEndpoint(endpointType: number): DescribeClusterResponseInput {
  const exists = endpointType === EndpointType.controller;
  return {
    throttleTimeMs: 0,
    errorCode: exists ? ErrorCode.MISMATCHED_ENDPOINT_TYPE : ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
    errorMessage: exists
      ? 'The request was sent to an endpoint of type BROKER, but asks for endpoint type CONTROLLER.'
      : `Endpoint type ${endpointType} is not known: 1 is BROKER, 2 is CONTROLLER.`,
    endpointType: EndpointType.broker,
    clusterId: '',
    brokers: [],
  };
}
