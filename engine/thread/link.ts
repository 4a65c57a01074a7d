/**
 * One thread asks, another one answers: a ring of requests one way, and a ring of answers back whose room is reserved
 * with each request. Whoever answers never has to wait for room, so it can always empty the requests that it got, and
 * two threads that ask each other with all rings full still make headway.
 *
 * Thread: `Asker` on the one, `Answerer` on the other; a pair of threads has two links. Memory: the rings', and what
 * waits for room at the asker: that is bounded by whoever asks, who has to stop taking in work while `isCongested`.
 * Durability: none.
 *
 * Word 0 of a request is its kind, word 1 its exchange (-1: no answer). Word 0 of an answer is its kind, word 1 the
 * exchange, word 2 is 1 in the last answer to it. The rest is the callers' business.
 *
 * Invariants: answers reserved and not yet taken off <= slots of the ring of answers; requests of one class (`bulk` or
 * not) leave in the order in which they were asked.
 */
import assert from 'node:assert/strict';
import type { Bell } from './doorbell.ts';
import {
  createRing,
  type RingMemory,
  RingReader,
  RingWriter,
  type Words,
  wordsOver,
} from './ring.ts';

/** The shared part of a link. Structured-cloneable. */
export interface LinkMemory {
  readonly requests: RingMemory;
  readonly answers: RingMemory;
  /** From the answering thread, unasked: numbers that mean "look again". */
  readonly news: RingMemory;
}

export const linkLimits: {
  readonly slots: number;
  readonly newsSlots: number;
  readonly words: number;
  readonly headWords: number;
} = {
  slots: 1024,
  newsSlots: 1024,
  /** Of a request and of an answer: 128 bytes, two cache lines. */
  words: 16,
  headWords: 3,
};

export function createLink(slots: number = linkLimits.slots): LinkMemory {
  return {
    requests: createRing(slots, linkLimits.words),
    answers: createRing(slots, linkLimits.words),
    news: createRing(linkLimits.newsSlots, 1),
  };
}

/** Hears the answers to one request. */
export interface Exchange {
  /** One answer. Its words begin at `at` and are good until this returns. `isLast`: no other one comes. */
  onAnswer(words: Words, at: number, isLast: boolean): void;
}

interface Parked {
  readonly halves: Int32Array;
  readonly answers: number;
}

export class Asker {
  /** The next request is written here, from word 2 on, before `ask`. */
  readonly words: Words = wordsOver(new ArrayBuffer(linkLimits.words * 8), 0, linkLimits.words);
  readonly #requests: RingWriter;
  readonly #answers: RingReader;
  readonly #news: RingReader;
  readonly #bell: Bell;
  readonly #answersMax: number;
  /** Requests that wait for a slow answer (a flush) leave this much to the others. */
  readonly #bulkAnswersMax: number;
  #reserved = 0;
  readonly #exchanges: (Exchange | null)[] = [];
  /** By exchange: answers reserved that have not come. */
  readonly #due: number[] = [];
  readonly #freeIds: number[] = [];
  /** The last attempt to send failed for lack of a slot, not of room for its answers. */
  #isFull: boolean = false;
  #bulk: Parked[] = [];
  #other: Parked[] = [];

  constructor(memory: LinkMemory, bell: Bell) {
    this.#requests = new RingWriter(memory.requests);
    this.#answers = new RingReader(memory.answers);
    this.#news = new RingReader(memory.news);
    this.#bell = bell;
    this.#answersMax = memory.answers.slots;
    this.#bulkAnswersMax = Math.max(2, memory.answers.slots >> 1);
  }

  /** Requests wait for room: the other thread is behind. Nothing new should be taken in for it. */
  get isCongested(): boolean {
    return this.#bulk.length > 0 || this.#other.length > 0;
  }

  /** Exchanges under way, parked ones included. */
  get openCount(): number {
    return this.#exchanges.length - this.#freeIds.length;
  }

  /**
   * Sends what was written into `words`, or keeps a copy until there is room.
   * @param kind the callers' own number
   * @param exchange hears the answers; null: there are none
   * @param answers how many may come at the most; at least 1 with an exchange
   * @param isBulk it may take long to be answered; keeps the order among its like, and leaves room for others
   */
  ask(kind: number, exchange: Exchange | null, answers: number, isBulk: boolean): void {
    const { numbers, halves } = this.words;
    numbers[0] = kind;
    numbers[1] = exchange === null ? -1 : this.#open(exchange, answers);
    const parked = isBulk ? this.#bulk : this.#other;
    if (parked.length > 0) parked.push({ halves: halves.slice(), answers });
    else if (!this.#send(halves, answers, isBulk)) {
      parked.push({ halves: halves.slice(), answers });
      this.#sendParked();
    }
  }

  /** Takes off what has come: answers first, then news. Then sends what waited for room, if there is any now. */
  drain(onNews: (number: number) => void): void {
    const answers = this.#answers;
    for (let at = answers.peek(); at >= 0; at = answers.peek()) {
      const { numbers } = answers.words;
      const id = numbers[at + 1] as number;
      const isLast = numbers[at + 2] === 1;
      const exchange = this.#exchanges[id];
      if (exchange === null || exchange === undefined) assert.fail(`an answer to exchange ${id}`);
      exchange.onAnswer(answers.words, at, isLast);
      // Only now is its room free to be reserved again.
      answers.advance();
      this.#settle(id, isLast);
    }
    const news = this.#news;
    for (let at = news.peek(); at >= 0; at = news.peek()) {
      const number = news.words.numbers[at] as number;
      news.advance();
      onNews(number);
    }
    if (news.takeWaiting()) this.#bell.ringSoon();
    if (this.isCongested) this.#sendParked();
  }

