/**
 * What the replication thread says to main, beside the quorum's messages on the same port (`quorum_messages.ts`). Main
 * tells it what it tells the shards (`ToShard`): to start, and where partitions are.
 */
import type { FromShard } from '../shard_messages.ts';

export type FromReplication =
  | Extract<FromShard, { readonly type: 'shard.drained' | 'shard.failed' }>
  /** Nobody listens at the broker's address: its process is gone. */
  | { readonly type: 'replication.refused'; readonly brokerId: number };
