/** What the handlers of the data path see of the shard that they run on. */
import type { Clock } from '../engine/ports.ts';
import type { ReadAhead } from '../engine/read_ahead.ts';
import type { ReplicationThrottle } from '../replication/partition/replication_throttle.ts';
import type { BrokerConfig } from './config/broker_config.ts';
import type { RemotePartitions } from './fabric/remote_partitions.ts';
import type { GroupRouter } from './groups/group_router.ts';
import type { ProducerIds } from './producer_ids.ts';
import type { FetchWait, Routes } from './routes.ts';
import type { FetchSessions } from './server/fetch_sessions.ts';
import type { Purgatory } from './server/purgatory.ts';
import type { ShardCalls } from './shard_calls.ts';
import type { ShardContext } from './shard_context.ts';
import type { TopicRules } from './topic_rules.ts';

export interface ShardServices extends ShardContext {
  readonly config: BrokerConfig;
  readonly clock: Clock;
  /** Where partitions are: here or on another shard. */
  readonly routes: Routes;
  /** Those on other shards. */
  readonly remote: RemotePartitions;
  /** Questions to other shards outside of the data path. */
  readonly calls: ShardCalls;
  /** Of topics that have partitions on other shards. */
  readonly topicRules: TopicRules;
  /** Of the records that this broker's followers fetch. */
  readonly throttle: ReplicationThrottle;
  /** Brings in what look-ups in the logs would have to wait for. */
  readonly readAhead: ReadAhead;
  readonly fetchSessions: FetchSessions;
  /** Fetches that wait, under the partitions that they read. */
  readonly purgatory: Purgatory<FetchWait>;
  /** Produce requests that wait for their acknowledgements: nothing wakes them but these, or their deadline. */
  readonly produceTimeouts: Purgatory<never>;
  readonly producerIds: ProducerIds;
  /** Coordinators of consumer groups, here and on other shards. */
  readonly groups: GroupRouter;
}
