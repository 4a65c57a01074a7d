/**
 * DescribeConfigs (key 32): settings of topics, brokers and groups.
 *
 * v1 sources and synonyms (KIP-226) · v2 throttling before the answer · v3 types and documentation (KIP-569) ·
 * v4 flexible (KIP-482). Answers and error texts follow Kafka's ConfigHelper.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { ConfigResourceType } from '../../replication/metadata/records.ts';
import { topicNameProblem } from '../../replication/metadata/topic_name.ts';
import {
  type DescribedConfig,
  describeBroker,
  describeClusterDefaults,
  describeGroup,
  describeTopic,
  type WantedKeys,
} from '../config/describe.ts';
import type { MessageInputs, MessageTypes } from '../protocol/messages.gen.ts';
import { type Handler, rpc } from '../server/registry.ts';
import type { ShardServices } from '../shard_services.ts';

type Request = MessageTypes['DescribeConfigsRequest'];
type Resource = Request['resources'][number];
type Response = MessageInputs['DescribeConfigsResponse'];
type Result = Response['results'][number];

/** What the handler reads of its shard. */
type Services = Pick<ShardServices, 'nodeId' | 'image' | 'config'>;

export function describeConfigsHandler(services: Services): Handler {
  return rpc('DescribeConfigs', 1, 4, (request) => describeConfigs(request, services));
}

/** Answers each resource for itself: an error of one is in its own result. */
export function describeConfigs(request: Request, services: Services): Response {
  const results = request.resources.map((resource): Result => {
    const found = describeResource(resource, services);
    const { resourceType, resourceName } = resource;
    if ('errorCode' in found) return { ...found, resourceType, resourceName, configs: [] };
    return {
      errorCode: ErrorCode.NONE,
      errorMessage: null,
      resourceType,
      resourceName,
      configs: found.map((config) => toWire(config, request)),
    };
  });
  return { throttleTimeMs: 0, results };
}

interface Refusal {
  readonly errorCode: ErrorCode;
  readonly errorMessage: string | null;
}

function describeResource(resource: Resource, services: Services): DescribedConfig[] | Refusal {
  const { nodeId, config } = services;
  const { resourceType, resourceName, configurationKeys } = resource;
  const wanted: WantedKeys =
    configurationKeys === null || configurationKeys.length === 0
      ? null
      : new Set(configurationKeys);
  switch (resourceType) {
    case ConfigResourceType.topic:
      return topic(resourceName, services, wanted);
    case ConfigResourceType.broker:
      if (resourceName === '') return describeClusterDefaults(config, wanted);
      return otherNode(resourceName, nodeId, true) ?? describeBroker(config, wanted);
    case ConfigResourceType.brokerLogger:
      if (resourceName === '') return invalid('Broker id must not be empty');
      return otherNode(resourceName, nodeId, false) ?? [];
    case ConfigResourceType.clientMetrics:
      return resourceName === ''
        ? invalid('Client metrics subscription name must not be empty')
        : [];
    case ConfigResourceType.group:
      if (resourceName === '') return invalid('Group name must not be empty');
      return describeGroup(config, wanted);
    default:
      return invalid(`Unexpected resource type ${resourceType} for resource ${resourceName}`);
  }
}

function topic(
  name: string,
  { image, config }: Services,
  wanted: WantedKeys,
): DescribedConfig[] | Refusal {
  const problem = topicNameProblem(name);
  if (problem !== null) {
    return { errorCode: ErrorCode.INVALID_TOPIC_EXCEPTION, errorMessage: problem };
  }
  if (image.topic(name) === undefined) {
    return { errorCode: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, errorMessage: null };
  }
  return describeTopic(image.topicConfigs(name), config, wanted);
}

function otherNode(name: string, nodeId: number, orEmpty: boolean): Refusal | null {
  if (!/^[+-]?\d+$/.test(name)) {
    return invalid(`Broker id must be an integer, but it is: ${name}`);
  }
  if (Number(name) === nodeId) return null;
  const expected = orEmpty ? `${nodeId} or empty string,` : nodeId;
  return invalid(`Unexpected broker id, expected ${expected} but received ${name}`);
}

function invalid(errorMessage: string): Refusal {
  return { errorCode: ErrorCode.INVALID_REQUEST, errorMessage };
}

function toWire(config: DescribedConfig, request: Request): Result['configs'][number] {
  return {
    name: config.name,
    value: config.value,
    readOnly: config.readOnly,
    configSource: config.source,
    isSensitive: config.sensitive,
    synonyms: request.includeSynonyms ? config.synonyms : [],
    configType: config.type,
    documentation: request.includeDocumentation ? config.documentation : null,
  };
}
