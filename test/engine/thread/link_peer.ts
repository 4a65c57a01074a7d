/**
 * One of two threads that ask each other as fast as they can: slow requests with a payload in a slab and two answers,
 * quick ones without. Each checks what it gets: order, contents, answers. Runs in the test's own thread and, as a
 * worker, in the other one.
 */
import assert from 'node:assert/strict';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { Bell, Doorbell } from '../../../engine/thread/doorbell.ts';
import { Answerer, Asker, type Exchange, type LinkMemory } from '../../../engine/thread/link.ts';
import type { Words } from '../../../engine/thread/ring.ts';
import { type Region, SlabAllocator } from '../../../engine/thread/slab.ts';
import { SlabAnnouncer, SlabViews } from '../../../engine/thread/slab_share.ts';
import { SeededRandom } from '../../sim/seeded_random.ts';

export interface PeerData {
  readonly seed: number;
  /** Requests that this side asks. */
  readonly count: number;
  /** Requests without waiting for anything, whatever the congestion: fills every ring. */
  readonly isReckless: boolean;
  readonly asking: LinkMemory;
  readonly answering: LinkMemory;
  readonly ownFlag: SharedArrayBuffer;
  readonly otherFlag: SharedArrayBuffer;
  readonly port: MessagePort;
  readonly slabPort: MessagePort;
}

const Kind = { slow: 1, quick: 2, written: 3, done: 4, quickDone: 5 } as const;
/** Payload bytes in slabs under way that a careful peer does not go beyond. */
const payloadBytesMax = 4 * 1024 * 1024;

interface Slow {
  readonly exchange: number;
  readonly sequence: number;
}

export class Peer {
  readonly slabs: SlabAllocator = new SlabAllocator();
  readonly asker: Asker;
  readonly #data: PeerData;
  readonly #answerer: Answerer;
  readonly #announcer: SlabAnnouncer;
  readonly #views: SlabViews;
  readonly #random: SeededRandom;
  readonly #finished = Promise.withResolvers<void>();
  readonly #onNews = (number: number): void => this.#hear(number);
  readonly #onRequest = (words: Words, at: number): boolean => this.#serve(words, at);
  #later: Slow[] = [];
  #isLaterDue: boolean = false;
  #slowAsked = 0;
  #quickAsked = 0;
  #slowServed = 0;
  #quickServed = 0;
  #answered = 0;
  #news = 0;
  /** Most requests that waited for room, and most payload under way. */
  parkedMost = 0;
  payloadMost = 0;
  putOff = 0;
  stalled: boolean = false;

  constructor(data: PeerData) {
    this.#data = data;
    this.#random = new SeededRandom(data.seed);
    const bell = new Bell(data.otherFlag, data.port);
    this.asker = new Asker(data.asking, bell);
    this.#answerer = new Answerer(data.answering, bell);
    this.#announcer = new SlabAnnouncer(data.slabPort);
    this.#views = new SlabViews(data.slabPort);
    this.slabs.onRetired = (id) => this.#announcer.retire(id);
    new Doorbell(data.ownFlag, () => this.turn()).listen(data.port);
    data.port.ref();
  }

  /** Fulfilled when all that it asked was answered, and all that the other side asks was served. */
  get finished(): Promise<void> {
    return this.#finished.promise;
  }

  get summary(): { served: number; answered: number; news: number } {
    return {
      served: this.#slowServed + this.#quickServed,
      answered: this.#answered,
      news: this.#news,
    };
  }

