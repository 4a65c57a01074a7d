/** What the handlers of the data path see of the shard that they run on. */
import type { Clock } from '../engine/ports.ts';
import type { PartitionLeader } from '../replication/partition/leader.ts';
import type { BrokerConfig } from './config/broker_config.ts';
import type { PartitionTable } from './partition_table.ts';
import type { ProducerIds } from './producer_ids.ts';
import type { FetchSessions } from './server/fetch_sessions.ts';
import type { Purgatory } from './server/purgatory.ts';
import type { ShardContext } from './shard_context.ts';

export interface ShardServices extends ShardContext {
  readonly config: BrokerConfig;
  readonly clock: Clock;
  readonly partitions: PartitionTable;
  readonly fetchSessions: FetchSessions;
  /** Fetches that wait, under the partitions that they read. */
  readonly purgatory: Purgatory<PartitionLeader>;
  /** Produce requests that wait for their acknowledgements: nothing wakes them but these, or their deadline. */
  readonly produceTimeouts: Purgatory<never>;
  readonly producerIds: ProducerIds;
}
