/**
 * Another shard of this process, as this one talks to it: asks it, answers it, shows it memory and looks into its.
 *
 * Thread: this shard's own.
 */
import { Bell } from '../../engine/thread/doorbell.ts';
import { Answerer, Asker } from '../../engine/thread/link.ts';
import { SlabAnnouncer, SlabViews } from '../../engine/thread/slab_share.ts';
import type { PeerMemory } from './fabric_memory.ts';

export class Peer {
  readonly shard: number;
  readonly asker: Asker;
  readonly answerer: Answerer;
  /** Of this shard's slabs, to the peer. */
  readonly announcer: SlabAnnouncer;
  /** Of the peer's slabs, here. */
  readonly views: SlabViews;

  constructor(memory: PeerMemory) {
    this.shard = memory.shard;
    const bell = new Bell(memory.flag, memory.bellPort);
    this.asker = new Asker(memory.asking, bell);
    this.answerer = new Answerer(memory.answering, bell);
    this.announcer = new SlabAnnouncer(memory.slabPort);
    this.views = new SlabViews(memory.slabPort);
  }
}
