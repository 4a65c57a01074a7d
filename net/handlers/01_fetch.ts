/**
 * Fetch: record batches from given offsets, waiting until there are enough.
 *
 *   v4   isolation level, message format 2 (KIP-98)          v12  flexible, divergence check (KIP-595)
 *   v5   log start offset                                    v13  topic ids (KIP-516)
 *   v7   sessions (KIP-227)                                  v15  replica state (KIP-903)
 *   v9   current leader epoch (KIP-320)                      v16  endpoints of new leaders (KIP-951)
 *   v10  zstd (KIP-110)                                      v17  directory ids (KIP-853)
 *   v11  rack, preferred read replica (KIP-392)              v18  followers' high watermark (KIP-1166)
 *
 * Thread: the connection's shard. Records are never read here: the answer holds ranges of segment files,
 * pinned from the look that found them until they are sent. Only what is below the high watermark goes out.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { ApiKey } from '../protocol/api_key.gen.ts';
import { codecFor } from '../protocol/codec.ts';
import type { FetchRequest } from '../protocol/messages.gen.ts';
import {
  type FetchPartition,
  type FetchSessionRequest,
  partitionKey,
} from '../server/fetch_sessions.ts';
import type { Handler } from '../server/registry.ts';
import type { ShardServices } from '../shard_services.ts';
import { topicIdsSince } from './fetch_answer.ts';
import { FetchRun } from './fetch_run.ts';

export function fetchHandler(services: ShardServices): Handler {
  return {
    apiKey: ApiKey.Fetch,
    minVersion: 4,
    maxVersion: 18,
    handle: (ctx) => {
      const request = codecFor('FetchRequest', ctx.apiVersion).decode(ctx.reader);
      const resolved = services.fetchSessions.resolve(
        sessionRequest(request, ctx.apiVersion >= topicIdsSince),
        services.clock.monotonicMs(),
      );
      if (resolved.error !== ErrorCode.NONE) {
        ctx.respond<'Fetch'>('FetchResponse', { errorCode: resolved.error, responses: [] });
        return;
      }
      new FetchRun(services, ctx, request, resolved).start();
    },
  };
}

function sessionRequest(request: FetchRequest, usesTopicIds: boolean): FetchSessionRequest {
  const partitions: FetchPartition[] = [];
  for (const { topic, topicId, partitions: asked } of request.topics)
    for (const one of asked)
      partitions.push({
        topic,
        topicId,
        partition: one.partition,
        fetchOffset: Number(one.fetchOffset),
        maxBytes: one.partitionMaxBytes,
        currentLeaderEpoch: one.currentLeaderEpoch,
        lastFetchedEpoch: one.lastFetchedEpoch,
        toldHighWatermark: -1,
        toldLogStartOffset: -1,
        restsAt: null,
      });
  const forgotten = request.forgottenTopicsData.flatMap(({ topic, topicId, partitions: indexes }) =>
    indexes.map((index) => partitionKey(topic, topicId, index)),
  );
  const { sessionId, sessionEpoch } = request;
  const isFollower = request.replicaId >= 0 || request.replicaState.replicaId >= 0;
  return { sessionId, sessionEpoch, usesTopicIds, isFollower, partitions, forgotten };
}
