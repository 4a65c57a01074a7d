/** Which APIs a shard serves: one line for each, by key. ApiVersions tells clients the same. */
import { produceHandler } from './handlers/00_produce.ts';
import { fetchHandler } from './handlers/01_fetch.ts';
import { listOffsetsHandler } from './handlers/02_list_offsets.ts';
import { metadataHandler } from './handlers/03_metadata.ts';
import { apiVersionsHandler } from './handlers/18_api_versions.ts';
import { createTopicsHandler } from './handlers/19_create_topics.ts';
import { deleteTopicsHandler } from './handlers/20_delete_topics.ts';
import { deleteRecordsHandler } from './handlers/21_delete_records.ts';
import { initProducerIdHandler } from './handlers/22_init_producer_id.ts';
import { offsetForLeaderEpochHandler } from './handlers/23_offset_for_leader_epoch.ts';
import { describeConfigsHandler } from './handlers/32_describe_configs.ts';
import { alterConfigsHandler } from './handlers/33_alter_configs.ts';
import { describeLogDirsHandler } from './handlers/35_describe_log_dirs.ts';
import { createPartitionsHandler } from './handlers/37_create_partitions.ts';
import { incrementalAlterConfigsHandler } from './handlers/44_incremental_alter_configs.ts';
import { describeClusterHandler } from './handlers/60_describe_cluster.ts';
import { describeProducersHandler } from './handlers/61_describe_producers.ts';
import { listConfigResourcesHandler } from './handlers/74_list_config_resources.ts';
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
  registry.register(apiVersionsHandler(services, registry));
  registry.register(createTopicsHandler(services));
  registry.register(deleteTopicsHandler(services));
  registry.register(deleteRecordsHandler(services));
  registry.register(initProducerIdHandler(services));
  registry.register(offsetForLeaderEpochHandler(services));
  registry.register(describeConfigsHandler(services));
  registry.register(alterConfigsHandler(services));
  registry.register(describeLogDirsHandler(services));
  registry.register(createPartitionsHandler(services));
  registry.register(incrementalAlterConfigsHandler(services));
  registry.register(describeClusterHandler(services));
  registry.register(describeProducersHandler(services));
  registry.register(listConfigResourcesHandler(services));
  registry.register(describeTopicPartitionsHandler(services));
  return registry;
}
