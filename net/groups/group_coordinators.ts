/**
 * The group coordinators of a shard: one for each partition of `__consumer_offsets` that is led on it.
 *
 * Thread: the shard's own. Each begins to load its log as soon as the partition is led here, which holds up neither the
 * start nor other requests; until it is done its groups hear COORDINATOR_LOAD_IN_PROGRESS. It resigns when another
 * broker leads.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { TopicDirectory } from '../../engine/groups/coordinator_events.ts';
import type { CoordinatorEnvironment } from '../../engine/groups/coordinator_runtime.ts';
import type {
  Client,
  DescribeGroupReply,
  GroupIdRequest,
  GroupReply,
  GroupRequest,
  ListGroupsReply,
  ListGroupsRequest,
  OffsetFetchReply,
} from '../../engine/groups/group_api.ts';
import { refusal } from '../../engine/groups/refusals.ts';
import type { Clock } from '../../engine/ports.ts';
import type { MetadataChanges } from '../../replication/metadata/changes.ts';
import type { MetadataImage } from '../../replication/metadata/image.ts';
import type { PartitionLeader } from '../../replication/partition/leader.ts';
import type { GroupConfig } from '../config/group_config.ts';
import type { PartitionTable } from '../partition_table.ts';
import { zeroUuid } from '../protocol/interning.ts';
import type { GroupBehind, GroupsBehindCall } from '../retention/loss_warnings.ts';
import type { Purgatory } from '../server/purgatory.ts';
import type { ShardCalls } from '../shard_calls.ts';
import type { ShardLogger } from '../shard_context.ts';
import { CoordinatorLoader } from './coordinator_loader.ts';
import { eachGroup } from './each_group.ts';
import { offsetsTopicName, partitionOfGroup } from './offsets_topic.ts';
import { type CoordinatorMachine, PartitionCoordinator } from './partition_coordinator.ts';

/** A request to the coordinator of a partition, as it crosses threads. Answered once its records are committed. */
export interface GroupRequestCall {
  readonly partition: number;
  readonly client: Client;
  readonly request: GroupRequest;
}

export interface GroupCoordinatorsOptions {
  readonly config: GroupConfig;
  readonly image: MetadataImage;
  readonly partitions: PartitionTable;
  readonly clock: Clock;
  readonly timers: Purgatory<never>;
  readonly logger: ShardLogger;
  readonly newUuid: () => string;
  readonly makeMachine: (environment: CoordinatorEnvironment) => CoordinatorMachine;
  /** Runs the function in a later turn. */
  readonly defer: (run: () => void) => void;
}

/** Who asks when the broker itself does. */
const nobody: Client = { clientId: '', clientHost: '' };

export class GroupCoordinators {
  readonly #options: GroupCoordinatorsOptions;
  readonly #loader: CoordinatorLoader;
  readonly #environment: CoordinatorEnvironment;
  readonly #byPartition = new Map<number, PartitionCoordinator>();
  #isStopped: boolean = false;

