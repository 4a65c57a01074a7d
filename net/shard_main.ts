/** Entry of a shard's worker thread. */
import { NodeDisk, nodeClock, nodeRandom } from '../engine/node_ports.ts';
import { runShard } from './run_shard.ts';

runShard({ disk: new NodeDisk(), clock: nodeClock, random: nodeRandom });
