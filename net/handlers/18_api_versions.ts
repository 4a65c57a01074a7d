/**
 * ApiVersions: which APIs, versions and features this broker has.
 *
 *   v1  throttle time     v3  flexible, client's name, features (KIP-511, KIP-584)
 *   v2  the same          v4  features with minimum version 0 (KIP-584), v5  intended cluster and node (KIP-1242)
 *
 * A version that we do not know is answered in version 0, error 35, with the range of this very API, so that
 * the client can choose one; the connection stays (KIP-511).
 *
 * Thread: the connection's shard.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { ApiKey } from '../protocol/api_key.gen.ts';
import { codecFor } from '../protocol/codec.ts';
import type { ApiVersionsRequest, ApiVersionsResponseInput } from '../protocol/messages.gen.ts';
import type { Handler, Registry } from '../server/registry.ts';
import type { ShardContext } from '../shard_context.ts';

/** Kafka's rule for the names that clients give themselves. */
const softwareName = /^[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?$/;
const softwareNamesSince = 3;
/** Before v4 clients take a feature whose minimum is 0 for malformed. */
const minimumZeroSince = 4;

export function apiVersionsHandler(shard: ShardContext, registry: Registry): Handler {
  return {
    apiKey: ApiKey.ApiVersions,
    minVersion: 0,
    maxVersion: 5,
    handle: (ctx) => {
      const request = codecFor('ApiVersionsRequest', ctx.apiVersion).decode(ctx.reader);
      ctx.respond<'ApiVersions'>(
        'ApiVersionsResponse',
        answer(shard, registry, request, ctx.apiVersion),
      );
    },
    unsupportedVersion: (ctx) => {
      const own = registry.served().filter(({ apiKey }) => apiKey === ApiKey.ApiVersions);
      const response = { errorCode: ErrorCode.UNSUPPORTED_VERSION, apiKeys: own };
      ctx.respond<'ApiVersions'>('ApiVersionsResponse', response, 0);
    },
  };
}

function answer(
  shard: ShardContext,
  registry: Registry,
  request: ApiVersionsRequest,
  version: number,
): ApiVersionsResponseInput {
  const errorCode = refusal(shard, request, version);
  if (errorCode !== ErrorCode.NONE) return { errorCode, apiKeys: [] };
  const { features, featuresEpoch, brokers } = shard.image;
  const supported = brokers.get(shard.nodeId)?.features ?? [];
  return {
    errorCode,
    apiKeys: registry.served(),
    supportedFeatures: supported
      .filter(({ minSupportedVersion }) => minSupportedVersion > 0 || version >= minimumZeroSince)
      .map(({ name, minSupportedVersion, maxSupportedVersion }) => ({
        name,
        minVersion: minSupportedVersion,
        maxVersion: maxSupportedVersion,
      })),
    finalizedFeaturesEpoch: featuresEpoch,
    finalizedFeatures: [...features].map(([name, level]) => ({
      name,
      maxVersionLevel: level,
      minVersionLevel: level,
    })),
  };
}

function refusal(shard: ShardContext, request: ApiVersionsRequest, version: number): ErrorCode {
  const { clientSoftwareName, clientSoftwareVersion, clusterId, nodeId } = request;
  if (version >= softwareNamesSince)
    if (!softwareName.test(clientSoftwareName) || !softwareName.test(clientSoftwareVersion))
      return ErrorCode.INVALID_REQUEST;
  const elsewhere =
    (clusterId !== null && clusterId !== shard.clusterId) ||
    (nodeId !== -1 && nodeId !== shard.nodeId);
  return elsewhere ? ErrorCode.REBOOTSTRAP_REQUIRED : ErrorCode.NONE;
}