  constructor(options: GroupCoordinatorsOptions) {
    this.#options = options;
    const { config, image, timers, logger, defer, newUuid } = options;
    this.#loader = new CoordinatorLoader({
      bufferBytes: config.offsetsLoadBufferBytes,
      defer,
      nowMs: () => timers.nowMs(),
      logger,
    });
    this.#environment = { options: config, topics: directoryOf(image), newUuid };
  }

  /** Answers what other shards ask. */
  serve(calls: ShardCalls): void {
    calls.serve('group.request', ({ partition, client, request }) =>
      this.request(partition, client, request),
    );
    calls.serve('group.list', (request) => this.list(request));
  }

  /** Acts on a metadata delta that has been applied, after the logs that it names have been opened and dropped. */
  apply(changes: MetadataChanges): void {
    for (const { topic, partition } of changes.deletedPartitions)
      if (topic.name === offsetsTopicName) this.#drop(partition.partitionId);
    for (const { topic, partition } of [...changes.createdPartitions, ...changes.changedPartitions])
      if (topic.name === offsetsTopicName) this.#follow(partition.partitionId);
    const changed = new Set(changes.createdPartitions.map(({ topic }) => topic.name));
    const deleted = changes.deletedTopics.map(({ name }) => name);
    if (changed.size === 0 && deleted.length === 0) return;
    for (const coordinator of this.#byPartition.values())
      coordinator.topicsChanged([...changed], deleted);
  }

  /** The partition has more that is committed, and a coordinator may be waiting to load it; or it takes nothing more. */
  onHighWatermark(leader: PartitionLeader): void {
    if (leader.topic !== offsetsTopicName) return;
    this.#loader.wake();
    const coordinator = this.#byPartition.get(leader.partition);
    if (coordinator?.leader === leader && leader.refusal !== ErrorCode.NONE) coordinator.resign();
  }

  /** Never rejects; see `PartitionCoordinator.request`. */
  request(
    partition: number,
    client: Client,
    request: GroupRequest,
  ): GroupReply | Promise<GroupReply> {
    const coordinator = this.#find(partition);
    if (coordinator === undefined) return refusal(request, ErrorCode.NOT_COORDINATOR);
    if (!coordinator.isLoaded) this.#loader.hurry(coordinator);
    return coordinator.request(client, request);
  }

  /** The groups of all partitions of this shard. */
  async list(body: ListGroupsRequest): Promise<ListGroupsReply> {
    const asked = [...this.#byPartition.values()].map((coordinator) =>
      coordinator.request(nobody, { api: 'ListGroups', body }),
    );
    const replies = (await Promise.all(asked)).map((reply) => reply.body as ListGroupsReply);
    return mergeLists(replies);
  }

  /** Groups of this shard that have committed an offset of the partition, below what is asked. */
  async behind({ topic, partition, endOffset }: GroupsBehindCall): Promise<GroupBehind[]> {
    const topics = [{ name: topic, topicId: zeroUuid, partitionIndexes: [partition] }];
    const { groups } = await this.list({ statesFilter: [], typesFilter: [] });
    const found = await eachGroup(groups, async ({ groupId, groupType }) => {
      const fetch = { groupId, memberId: null, memberEpoch: -1, topics };
      const { body } = await this.#ask({ api: 'OffsetFetch', body: fetch });
      const offset = (body as OffsetFetchReply).topics[0]?.partitions[0]?.committedOffset ?? -1n;
      if (offset < 0n || offset >= endOffset) return null;
      const api = groupType === 'consumer' ? 'ConsumerGroupDescribe' : 'DescribeGroups';
      const described = await this.#ask({ api, body: { groupId } });
      const { members } = described.body as DescribeGroupReply;
      return { groupId, committedOffset: Number(offset), members: members.length };
    });
    return found.filter((group) => group !== null);
  }

  /** Asks the coordinator of the one group that the request names, for the broker itself. */
  #ask(
    request: GroupRequest & { readonly body: GroupIdRequest },
  ): GroupReply | Promise<GroupReply> {
    const partitions = this.#options.image.topic(offsetsTopicName)?.partitions.length ?? 1;
    return this.request(partitionOfGroup(request.body.groupId, partitions), nobody, request);
  }

  /** The broker stops: whoever waits is sent to look for another coordinator. */
  stop(): void {
    this.#isStopped = true;
    for (const coordinator of this.#byPartition.values()) coordinator.resign();
  }

  /** The coordinator of a partition of this shard, which may be new. */
  #find(partition: number): PartitionCoordinator | undefined {
    const { config, partitions, clock, timers, logger, makeMachine, defer } = this.#options;
    const leader = partitions.byName(offsetsTopicName, partition);
    const known = this.#byPartition.get(partition);
    if (leader === undefined || known?.leader === leader || this.#isStopped) return known;
    const coordinator = new PartitionCoordinator({
      leader,
      machine: makeMachine(this.#environment),
      clock,
      timers,
      logger,
      compression: config.offsetsTopicCompression,
      commitTimeoutMs: config.offsetsCommitTimeoutMs,
      defer,
    });
    this.#byPartition.set(partition, coordinator);
    this.#loader.add(coordinator);
    return coordinator;
  }

  /** The partition is led here now, or no more, or again after another broker has led it. */
  #follow(partition: number): void {
    const leader = this.#options.partitions.byName(offsetsTopicName, partition);
    if (this.#byPartition.get(partition)?.leader !== leader) this.#drop(partition);
    if (leader !== undefined) this.#find(partition);
  }

  #drop(partition: number): void {
    this.#byPartition.get(partition)?.resign();
    this.#byPartition.delete(partition);
  }
}

/** One answer out of those of several coordinators: all groups, or the reason why some are not known. */
export function mergeLists(replies: readonly ListGroupsReply[]): ListGroupsReply {
  // A coordinator that has resigned has no groups to tell of.
  const failed = replies.find(
    ({ errorCode }) => errorCode !== ErrorCode.NONE && errorCode !== ErrorCode.NOT_COORDINATOR,
  );
  if (failed !== undefined) return { errorCode: failed.errorCode, groups: [] };
  return { errorCode: ErrorCode.NONE, groups: replies.flatMap(({ groups }) => groups) };
}

function directoryOf(image: MetadataImage): TopicDirectory {
  return {
    byName: (name) => {
      const topic = image.topic(name);
      if (topic === undefined) return undefined;
      return { topicId: topic.id, partitionCount: topic.partitions.length };
    },
    nameOf: (topicId) => image.topicById(topicId)?.name,
  };
}
