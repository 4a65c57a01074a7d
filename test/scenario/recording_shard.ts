/** Entry of a shard's thread whose disk writes down what it does; see `power_cut.test.ts`. */
import { threadId } from 'node:worker_threads';
import { NodeDisk, nodeClock, nodeRandom } from '../../engine/node_ports.ts';
import { NodePageCache } from '../../engine/page_cache.ts';
import { runShard } from '../../net/run_shard.ts';
import { findShardJournal } from '../harness/shard_journal.ts';
import { RecordingDisk } from '../sim/recording_disk.ts';

const { path, counter } = findShardJournal();
const name = `shard-${threadId}`;
const pageCache = new NodePageCache();
const disk = new RecordingDisk(new NodeDisk(pageCache), name, `${path}-${threadId}`, counter);
runShard({ disk, pageCache, clock: nodeClock, random: nodeRandom });