  turn(): void {
    if (this.stalled) return;
    this.asker.drain(this.#onNews);
    if (!this.#answerer.drain(this.#onRequest)) setImmediate(() => this.turn());
    this.#askMore();
    const { served, answered } = this.summary;
    if (served === this.#data.count && answered === this.#data.count) this.#finished.resolve();
  }

  #askMore(): void {
    const { count, isReckless } = this.#data;
    const asker = this.asker;
    // A reckless peer keeps four rings' worth waiting, a careful one stops when anything does.
    const openMost = 4096;
    while (this.#slowAsked + this.#quickAsked < count) {
      if (isReckless ? asker.openCount >= openMost : asker.isCongested) break;
      if (!isReckless && this.slabs.usedBytes > payloadBytesMax) break;
      if (this.#random.chance(0.5)) this.#askSlow();
      else this.#askQuick();
    }
    this.parkedMost = Math.max(this.parkedMost, asker.openCount);
    this.payloadMost = Math.max(this.payloadMost, this.slabs.usedBytes);
  }

  #askSlow(): void {
    const sequence = this.#slowAsked++;
    const length = 1 + this.#random.below(this.#random.chance(0.01) ? 100_000 : 900);
    const region = this.slabs.alloc(length);
    region.bytes.fill(sequence & 0xff, region.offset, region.offset + length);
    this.#announcer.announce(region.slabId, region.bytes.buffer);
    const { numbers, longs } = this.asker.words;
    numbers[2] = sequence;
    numbers[3] = region.slabId;
    numbers[4] = region.offset;
    numbers[5] = length;
    longs[15] = BigInt.asIntN(64, BigInt(sequence) * 0x9e3779b97f4a7c15n);
    this.asker.ask(Kind.slow, new SlowExchange(this, region, sequence), 2, true);
  }

  #askQuick(): void {
    const sequence = this.#quickAsked++;
    this.asker.words.numbers[2] = sequence;
    this.asker.ask(Kind.quick, new QuickExchange(this, sequence), 1, false);
  }

  onDone(): void {
    this.#answered += 1;
  }

  #serve(words: Words, at: number): boolean {
    const { numbers, longs } = words;
    const exchange = numbers[at + 1] as number;
    const sequence = numbers[at + 2] as number;
    if (numbers[at] === Kind.quick) {
      assert.equal(sequence, this.#quickServed++, 'quick requests out of order');
      this.#answer(Kind.quickDone, exchange, true, sequence);
      if (sequence % 64 === 0) this.#answerer.tell(sequence);
      return true;
    }
    assert.equal(numbers[at], Kind.slow);
    const view = this.#views.find(numbers[at + 3] as number);
    if (view === undefined) {
      this.putOff += 1;
      return false;
    }
    assert.equal(sequence, this.#slowServed++, 'slow requests out of order');
    assert.equal(longs[at + 15], BigInt.asIntN(64, BigInt(sequence) * 0x9e3779b97f4a7c15n));
    const offset = numbers[at + 4] as number;
    const length = numbers[at + 5] as number;
    for (const k of [offset, offset + (length >> 1), offset + length - 1])
      assert.equal(view[k], sequence & 0xff, `payload of ${sequence}`);
    this.#answer(Kind.written, exchange, false, sequence);
    this.#later.push({ exchange, sequence });
    if (!this.#isLaterDue) {
      this.#isLaterDue = true;
      setImmediate(() => this.#finishLater());
    }
    return true;
  }

  #finishLater(): void {
    this.#isLaterDue = false;
    const later = this.#later;
    this.#later = [];
    for (const { exchange, sequence } of later) this.#answer(Kind.done, exchange, true, sequence);
  }

  #answer(kind: number, exchange: number, isLast: boolean, sequence: number): void {
    this.#answerer.words.numbers[3] = sequence;
    this.#answerer.answer(kind, exchange, isLast);
  }

  #hear(number: number): void {
    assert.equal(number % 64, 0);
    this.#news += 1;
  }
}

class SlowExchange implements Exchange {
  #isWritten = false;
  readonly #peer: Peer;
  readonly #region: Region;
  readonly #sequence: number;

  constructor(peer: Peer, region: Region, sequence: number) {
    this.#peer = peer;
    this.#region = region;
    this.#sequence = sequence;
  }

  onAnswer({ numbers }: Words, at: number, isLast: boolean): void {
    assert.equal(numbers[at + 3], this.#sequence, 'an answer to another request');
    assert.equal(numbers[at], isLast ? Kind.done : Kind.written);
    assert.equal(this.#isWritten, isLast, 'answers out of order');
    this.#isWritten = true;
    if (!isLast) return;
    this.#peer.slabs.free(this.#region);
    this.#peer.onDone();
  }
}

class QuickExchange implements Exchange {
  readonly #peer: Peer;
  readonly #sequence: number;

  constructor(peer: Peer, sequence: number) {
    this.#peer = peer;
    this.#sequence = sequence;
  }

  onAnswer({ numbers }: Words, at: number, isLast: boolean): void {
    assert.equal(numbers[at], Kind.quickDone);
    assert.equal(numbers[at + 3], this.#sequence);
    assert(isLast);
    this.#peer.onDone();
  }
}

if (workerData?.asking !== undefined) {
  const peer = new Peer(workerData as PeerData);
  setImmediate(() => peer.turn());
  const trimmer = setInterval(() => peer.slabs.trim(0), 50);
  void peer.finished.then(() => {
    clearInterval(trimmer);
    const { parkedMost, payloadMost, summary } = peer;
    parentPort?.postMessage({
      parkedMost,
      payloadMost,
      ...summary,
      isPristine: peer.slabs.isPristine(),
    });
  });
}
