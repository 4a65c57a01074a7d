/**
 * Seeded histories of appends, turns, flushes, checkpoints, kills and power cuts on one partition. After every restart:
 * everything acknowledged after its flush is there, with its bytes, at its offset; what was not acknowledged is there
 * whole or not at all; the log is one unbroken sequence; and the producers' state is that of the batches in it.
 */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { type BatchView, LogWorld, makeBatch, splitBatches } from '../../sim/log_world.ts';
import { SeededRandom } from '../../sim/seeded_random.ts';

const test = suite('partition_log.crash');

interface Sent {
  readonly bytes: Uint8Array;
  readonly baseOffset: number;
  readonly endOffset: number;
  readonly producerId: number;
  readonly lastSequence: number;
}

interface Producer {
  readonly id: number;
  readonly firstSequence: number;
  nextSequence: number;
}

interface Mutation {
  readonly ignoresFlushes?: boolean;
  /** Takes the write for the acknowledgement. */
  readonly acksOnWrite?: boolean;
}

class History {
  readonly world: LogWorld;
  readonly #random: SeededRandom;
  readonly #mutation: Mutation;
  #sent: Sent[] = [];
  /** Taken back when the disk was full. A power cut can undo that: then they are there whole, or not. */
  #refused: Sent[] = [];
  #ackedOffset = 0;
  #producers: Producer[] = [];
  #nextProducerId = 1;
  readonly counts = {
    crashes: 0,
    kills: 0,
    appends: 0,
    acked: 0,
    duplicates: 0,
    cuts: 0,
    refused: 0,
    failedFlushes: 0,
  };

  constructor(seed: number, mutation: Mutation) {
    this.#random = new SeededRandom(seed);
    this.#mutation = mutation;
    const random = this.#random;
    this.world = new LogWorld(
      {
        segmentBytes: 13_000 + random.below(10_000),
        indexIntervalBytes: random.below(3) * 500,
        segmentMs: random.chance(0.3) ? 50 : 1_000_000,
      },
      {
        seed: seed * 7 + 1,
        hasSyncfs: random.chance(0.5),
        ignoresFlushes: mutation.ignoresFlushes ?? false,
      },
    );
    this.world.flushEachMax = random.below(3) * 4;
    this.world.isUrgent = () => random.chance(0.5);
    for (let number = 0; number < 3; number += 1) this.#newProducer();
  }

  #newProducer(): Producer {
    const wraps = this.#random.chance(0.2);
    const firstSequence = wraps ? 0x7fff_fff0 : 0;
    const producer = { id: this.#nextProducerId, firstSequence, nextSequence: firstSequence };
    this.#nextProducerId += 1;
    this.#producers.push(producer);
    return producer;
  }

  run(steps: number): void {
    this.world.open();
    for (let step = 0; step < steps; step += 1) this.#step();
    this.#restart(true);
  }

