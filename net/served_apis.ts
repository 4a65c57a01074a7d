/** Which APIs a shard serves: one line for each, by key. ApiVersions tells clients the same. */
import { produceHandler } from './handlers/00_produce.ts';
import { fetchHandler } from './handlers/01_fetch.ts';
import { listOffsetsHandler } from './handlers/02_list_offsets.ts';
import { metadataHandler } from './handlers/03_metadata.ts';
import { offsetCommitHandler } from './handlers/08_offset_commit.ts';
import { offsetFetchHandler } from './handlers/09_offset_fetch.ts';
import { findCoordinatorHandler } from './handlers/10_find_coordinator.ts';
import { joinGroupHandler } from './handlers/11_join_group.ts';
import { heartbeatHandler } from './handlers/12_heartbeat.ts';
import { leaveGroupHandler } from './handlers/13_leave_group.ts';
import { syncGroupHandler } from './handlers/14_sync_group.ts';
import { describeGroupsHandler } from './handlers/15_describe_groups.ts';
import { listGroupsHandler } from './handlers/16_list_groups.ts';
import { apiVersionsHandler } from './handlers/18_api_versions.ts';
import { createTopicsHandler } from './handlers/19_create_topics.ts';
import { deleteTopicsHandler } from './handlers/20_delete_topics.ts';
import { initProducerIdHandler } from './handlers/22_init_producer_id.ts';
import { offsetForLeaderEpochHandler } from './handlers/23_offset_for_leader_epoch.ts';
import { describeConfigsHandler } from './handlers/32_describe_configs.ts';
import { deleteGroupsHandler } from './handlers/42_delete_groups.ts';
import { offsetDeleteHandler } from './handlers/47_offset_delete.ts';
import { describeClusterHandler } from './handlers/60_describe_cluster.ts';
import { consumerGroupHeartbeatHandler } from './handlers/68_consumer_group_heartbeat.ts';
import { consumerGroupDescribeHandler } from './handlers/69_consumer_group_describe.ts';
import { describeTopicPartitionsHandler } from './handlers/75_describe_topic_partitions.ts';
import { Registry } from './server/registry.ts';
import type { ShardServices } from './shard_services.ts';

/** Every API that a shard serves, with its handlers. */
export function makeRegistry(services: ShardServices): Registry {
  const registry = new Registry();
  registry.register(produceHandler(services));
  registry.register(fetchHandler(services));
  registry.register(listOffsetsHandler(services));
  registry.register(metadataHandler(services));
  registry.register(offsetCommitHandler(services));
  registry.register(offsetFetchHandler(services));
  registry.register(findCoordinatorHandler(services));
  registry.register(joinGroupHandler(services));
  registry.register(heartbeatHandler(services));
  registry.register(leaveGroupHandler(services));
  registry.register(syncGroupHandler(services));
  registry.register(describeGroupsHandler(services));
  registry.register(listGroupsHandler(services));
  registry.register(apiVersionsHandler(services, registry));
  registry.register(createTopicsHandler(services));
  registry.register(deleteTopicsHandler(services));
  registry.register(initProducerIdHandler(services));
  registry.register(offsetForLeaderEpochHandler(services));
  registry.register(describeConfigsHandler(services));
  registry.register(deleteGroupsHandler(services));
  registry.register(offsetDeleteHandler(services));
  registry.register(describeClusterHandler(services));
  registry.register(consumerGroupHeartbeatHandler(services));
  registry.register(consumerGroupDescribeHandler(services));
  registry.register(describeTopicPartitionsHandler(services));
  return registry;
}