  #open(exchange: Exchange, answers: number): number {
    assert(answers >= 1 && answers <= this.#bulkAnswersMax, `a request with ${answers} answers`);
    const id = this.#freeIds.pop() ?? this.#exchanges.length;
    this.#exchanges[id] = exchange;
    this.#due[id] = answers;
    return id;
  }

  #settle(id: number, isLast: boolean): void {
    const due = this.#due[id] as number;
    assert(due > 0, 'more answers than reserved');
    this.#due[id] = due - 1;
    this.#reserved -= isLast ? due : 1;
    if (!isLast) return;
    this.#exchanges[id] = null;
    this.#freeIds.push(id);
  }

  #send(halves: Int32Array, answers: number, isBulk: boolean): boolean {
    const most = isBulk ? this.#bulkAnswersMax : this.#answersMax;
    if (this.#reserved + answers > most) return false;
    const at = this.#requests.claim();
    if (at < 0) {
      this.#isFull = true;
      return false;
    }
    const target = this.#requests.words.halves;
    const count = linkLimits.words * 2;
    // Word by word as integers: copied as numbers, bits that spell NaN would not survive.
    for (let k = 0; k < count; k += 1) target[at * 2 + k] = halves[k] as number;
    this.#requests.publish();
    this.#reserved += answers;
    this.#bell.ringSoon();
    return true;
  }

  /**
   * What waits for answers to come is tried again when one does (`drain`); what waits for a slot, when the other thread
   * has made room and says so.
   */
  #sendParked(): void {
    do {
      this.#isFull = false;
      this.#other = this.#sendList(this.#other, false);
      this.#bulk = this.#sendList(this.#bulk, true);
    } while (this.#isFull && this.#requests.waitForRoom());
  }

  #sendList(list: Parked[], isBulk: boolean): Parked[] {
    let sent = 0;
    while (sent < list.length) {
      const { halves, answers } = list[sent] as Parked;
      if (!this.#send(halves, answers, isBulk)) break;
      sent += 1;
    }
    return sent === 0 ? list : list.slice(sent);
  }
}

/** Serves requests. Returns false to be shown the same one again in a later turn, and no other one before it. */
export type RequestHandler = (words: Words, at: number) => boolean;

export class Answerer {
  /** The next answer is written here, from word 3 on, before `answer`. */
  readonly words: Words = wordsOver(new ArrayBuffer(linkLimits.words * 8), 0, linkLimits.words);
  readonly #requests: RingReader;
  readonly #answers: RingWriter;
  readonly #news: RingWriter;
  readonly #bell: Bell;
  /** News that found no room. A set: who is behind needs to hear each of them once only. */
  readonly #untold = new Set<number>();

  constructor(memory: LinkMemory, bell: Bell) {
    this.#requests = new RingReader(memory.requests);
    this.#answers = new RingWriter(memory.answers);
    this.#news = new RingWriter(memory.news);
    this.#bell = bell;
  }

  /** Runs the requests that have come, at most as many as the ring holds. Returns false if the handler put one off. */
  drain(handle: RequestHandler): boolean {
    const requests = this.#requests;
    let isWhole = true;
    for (let left = requests.slots; left > 0; left -= 1) {
      const at = requests.peek();
      if (at < 0) break;
      isWhole = handle(requests.words, at);
      if (!isWhole) break;
      requests.advance();
    }
    if (requests.takeWaiting()) this.#bell.ringSoon();
    if (this.#untold.size > 0) this.#tellUntold();
    return isWhole && requests.peek() < 0;
  }

  /** Sends what was written into `words`. Its room was reserved with the request. */
  answer(kind: number, exchange: number, isLast: boolean): void {
    const at = this.#answers.claim();
    assert(at >= 0, 'no room for an answer: more answers than were reserved');
    const { numbers, halves } = this.words;
    numbers[0] = kind;
    numbers[1] = exchange;
    numbers[2] = isLast ? 1 : 0;
    const target = this.#answers.words.halves;
    const count = linkLimits.words * 2;
    for (let k = 0; k < count; k += 1) target[at * 2 + k] = halves[k] as number;
    this.#answers.publish();
    this.#bell.ringSoon();
  }

  /** Tells the other thread a number, now or when there is room; said twice before then, it arrives once. */
  tell(number: number): void {
    if (this.#untold.size > 0 || !this.#tellNow(number)) this.#untold.add(number);
  }

  #tellNow(number: number): boolean {
    const at = this.#news.claim();
    if (at < 0) return this.#news.waitForRoom() && this.#tellNow(number);
    this.#news.words.numbers[at] = number;
    this.#news.publish();
    this.#bell.ringSoon();
    return true;
  }

  #tellUntold(): void {
    for (const number of this.#untold) {
      if (!this.#tellNow(number)) return;
      this.#untold.delete(number);
    }
  }
}
