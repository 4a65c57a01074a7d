/**
 * A thread's part of the fabric: its peers, its doorbell, and the turn in which it looks into all of its rings.
 *
 * Thread: the shard's own, or the replication thread. Memory: this thread's slabs stay its own; peers are told of each
 * before they need it. A lone shard has no peers, and nothing here ever runs.
 */
import { Doorbell } from '../../engine/thread/doorbell.ts';
import type { RequestHandler } from '../../engine/thread/link.ts';
import type { Words } from '../../engine/thread/ring.ts';
import type { FabricMemory } from './fabric_memory.ts';
import { Peer } from './peer.ts';
import { RemoteFollowers } from './remote_followers.ts';
import { RemotePartitions } from './remote_partitions.ts';

export interface FabricOptions {
  readonly memory: FabricMemory;
  /** Does what peers ask. */
  readonly serve: (peer: Peer, words: Words, at: number) => boolean;
  /** A watched partition of another shard has more to read. */
  readonly onMoved: (number: number) => void;
  /** All that had come was looked at: send what was answered. */
  readonly onTurn: () => void;
}

interface Served {
  readonly peer: Peer;
  readonly handle: RequestHandler;
}

export class Fabric {
  /** The other shards' partitions, for this one's handlers. */
  readonly remote: RemotePartitions;
  /** Those of them that this broker follows, for the replication thread. */
  readonly followers: RemoteFollowers;
  readonly #options: FabricOptions;
  readonly #peers: readonly Served[];
  readonly #doorbell: Doorbell;
  #isRetryDue: boolean = false;

  constructor(options: FabricOptions) {
    const { memory, serve } = options;
    this.#options = options;
    this.#peers = memory.peers.map((one) => {
      const peer = new Peer(one);
      return { peer, handle: (words, at) => serve(peer, words, at) };
    });
    const byShard: (Peer | undefined)[] = [];
    for (const { peer } of this.#peers) byShard[peer.shard] = peer;
    this.remote = new RemotePartitions(byShard);
    this.followers = new RemoteFollowers(byShard);
    this.#doorbell = new Doorbell(memory.flag, () => this.#turn());
    for (const { bellPort } of memory.peers) this.#doorbell.listen(bellPort);
  }

  /** A peer is behind: requests wait for room, and no further ones should be taken in. */
  get isCongested(): boolean {
    for (const { peer } of this.#peers) if (peer.asker.isCongested) return true;
    return false;
  }

  /** Requests to peers that are not answered to the end. */
  get openCount(): number {
    return this.#peers.reduce((count, { peer }) => count + peer.asker.openCount, 0);
  }

  /** How often the thread was woken by its peers. */
  get wakeUps(): number {
    return this.#doorbell.wakeUps;
  }

  /** A slab of this thread is gone. */
  retireSlab(id: number): void {
    for (const { peer } of this.#peers) peer.announcer.retire(id);
  }

  /** Once a second: lets go of memory that peers have given up. */
  tick(): void {
    for (const { peer } of this.#peers) peer.views.update();
  }

  #turn(): void {
    let isWhole = true;
    for (const { peer } of this.#peers) peer.asker.drain(this.#options.onMoved);
    for (const { peer, handle } of this.#peers) isWhole = peer.answerer.drain(handle) && isWhole;
    this.#options.onTurn();
    if (!isWhole) this.#retrySoon();
  }

  /** More has come meanwhile, or something could not be served yet. */
  #retrySoon(): void {
    if (this.#isRetryDue) return;
    this.#isRetryDue = true;
    setImmediate(() => {
      this.#isRetryDue = false;
      this.#turn();
    });
  }
}