  #step(): void {
    const choice = this.#random.below(100);
    if (choice < 55) this.#append();
    else if (choice < 75) this.#endTurn();
    else if (choice < 90) this.#endFlushes();
    else if (choice < 94) this.world.beginCheckpoint();
    else if (choice < 95) this.#resend();
    else if (choice < 97) this.#fillOrFree();
    else if (choice < 98) this.#restart(true);
    else if (choice < 99) this.#restart(false);
    else this.#failFlush();
  }

  /** The disk has room for a little more, or is free again. */
  #fillOrFree(): void {
    const { disk } = this.world;
    const isFree = disk.capacityBytes === Number.POSITIVE_INFINITY;
    disk.capacityBytes = isFree
      ? disk.usedBytes + this.#random.below(6000)
      : Number.POSITIVE_INFINITY;
  }

  /** The next flush fails; the broker is started again. */
  #failFlush(): void {
    this.world.disk.failingFlushes = 1;
    this.#append();
    this.#endTurn();
    this.world.disk.endFlushes();
    this.world.disk.failingFlushes = 0;
    this.counts.failedFlushes += 1;
    this.#restart(this.#random.chance(0.3));
  }

  #append(): void {
    const random = this.#random;
    const producer = this.#producers[random.below(this.#producers.length)] as Producer;
    const count = 1 + random.below(4);
    const records = Array.from({ length: count }, (_unused, index) => ({
      timestamp: BigInt(1_700_000_000_000 + random.below(1000)),
      value: random.bytes(random.below(random.chance(0.1) ? 3000 : 200)),
      offsetDelta: index,
    }));
    const appended = this.world.append({
      records,
      producerId: producer.id,
      baseSequence: producer.nextSequence,
    });
    if (appended.code !== ErrorCode.NONE) {
      assert.equal(appended.code, ErrorCode.KAFKA_STORAGE_ERROR);
      this.counts.refused += 1;
      return;
    }
    this.world.wallMs += random.below(3);
    producer.nextSequence = wrap(producer.nextSequence + count);
    this.#sent.push({
      bytes: appended.bytes,
      baseOffset: appended.result.baseOffset,
      endOffset: appended.result.lastOffset + 1,
      producerId: producer.id,
      lastSequence: wrap(producer.nextSequence - 1),
    });
    this.counts.appends += 1;
  }

  /** A client sends one of a producer's last five batches again: it gets the first one's offsets. */
  #resend(): void {
    const producer = this.#producers[this.#random.below(this.#producers.length)] as Producer;
    const own = this.#sent.filter(({ producerId }) => producerId === producer.id).slice(-5);
    const again = own[this.#random.below(Math.max(1, own.length))];
    if (again === undefined) return;
    const bytes = new Uint8Array(again.bytes);
    bytes.fill(0, 0, 8);
    const { code, result } = this.world.appendBytes(bytes, this.world.validate(bytes));
    // A full disk in the middle of the turn.
    if (code === ErrorCode.KAFKA_STORAGE_ERROR) return;
    assert.equal(code, ErrorCode.NONE);
    assert.equal(result.duplicate, true);
    assert.equal(result.baseOffset, again.baseOffset);
    assert.equal(result.lastOffset + 1, again.endOffset);
    this.counts.duplicates += 1;
  }

  #endTurn(): void {
    this.world.endTurn();
    this.#takeRefusals();
    if (this.#mutation.acksOnWrite) this.#ackedOffset = this.world.log.writtenOffset;
  }

  #takeRefusals(): void {
    const { written } = this.world;
    for (const { from, error } of written) {
      if (error === ErrorCode.NONE) continue;
      this.counts.refused += 1;
      this.#forgetFrom(from);
    }
    written.length = 0;
  }

  /** What was appended from `offset` on was taken back: the producers send it again. */
  #forgetFrom(offset: number): void {
    this.#refused.push(...this.#sent.filter(({ endOffset }) => endOffset > offset));
    this.#sent = this.#sent.filter(({ endOffset }) => endOffset <= offset);
    this.#recallSequences();
  }

  /** Each producer goes on behind its last batch. */
  #recallSequences(): void {
    for (const producer of this.#producers) {
      const last = this.#sent.findLast(({ producerId }) => producerId === producer.id);
      producer.nextSequence =
        last === undefined ? producer.firstSequence : wrap(last.lastSequence + 1);
    }
  }

  #endFlushes(): void {
    this.world.disk.endFlushes();
    // What was kept back during the flush is written behind it.
    this.#takeRefusals();
    const flushed = this.world.flushed.at(-1) ?? 0;
    this.#ackedOffset = Math.max(this.#ackedOffset, flushed);
  }

  #restart(isPowerCut: boolean): void {
    if (isPowerCut) this.world.crash();
    else this.world.kill();
    this.world.disk.capacityBytes = Number.POSITIVE_INFINITY;
    this.counts[isPowerCut ? 'crashes' : 'kills'] += 1;
    this.world.flushed.length = 0;
    this.world.open();
    this.#check();
    if (isPowerCut) this.#refused = [];
    // What was kept is flushed before it counts; sometimes the power goes before that.
    if (this.#random.chance(0.8)) this.world.settle();
    this.#endFlushes();
  }

  #check(): void {
    const { log } = this.world;
    assert.deepEqual(log.recovery.damage, []);
    assert.deepEqual(log.recovery.setAside, [], 'a power cut looks like no corruption');
    assert.equal(log.recovery.lost, null);
    if (log.recovery.cutBytes > 0) this.counts.cuts += 1;
    assert(
      log.logEndOffset >= this.#ackedOffset,
      `acknowledged up to ${this.#ackedOffset}, the log ends at ${log.logEndOffset}`,
    );
    const stored = splitBatches(this.world.readAll());
    assert.equal((stored.at(-1)?.lastOffset ?? -1) + 1, log.logEndOffset);
    this.#sent = stored.map((batch, at) => this.#identify(batch, at));
    this.counts.acked = this.#ackedOffset;
    this.#ackedOffset = Math.min(this.#ackedOffset, log.logEndOffset);
    this.#checkProducers();
  }

  /** The batch that was sent which this is, byte for byte. */
  #identify(batch: BatchView, at: number): Sent {
    const sent = this.#sent[at];
    if (sent !== undefined && isSame(batch, sent)) return sent;
    const refused = this.#refused.find((one) => isSame(batch, one));
    assert(refused !== undefined, `batch ${at} differs`);
    return refused;
  }

  #checkProducers(): void {
    const { producers } = this.world.log;
    for (const producer of this.#producers) {
      const own = this.#sent.filter(({ producerId }) => producerId === producer.id);
      const entry = producers.get(producer.id);
      if (own.length === 0) {
        assert.equal(entry, undefined);
        const bytes = makeBatch({ producerId: producer.id, baseSequence: 5 });
        assert(bytes.length > 0);
        continue;
      }
      const last = own.at(-1) as Sent;
      assert.equal(entry?.lastSequence, last.lastSequence);
      assert.deepEqual(
        entry.batches.slice(0, entry.batchCount).map(({ lastOffset }) => lastOffset + 1),
        own.slice(-5).map(({ endOffset }) => endOffset),
        'the last five batches are known',
      );
      producer.nextSequence = wrap(last.lastSequence + 1);
    }
    // A producer whose batches all went begins anew where it likes.
    this.#producers = this.#producers.filter(({ id }) => producers.get(id) !== undefined);
    while (this.#producers.length < 3) this.#newProducer();
  }
}

