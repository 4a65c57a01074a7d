/** Entry of a shard's thread. */
import { NodeDisk, nodeClock, nodeRandom } from '../engine/node_ports.ts';
import { NodePageCache } from '../engine/page_cache.ts';
import { runShard } from './run_shard.ts';

const pageCache = new NodePageCache();
runShard({ disk: new NodeDisk(pageCache), pageCache, clock: nodeClock, random: nodeRandom });
