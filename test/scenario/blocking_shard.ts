/** Entry of a shard's thread that takes everything for cached, and so waits for the device; see `cold_reader.test.ts`. */
import { NodeDisk, nodeClock, nodeRandom } from '../../engine/node_ports.ts';
import { runShard } from '../../net/run_shard.ts';
import { SimPageCache } from '../sim/page_cache.ts';

runShard({
  disk: new NodeDisk(),
  pageCache: new SimPageCache(),
  clock: nodeClock,
  random: nodeRandom,
});