/** `node partition_log.crash.test.ts 5000` looks further. */
const seeds = Number(process.argv[2] ?? 250);

function isSame(batch: BatchView, sent: Sent): boolean {
  return Buffer.compare(batch.bytes, sent.bytes) === 0;
}

function wrap(sequence: number): number {
  if (sequence < 0) return sequence + 0x8000_0000;
  return sequence > 0x7fff_ffff ? sequence - 0x8000_0000 : sequence;
}

function runSeed(seed: number, mutation: Mutation = {}): History['counts'] {
  const history = new History(seed, mutation);
  try {
    history.run(120);
  } catch (error) {
    throw new Error(`seed ${seed}: ${(error as Error).message}\n${(error as Error).stack}`, {
      cause: error,
    });
  }
  return history.counts;
}

test('whatever the history, acknowledged batches survive and producers are exact', () => {
  const totals = {
    crashes: 0,
    kills: 0,
    appends: 0,
    acked: 0,
    duplicates: 0,
    cuts: 0,
    refused: 0,
    failedFlushes: 0,
  };
  for (let seed = 1; seed <= seeds; seed += 1) {
    const counts = runSeed(seed);
    for (const key of Object.keys(totals) as Array<keyof typeof totals>) totals[key] += counts[key];
  }
  for (const [what, count] of Object.entries(totals))
    assert(count > seeds / 5, `too little of ${what} to prove anything: ${count}`);
});

test('canary: a disk that only says that it has flushed is noticed', () => {
  assert.throws(() => {
    for (let seed = 1; seed <= 50; seed += 1) runSeed(seed, { ignoresFlushes: true });
  }, /acknowledged up to|differs|lost|recovery/);
});

test('canary: acknowledging the write instead of the flush is noticed', () => {
  assert.throws(() => {
    for (let seed = 1; seed <= 50; seed += 1) runSeed(seed, { acksOnWrite: true });
  }, /acknowledged up to/);
});

test.run();
