/**
 * Fetch between brokers on the wire: version 18, whose fields a follower needs all (topic ids, replica state, diverging
 * epochs). Brokers of one cluster speak it whatever else they know.
 *
 * Thread: any. Records of a response stay where they lie.
 */
import type { ErrorCode } from '../../engine/error_code.gen.ts';
import type {
  AnsweredPartition,
  ReplicaFetchRequest,
  ReplicaFetchResponse,
} from '../../replication/partition/fetch_exchange.ts';
import { ApiKey } from '../protocol/api_key.gen.ts';
import { decodeResponse, encodeRequestFrame } from '../protocol/frame.ts';
import type {
  FetchRequestFetchTopicInput,
  FetchRequestForgottenTopicInput,
  FetchResponsePartitionData,
} from '../protocol/messages.gen.ts';
import type { Reader } from '../protocol/reader.ts';

const fetchVersion = 18;

/** Who fetches. */
export interface ReplicaIdentity {
  readonly brokerId: number;
  /** Of its registration (KIP-903); -1: not known. */
  readonly brokerEpoch: number;
}

/** A whole frame. */
export function encodeFetch(
  request: ReplicaFetchRequest,
  replica: ReplicaIdentity,
  clusterId: string,
  correlationId: number,
): Uint8Array {
  const { brokerId, brokerEpoch } = replica;
  const header = {
    apiKey: ApiKey.Fetch,
    apiVersion: fetchVersion,
    correlationId,
    clientId: `broker-${brokerId}-fetcher-0`,
  };
  const { maxWaitMs, minBytes, maxBytes, sessionId, sessionEpoch } = request;
  return encodeRequestFrame<'Fetch'>(header, 'FetchRequest', {
    clusterId,
    replicaState: { replicaId: brokerId, replicaEpoch: brokerEpoch },
    maxWaitMs,
    minBytes,
    maxBytes,
    sessionId,
    sessionEpoch,
    topics: topicsOf(request),
    forgottenTopicsData: forgottenOf(request),
  }).bytes;
}

/** Reads a response, `reader` being at its header. Throws a ProtocolError when it is malformed. */
export function decodeFetch(reader: Reader): {
  correlationId: number;
  response: ReplicaFetchResponse;
} {
  const { correlationId, value } = decodeResponse<'Fetch'>(
    reader,
    ApiKey.Fetch,
    fetchVersion,
    'FetchResponse',
  );
  const partitions: AnsweredPartition[] = [];
  for (const { topicId, partitions: answered } of value.responses)
    for (const one of answered) partitions.push(answerOf(topicId, one));
  const errorCode = value.errorCode as ErrorCode;
  return { correlationId, response: { errorCode, sessionId: value.sessionId, partitions } };
}

function answerOf(topicId: string, one: FetchResponsePartitionData): AnsweredPartition {
  const { epoch, endOffset } = one.divergingEpoch;
  const isDiverging = epoch >= 0 || endOffset >= 0n;
  return {
    topicId,
    partition: one.partitionIndex,
    errorCode: one.errorCode as ErrorCode,
    highWatermark: Number(one.highWatermark),
    logStartOffset: Number(one.logStartOffset),
    diverging: isDiverging ? { epoch, endOffset: Number(endOffset) } : null,
    records: one.records,
  };
}

function topicsOf({ partitions }: ReplicaFetchRequest): FetchRequestFetchTopicInput[] {
  const topics = new Map<string, FetchRequestFetchTopicInput['partitions'][number][]>();
  for (const one of partitions) {
    const { partition, currentLeaderEpoch, fetchOffset, lastFetchedEpoch, logStartOffset } = one;
    listOf(topics, one.topicId).push({
      partition,
      currentLeaderEpoch,
      fetchOffset,
      lastFetchedEpoch,
      logStartOffset,
      partitionMaxBytes: one.maxBytes,
    });
  }
  return [...topics].map(([topicId, asked]) => ({ topicId, partitions: asked }));
}

function forgottenOf({ forgotten }: ReplicaFetchRequest): FetchRequestForgottenTopicInput[] {
  const topics = new Map<string, number[]>();
  for (const { topicId, partition } of forgotten) listOf(topics, topicId).push(partition);
  return [...topics].map(([topicId, partitions]) => ({ topicId, partitions }));
}

function listOf<T>(topics: Map<string, T[]>, topicId: string): T[] {
  let list = topics.get(topicId);
  if (list === undefined) {
    list = [];
    topics.set(topicId, list);
  }
  return list;
}
