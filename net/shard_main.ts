/** Entry of a shard's worker thread. */
import { nodePorts } from '../engine/node_ports.ts';
import { runShard } from './run_shard.ts';

runShard(nodePorts());
