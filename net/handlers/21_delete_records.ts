/**
 * DeleteRecords (KIP-107): moves partitions' log starts up.
 *
 *   v0 first   v1 throttling after the answer   v2 flexible
 *
 * Thread: the connection's shard; each partition's own shard does it, and answers when it is on stable storage.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { isInternalTopic } from '../../replication/metadata/topic_name.ts';
import type { DeleteRecordsRequestDeleteRecordsPartition } from '../protocol/messages.gen.ts';
import { refusal } from '../retention/delete_records.ts';
import { isHere } from '../routes.ts';
import { type Handler, rpc } from '../server/registry.ts';
import type { DeleteRecordsReply } from '../shard_calls.ts';
import type { ShardServices } from '../shard_services.ts';

export function deleteRecordsHandler(services: ShardServices): Handler {
  return rpc('DeleteRecords', 0, 2, async ({ topics, timeoutMs }) => {
    const answered = topics.map(async ({ name, partitions }) => ({
      name,
      partitions: await Promise.all(
        partitions.map(async (asked) => ({
          partitionIndex: asked.partitionIndex,
          ...(await answer(services, name, asked, timeoutMs)),
        })),
      ),
    }));
    return { throttleTimeMs: 0, topics: await Promise.all(answered) };
  });
}

async function answer(
  services: ShardServices,
  topic: string,
  { partitionIndex, offset }: DeleteRecordsRequestDeleteRecordsPartition,
  timeoutMs: number,
): Promise<DeleteRecordsReply> {
  // Kafka's brokers keep what they need themselves.
  if (isInternalTopic(topic)) return refusal(ErrorCode.INVALID_TOPIC_EXCEPTION);
  const { routes, calls, image, produceTimeouts } = services;
  const place = routes.byName(topic, partitionIndex);
  if (typeof place === 'number') return refusal(place);
  const topicId = image.topic(topic)?.id;
  if (topicId === undefined) return refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
  const shard = isHere(place) ? calls.self : place.shard;
  const request = { topicId, partition: partitionIndex, offset: Number(offset) };
  return await within(
    timeoutMs,
    produceTimeouts,
    calls.call(shard, 'partition.deleteRecords', request),
  );
}

/** A disk that stalls is not to hold up the client for longer than it said. */
function within(
  timeoutMs: number,
  timeouts: ShardServices['produceTimeouts'],
  reply: Promise<DeleteRecordsReply>,
): Promise<DeleteRecordsReply> {
  return new Promise((resolve) => {
    const late = {
      tryComplete: () => false,
      expire: () => resolve(refusal(ErrorCode.REQUEST_TIMED_OUT)),
    };
    const parked = timeouts.park(late, [], timeoutMs);
    void reply.then((got) => {
      timeouts.cancel(parked);
      resolve(got);
    });
  });
}
