/**
 * ListOffsets: offsets by timestamp, or the log's ends.
 *
 *   v1   one offset a timestamp           v5   OFFSET_NOT_AVAILABLE (KIP-207)   v8   -4: earliest local (KIP-405)
 *   v2   isolation level                  v6   flexible                         v9   -5: latest tiered (KIP-1005)
 *   v3   throttling after the answer      v7   -3: max timestamp (KIP-734)      v10  timeout, v11 -6: earliest
 *   v4   leader epochs (KIP-320)                                                     pending upload (KIP-1023)
 *
 * Thread: the connection's shard; partitions of other shards are asked through the fabric.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { lookUpWarm } from '../cold_looks.ts';
import {
  findOffset,
  followersIsolation,
  type OffsetAnswer,
  SpecialTimestamp,
} from '../partition_offsets.ts';
import type {
  ListOffsetsRequestListOffsetsPartition,
  ListOffsetsRequestListOffsetsTopic,
  ListOffsetsResponseListOffsetsPartitionResponseInput,
  ListOffsetsResponseListOffsetsTopicResponseInput,
} from '../protocol/messages.gen.ts';
import { isHere } from '../routes.ts';
import { type Handler, rpc } from '../server/registry.ts';
import type { ShardServices } from '../shard_services.ts';
import { mapAll } from './map_all.ts';

/** The version that brought each of them; below it, and for other negative timestamps, UNSUPPORTED_VERSION as in Kafka. */
const specialSince: ReadonlyMap<bigint, number> = new Map([
  [SpecialTimestamp.latest, 0],
  [SpecialTimestamp.earliest, 0],
  [SpecialTimestamp.maxTimestamp, 7],
  [SpecialTimestamp.earliestLocal, 8],
  [SpecialTimestamp.latestTiered, 9],
  [SpecialTimestamp.earliestPendingUpload, 11],
]);

const leaderEpochsSince = 4;
const offsetNotAvailableSince = 5;

type Answer = ListOffsetsResponseListOffsetsPartitionResponseInput;

export function listOffsetsHandler(services: ShardServices): Handler {
  return rpc('ListOffsets', 1, 11, (request, { apiVersion }) => {
    const { topics, replicaId } = request;
    const isolationLevel = replicaId >= 0 ? followersIsolation : request.isolationLevel;
    const answered = mapAll(topics, (topic) =>
      answerTopic(services, topic, isolationLevel, apiVersion),
    );
    return answered instanceof Promise
      ? answered.then((all) => ({ topics: all }))
      : { topics: answered };
  });
}

function answerTopic(
  services: ShardServices,
  { name, partitions }: ListOffsetsRequestListOffsetsTopic,
  isolationLevel: number,
  version: number,
):
  | ListOffsetsResponseListOffsetsTopicResponseInput
  | Promise<ListOffsetsResponseListOffsetsTopicResponseInput> {
  const answered = mapAll(partitions, (asked) =>
    answer(services, name, asked, isolationLevel, version),
  );
  return answered instanceof Promise
    ? answered.then((all) => ({ name, partitions: all }))
    : { name, partitions: answered };
}

function answer(
  services: ShardServices,
  topic: string,
  asked: ListOffsetsRequestListOffsetsPartition,
  isolationLevel: number,
  version: number,
): Answer | Promise<Answer> {
  const { partitionIndex, timestamp, currentLeaderEpoch } = asked;
  const place = services.routes.byName(topic, partitionIndex);
  if (typeof place === 'number') return refusal(partitionIndex, place);
  if (timestamp < 0n && version < (specialSince.get(timestamp) ?? Number.POSITIVE_INFINITY))
    return refusal(partitionIndex, ErrorCode.UNSUPPORTED_VERSION);
  if (isHere(place)) {
    const lookUp = (mayWait: boolean): OffsetAnswer =>
      findOffset(place, currentLeaderEpoch, timestamp, isolationLevel, services.logger, mayWait);
    const found = lookUpWarm(services.readAhead, services, lookUp);
    return found instanceof Promise
      ? found.then((later) => say(partitionIndex, later, version))
      : say(partitionIndex, found, version);
  }
  return services.remote
    .findOffset(place, currentLeaderEpoch, timestamp, isolationLevel)
    .then((found) => say(partitionIndex, found, version));
}

function say(partitionIndex: number, found: OffsetAnswer, version: number): Answer {
  const { offset, timestamp } = found;
  const isUnknownCode =
    found.errorCode === ErrorCode.OFFSET_NOT_AVAILABLE && version < offsetNotAvailableSince;
  const errorCode = isUnknownCode ? ErrorCode.LEADER_NOT_AVAILABLE : found.errorCode;
  const leaderEpoch = version >= leaderEpochsSince ? found.leaderEpoch : -1;
  return { partitionIndex, errorCode, timestamp, offset, leaderEpoch };
}

function refusal(partitionIndex: number, errorCode: ErrorCode): Answer {
  return { partitionIndex, errorCode, timestamp: -1n, offset: -1n, leaderEpoch: -1 };
}
