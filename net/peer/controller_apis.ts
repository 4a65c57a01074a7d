/** Which APIs a node serves to members of the quorum and to brokers; ApiVersions tells the same. */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { RaftRequest } from '../../replication/raft/messages.ts';
import { ApiKey } from '../protocol/api_key.gen.ts';
import { codecFor } from '../protocol/codec.ts';
import type { QuorumReply } from '../quorum_api.ts';
import { type Handler, Registry, rpc } from '../server/registry.ts';
import type { ControllerService } from './controller_listener.ts';
import { failure, type QuorumRpc } from './quorum_rpc.ts';
import { quorumRpcs } from './quorum_rpcs.ts';
import type { RaftRpc } from './raft_rpc.ts';
import { raftRpcs } from './raft_rpcs.ts';

/** A connection's peer has said which node it is. */
export type OnHeard = (connectionId: number, nodeId: number) => void;

export function makeControllerRegistry(service: ControllerService, onHeard: OnHeard): Registry {
  const registry = new Registry();
  for (const raftRpc of Object.values(raftRpcs))
    registry.register(raftHandler(raftRpc, service, onHeard));
  for (const quorumRpc of quorumRpcs) registry.register(quorumHandler(quorumRpc, service, onHeard));
  registry.register(versionsHandler(registry));
  return registry;
}

/** One after the other on a connection: a fetch may wait there, and its sender knows. */
function raftHandler(raftRpc: RaftRpc, service: ControllerService, onHeard: OnHeard): Handler {
  const { api, version } = raftRpc;
  return {
    apiKey: ApiKey[api],
    minVersion: version,
    maxVersion: version,
    handle: (ctx) => {
      const request = raftRpc.fromRequest(codecFor(`${api}Request`, version).decode(ctx.reader));
      if (request === null) {
        ctx.fail(`a ${api} request that is not about the metadata log`);
        return;
      }
      const sender = senderOf(request);
      if (sender !== null) onHeard(ctx.connection.id, sender);
      service.raft(request, (reply) =>
        ctx.respond(`${api}Response`, raftRpc.toReply(reply) as never),
      );
    },
  };
}

function senderOf(request: RaftRequest): number | null {
  if (request.type === 'beginQuorumEpoch' || request.type === 'endQuorumEpoch')
    return request.leaderId;
  return request.replicaId >= 0 ? request.replicaId : null;
}

function quorumHandler(
  quorumRpc: QuorumRpc,
  service: ControllerService,
  onHeard: OnHeard,
): Handler {
  const { api, version } = quorumRpc;
  return {
    apiKey: ApiKey[api],
    minVersion: version,
    maxVersion: version,
    handle: (ctx) => {
      const message = codecFor(`${api}Request`, version).decode(ctx.reader);
      const request = quorumRpc.fromRequest(message);
      if (request.type === 'brokerHeartbeat' || request.type === 'registerBroker')
        onHeard(ctx.connection.id, request.brokerId);
      const answer = (reply: QuorumReply): void => {
        ctx.respond(`${api}Response`, quorumRpc.toReply(reply, request) as never);
      };
      const clusterId = quorumRpc.clusterOf?.(message) ?? null;
      if (clusterId === null || clusterId === service.clusterId())
        void service.request(request).then(answer);
      else
        answer(
          failure(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            `This node belongs to cluster ${service.clusterId()}, not to ${clusterId}.`,
          ),
        );
    },
  };
}

/** As on the listeners for clients, without features: who asks here speaks of the quorum. */
function versionsHandler(registry: Registry): Handler {
  return {
    ...rpc('ApiVersions', 0, 5, () => ({
      errorCode: ErrorCode.NONE,
      apiKeys: registry.served(),
    })),
    unsupportedVersion: (ctx) => {
      const own = registry.served().filter(({ apiKey }) => apiKey === ApiKey.ApiVersions);
      const response = { errorCode: ErrorCode.UNSUPPORTED_VERSION, apiKeys: own };
      ctx.respond<'ApiVersions'>('ApiVersionsResponse', response, 0);
    },
  };
}
