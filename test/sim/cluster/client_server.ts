/** Serves the clients of a simulated broker: what the handlers of Produce, Fetch and Metadata do, on the same cores. */
import { newBatchInfo } from '../../../engine/batch/rules.ts';
import { validateProduceBatch } from '../../../engine/batch/validate.ts';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { newAppendResult } from '../../../engine/log/append_result.ts';
import { offsetsTopicName } from '../../../net/groups/offsets_topic.ts';
import { lookAt } from '../../../net/partition_look.ts';
import type { ShardPartitions } from '../../../net/shard_partitions.ts';
import type { MetadataImage } from '../../../replication/metadata/image.ts';
import type { AppendWaiter, PartitionLeader } from '../../../replication/partition/leader.ts';
import type { ClientRequest, MetadataAnswer, ProduceAnswer, ReadAnswer } from './client_api.ts';
import type { NodePartitionsOptions } from './node_partitions.ts';
import { sliceBytes } from './replica_look.ts';
import { topicName } from './topic_maker.ts';

const noBytes = new Uint8Array(0);

type Produce = ClientRequest & { readonly type: 'produce' };
type Read = ClientRequest & { readonly type: 'read' };

export class ClientServer {
  readonly #options: Pick<NodePartitionsOptions, 'world' | 'node' | 'clock' | 'disk'>;
  readonly #shard: ShardPartitions;
  readonly #image: MetadataImage;
  readonly #info = newBatchInfo();
  readonly #result = newAppendResult();

  constructor(
    options: Pick<NodePartitionsOptions, 'world' | 'node' | 'clock' | 'disk'>,
    shard: ShardPartitions,
    image: MetadataImage,
  ) {
    this.#options = options;
    this.#shard = shard;
    this.#image = image;
  }

  serve(request: ClientRequest, answer: (answer: unknown) => void): void {
    if (request.type === 'metadata') answer(this.#metadata());
    else if (request.type === 'produce') this.#produce(request, answer);
    else if (request.type === 'read') answer(this.#read(request));
  }

  #metadata(): MetadataAnswer {
    const partitions = this.#image.topic(topicName)?.partitions ?? [];
    const groups = this.#image.topic(offsetsTopicName)?.partitions[0];
    const { leader = -1, leaderEpoch = -1 } = groups ?? {};
    return {
      coordinator: { leader, leaderEpoch },
      partitions: partitions.map(({ leader, leaderEpoch }) => ({ leader, leaderEpoch })),
    };
  }

  #produce({ partition, acks, batch }: Produce, answer: (answer: ProduceAnswer) => void): void {
    const leader = this.#shard.table.byName(topicName, partition);
    if (leader === undefined) {
      answer(refused(ErrorCode.NOT_LEADER_OR_FOLLOWER));
      return;
    }
    const error = this.#append(leader, acks, batch, answer);
    if (error !== ErrorCode.NONE) answer(refused(error));
  }

  #append(
    leader: PartitionLeader,
    acks: -1 | 0 | 1,
    batch: Uint8Array,
    answer: (answer: ProduceAnswer) => void,
  ): ErrorCode {
    const { clock, world, node } = this.#options;
    const nowMs = clock.wallMs();
    leader.batchRules.nowMs = nowMs;
    const { length } = batch;
    const bad = validateProduceBatch(batch, 0, length, leader.batchRules, this.#info);
    if (bad !== ErrorCode.NONE) return bad;
    const result = this.#result;
    const outcome = { baseOffset: -1, isDuplicate: false };
    const tell = (errorCode: ErrorCode): void => {
      const isGood = errorCode === ErrorCode.NONE;
      answer(isGood ? { errorCode, ...outcome } : refused(errorCode));
    };
    const early: ErrorCode[] = [];
    const append: { isTaken: boolean } = { isTaken: false };
    const done = (errorCode: ErrorCode): void => {
      // A duplicate of what is committed is answered within the append.
      if (!append.isTaken) early.push(errorCode);
      else {
        if (acks === -1) world.moment('acknowledged', node.id, -1);
        tell(errorCode);
      }
    };
    const waiter: AppendWaiter = {
      endOffset: 0,
      onWritten: (errorCode) => {
        if (acks === 1) done(errorCode);
      },
      onCommitted: done,
    };
    const error = leader.append(batch, 0, length, this.#info, acks === -1, nowMs, waiter, result);
    if (error !== ErrorCode.NONE) return error;
    outcome.baseOffset = result.baseOffset;
    outcome.isDuplicate = result.duplicate;
    append.isTaken = true;
    world.moment('appended', node.id, -1);
    if (acks === 0) tell(ErrorCode.NONE);
    else if (early[0] !== undefined) tell(early[0]);
    return ErrorCode.NONE;
  }

  #read({ partition, offset, leaderEpoch, maxBytes }: Read): ReadAnswer {
    const leader = this.#shard.table.byName(topicName, partition);
    if (leader === undefined) return unread(ErrorCode.NOT_LEADER_OR_FOLLOWER);
    const asked = {
      fetchOffset: offset,
      maxBytes,
      currentLeaderEpoch: leaderEpoch,
      lastFetchedEpoch: -1,
    };
    const { disk } = this.#options;
    const look = lookAt(leader, asked, maxBytes, true, false, true);
    const { errorCode, highWatermark } = look;
    return { errorCode, bytes: sliceBytes(disk, look), highWatermark };
  }
}

function refused(errorCode: ErrorCode): ProduceAnswer {
  return { errorCode, baseOffset: -1, isDuplicate: false };
}

function unread(errorCode: ErrorCode): ReadAnswer {
  return { errorCode, bytes: noBytes, highWatermark: -1 };
}
