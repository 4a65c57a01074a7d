/**
 * DescribeProducers (key 61, KIP-664): who has written to a partition as an idempotent or transactional producer.
 *
 * v0 the only one.
 */
import type { ErrorCode } from '../../engine/error_code.gen.ts';
import { producersOf } from '../partition_producers.ts';
import type { MessageInputs, MessageTypes } from '../protocol/messages.gen.ts';
import { isHere } from '../routes.ts';
import { type Handler, rpc } from '../server/registry.ts';
import type { ShardServices } from '../shard_services.ts';

type Request = MessageTypes['DescribeProducersRequest'];
type Response = MessageInputs['DescribeProducersResponse'];
type PartitionAnswer = Response['topics'][number]['partitions'][number];

/** What the handler reads of its shard. */
type Services = Pick<ShardServices, 'calls' | 'routes'>;

export function describeProducersHandler(services: Services): Handler {
  return rpc('DescribeProducers', 0, 0, (request) => answerDescribeProducers(services, request));
}

/** The answer itself; an error of one partition is in its own entry. Never rejects. */
async function answerDescribeProducers(services: Services, { topics }: Request): Promise<Response> {
  const answered = topics.map(async ({ name, partitionIndexes }) => {
    const partitions = partitionIndexes.map((index) => partitionAnswer(services, name, index));
    return { name, partitions: await Promise.all(partitions) };
  });
  return { throttleTimeMs: 0, topics: await Promise.all(answered) };
}

async function partitionAnswer(
  { calls, routes }: Services,
  topic: string,
  partitionIndex: number,
): Promise<PartitionAnswer> {
  const place = routes.byName(topic, partitionIndex);
  if (typeof place === 'number')
    return { partitionIndex, errorCode: place, errorMessage: null, activeProducers: [] };
  const { errorCode, activeProducers } = isHere(place)
    ? producersOf(place)
    : await calls.call(place.shard, 'partition.producers', {
        topicId: place.topicId,
        partition: place.partition,
      });
  return {
    partitionIndex,
    errorCode: errorCode as ErrorCode,
    errorMessage: null,
    activeProducers: [...activeProducers],
  };
}
