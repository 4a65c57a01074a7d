/** A machine of a simulated cluster: its disk and its clocks outlive the broker processes that run on it. */
import { writeFlushed } from '../../../engine/log/log_directory_options.ts';
import { SimDisk } from '../disk.ts';
import type { SeededRandom } from '../seeded_random.ts';
import { dataDir, NodeRun, type NodeWorld } from './node_run.ts';
import type { ReplicaView } from './replica_watch.ts';
import { rottable } from './rot.ts';

const voteFile = `${dataDir}/__cluster_metadata-0/quorum-state`;

export class SimNode {
  readonly id: number;
  readonly disk: SimDisk;
  readonly #world: NodeWorld;
  /** How far the wall clock is from the true time. */
  wallSkewMs = 0;
  /** What its leaders ask of the controller next is so long on its way between the threads of its process. */
  proposalDelayMs = 0;
  #boot = 1;
  #starts = 0;
  #run: NodeRun | null = null;
  /** What was in the vote file before it was damaged, null if it was not. */
  #voteFile: Uint8Array | null = null;
  /** Empty until the node belongs to a cluster; outlives its processes. */
  clusterId = '';
  /** Its log was damaged since the last time that it had a whole copy of everything. */
  isExcused: boolean = false;

  constructor(world: NodeWorld, id: number) {
    this.#world = world;
    this.id = id;
    this.disk = new SimDisk({
      seed: world.swarm.seed * 16 + id,
      ignoresFlushes: world.mutant === 'skipped flush',
    });
    this.disk.nowMs = () => this.wallMs;
  }

  get wallMs(): number {
    return 1_700_000_000_000 + Math.floor(this.#world.timeline.nowMs + this.wallSkewMs);
  }

  get run(): NodeRun | null {
    return this.#run;
  }

  /** A process runs on it, perhaps a stopped one. */
  get isUp(): boolean {
    return this.#run !== null;
  }

  start(): void {
    if (this.#run !== null) return;
    const { network, trace, timeline } = this.#world;
    network.machine(this.id).isPowered = true;
    this.#starts += 1;
    trace.add(`node ${this.id}`, () => 'starts');
    const run = new NodeRun(this.#world, this, this.#boot, this.#starts);
    this.#run = run;
    this.#world.touched(this.id);
    run.start().catch((error: unknown) => {
      if (!run.process.isAlive) return;
      if (this.#voteFile === null) timeline.fail(error);
      else this.#repairVoteFile(error);
    });
  }

  /** It will not vote without knowing how it has voted, which is right; somebody has a copy. */
  #repairVoteFile(error: unknown): void {
    const { trace, timeline, count } = this.#world;
    trace.add(`node ${this.id}`, () => `does not start: ${String(error)}`);
    count('18 start refused');
    this.kill();
    writeFlushed(this.disk, voteFile, this.#voteFile as Uint8Array);
    this.#voteFile = null;
    timeline.after(50, () => this.start());
  }

  /** kill -9: what was written stays in the page cache. */
  kill(): void {
    this.#end('is killed');
    this.disk.kill();
  }

  losePower(): void {
    this.#world.network.machine(this.id).isPowered = false;
    this.#end('loses power');
    this.disk.crash();
    this.#boot += 1;
  }

  pause(): void {
    this.#world.trace.add(`node ${this.id}`, () => 'is stopped');
    this.#run?.process.stop();
  }

  goOn(): void {
    this.#world.trace.add(`node ${this.id}`, () => 'goes on');
    this.#run?.process.goOn();
  }

  /** Epoch in which the node believes to lead the partition, -1: it does not. */
  leadsInEpoch(partition: number): number {
    return this.#run?.leadsInEpoch(partition) ?? -1;
  }

  /** -1: it has no replica of the partition open. */
  highWatermark(partition: number): number {
    return this.#run?.highWatermark(partition) ?? -1;
  }

  *replicas(): Generator<ReplicaView> {
    if (this.#run !== null) yield* this.#run.replicas();
  }

  /** While the node is down. True: there was one. */
  damageVoteFile(random: SeededRandom): boolean {
    const bytes = this.disk.readFile(voteFile);
    if (bytes === null) return false;
    this.#voteFile ??= bytes;
    if (random.chance(0.5)) {
      this.disk.unlink(voteFile);
      this.disk.flushDirectorySync(voteFile.slice(0, voteFile.lastIndexOf('/')));
    } else this.disk.corrupt(voteFile, random.below(bytes.length), random.bytes(8));
    return true;
  }

  /**
   * Flips a byte in a batch of a partition's log that others follow, while the node is down; behind the recovery point, for
   * what lies before it no start reads. True: there was one to flip.
   */
  rot(random: SeededRandom): boolean {
    const places = rottable(this.disk);
    const place = places[random.below(places.length || 1)];
    if (place === undefined) return false;
    const [byte = 0] = this.disk.bytesOf(place.path).subarray(place.position);
    this.disk.corrupt(place.path, place.position, new Uint8Array([byte ^ 0x5a]));
    this.isExcused = true;
    return true;
  }

  #end(how: string): void {
    const run = this.#run;
    if (run === null) return;
    this.#world.trace.add(`node ${this.id}`, () => how);
    this.#run = null;
    run.process.die();
    const { network } = this.#world;
    network.machine(this.id).listener = null;
    network.processDied(run.process);
  }
}
