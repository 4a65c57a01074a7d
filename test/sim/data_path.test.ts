/**
 * Seeded histories of a shard's whole data path: producers, consumers, deleted topics, full and broken disks, kills and
 * power cuts, with time, turns and flushes in the order that the seed draws. Checked with every event:
 *
 *   I1 what acks=all acknowledged stays at its offset, over kills and power cuts
 *   I4 each batch of an idempotent producer is stored once
 *   consumers see no unflushed record, so that nothing that one has seen can vanish
 *   a request is answered once, or its connection is closed
 * and at rest: no request memory, no parked request, no file of a deleted topic is held.
 *
 * A failure prints its seed; `node test/sim/data_path.test.ts SEED` replays that one.
 */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { seedsAtLeast } from '../harness/budget.ts';
import { type Sent, WorldConnection } from '../net/data_path/client.ts';
import { batchOf, fetch, fetched, produce, produced, valuesIn } from '../net/data_path/requests.ts';
import { ShardWorld } from '../net/data_path/shard_world.ts';
import { SeededRandom } from './seeded_random.ts';

const test = suite('data path histories');
const oneSeed = Number(process.argv[2] ?? 0);
const seeds = oneSeed > 0 ? 1 : seedsAtLeast(40);
const steps = 250;
const partitions = 2;
const sequenceCount = 4;

interface Pending {
  readonly sent: Sent<'Produce'>;
  readonly client: WorldConnection;
  readonly partition: number;
  readonly producer: Producer;
  readonly sequence: number;
  readonly acks: number;
}

/** An idempotent producer of one partition: sends a batch until it is acknowledged, up to some in flight. */
class Producer {
  readonly id: number;
  readonly partition: number;
  next = 0;
  /** Sequences to be sent again. */
  retry: number[] = [];

  constructor(id: number, partition: number) {
    this.id = id;
    this.partition = partition;
  }

  value(sequence: number): string {
    return `p${this.id} s${sequence}`;
  }
}

class History {
  readonly world: ShardWorld;
  readonly #random: SeededRandom;
  readonly #producers: Producer[];
  #pending: Pending[] = [];
  #fetches: { sent: Sent<'Fetch'>; client: WorldConnection }[] = [];
  /** By partition: value by offset, of what was acknowledged with acks=all, and of what a consumer has seen. */
  readonly #acknowledged: Map<number, string>[];
  readonly #seen: Map<number, string>[];
  #deletions: { sent: Sent<'DeleteRecords'>; client: WorldConnection; partition: number }[] = [];
  /** By partition: where it begins for sure, since a client was told so, and what has been asked for at the most. */
  readonly #deletedStarts: number[] = Array.from({ length: partitions }, () => 0);
  readonly #askedStarts: number[] = Array.from({ length: partitions }, () => 0);
  /** By partition: what has been flushed at some time. After a start the log knows less of it than the checkpoint may. */
  readonly #flushed: number[] = Array.from({ length: partitions }, () => 0);
  readonly counts: Record<string, number> = {};

  constructor(world: ShardWorld, random: SeededRandom) {
    this.world = world;
    this.#random = random;
    const all = Array.from({ length: partitions }, (_, partition) => partition);
    this.#producers = all.flatMap((partition) => [
      new Producer(partition * 2 + 1, partition),
      new Producer(partition * 2 + 2, partition),
    ]);
    this.#acknowledged = all.map(() => new Map());
    this.#seen = all.map(() => new Map());
  }

  async run(): Promise<void> {
    for (let step = 0; step < steps; step += 1) {
      await this.#step();
      // What main answers comes as a message.
      if (this.#deletions.length > 0) await new Promise((resolve) => setImmediate(resolve));
      this.#collect();
      this.#checkMarks();
    }
    await this.#rest();
  }

  #count(what: string): void {
    this.counts[what] = (this.counts[what] ?? 0) + 1;
  }

  async #step(): Promise<void> {
    const { world } = this;
    const draw = this.#random.below(100);
    if (draw < 30) this.#produce();
    else if (draw < 42) this.#fetch();
    else if (draw < 62) world.endTurn();
    else if (draw < 78) world.endFlushes();
    else if (draw < 84) world.advance(1 + this.#random.below(300));
    else if (draw < 87) this.#hangUp();
    else if (draw < 90) this.#checkpoint();
    else if (draw < 93) this.#toggleFullDisk();
    else if (draw < 95) await this.#otherTopic();
    else if (draw < 97) await this.#die('kill');
    else if (draw < 98) await this.#die('power cut');
    else if (draw < 99) this.#deleteRecords();
    else if (this.#random.chance(0.3)) world.disk.failingFlushes = 1;
  }

  #produce(): void {
    const producer = this.#producers[this.#random.below(this.#producers.length)] as Producer;
    const inFlight = this.#pending.filter((one) => one.producer === producer).length;
    if (inFlight >= sequenceCount) return;
    const retried = producer.retry.shift();
    const sequence = retried ?? producer.next;
    if (retried === undefined) producer.next += 1;
    else this.#count('retries');
    const acks = this.#random.chance(0.7) ? -1 : 1;
    const records = batchOf([producer.value(sequence)], {
      producerId: producer.id,
      producerEpoch: 0,
      baseSequence: sequence,
    });
    const client = new WorldConnection(this.world);
    const { partition } = producer;
    const version = this.#random.chance(0.5) ? 9 : 13;
    const request = produce(this.world, version, acks, [{ topic: 't', partition, records }], 400);
    const sent = client.send('Produce', version, request);
    this.#pending.push({ sent, client, partition, producer, sequence, acks });
    this.#count('batches');
  }

  #fetch(): void {
    const client = new WorldConnection(this.world);
    const wanted = this.#seen.map((seen, partition) => ({
      topic: 't',
      partition,
      offset: this.#random.chance(0.5) ? seen.size : this.#random.below(seen.size + 1),
      maxBytes: 50 + this.#random.below(1_000),
    }));
    const minBytes = this.#random.below(600);
    const request = fetch(this.world, 12, wanted, { minBytes, maxWaitMs: 200, maxBytes: 1_500 });
    this.#fetches.push({ client, sent: client.send('Fetch', 12, request) });
  }

  /** Takes the answers that are there. */
  #collect(): void {
    const waiting = this.#pending;
    this.#pending = [];
    for (const one of waiting) {
      if (!one.sent.isAnswered) this.#pending.push(one);
      else this.#acknowledge(one);
    }
    this.#noteDeletions();
    const open = this.#fetches;
    this.#fetches = open.filter(({ sent }) => !sent.isAnswered);
    for (const { sent } of open) {
      if (!sent.isAnswered) continue;
      this.#count('fetches');
      for (const { partitionIndex, errorCode, records } of fetched(sent.response()))
        if (errorCode === ErrorCode.NONE) this.#see(partitionIndex, valuesIn(records));
        else
          assert(
            errorCode === ErrorCode.KAFKA_STORAGE_ERROR ||
              (errorCode === ErrorCode.OFFSET_OUT_OF_RANGE &&
                (this.#askedStarts[partitionIndex] as number) > 0),
            `fetch error ${errorCode}`,
          );
    }
  }

  #acknowledge({ sent, producer, sequence, partition, acks }: Pending): void {
    const { errorCode, baseOffset } = produced(sent.response());
    if (errorCode === ErrorCode.NONE) {
      this.#count('acknowledged');
      if (acks !== -1) return;
      const offset = Number(baseOffset);
      note(this.#acknowledged[partition] as Map<number, string>, offset, producer.value(sequence));
      return;
    }
    const retriable: number[] = [
      ErrorCode.REQUEST_TIMED_OUT,
      ErrorCode.KAFKA_STORAGE_ERROR,
      ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ];
    assert(retriable.includes(errorCode), `error ${errorCode}`);
    this.#count(`error ${errorCode}`);
    producer.retry.push(sequence);
    producer.retry.sort((a, b) => a - b);
  }

  #see(partition: number, values: readonly string[]): void {
    for (const text of values) {
      const at = text.indexOf(' ');
      note(
        this.#seen[partition] as Map<number, string>,
        Number(text.slice(0, at)),
        text.slice(at + 1),
      );
    }
  }

  /** Nothing is shown that is not flushed. */
  #checkMarks(): void {
    for (let partition = 0; partition < partitions; partition += 1) {
      const leader = this.world.leader('t', partition);
      const { highWatermark, log } = leader;
      const flushed = Math.max(this.#flushed[partition] as number, log.flushedOffset);
      this.#flushed[partition] = flushed;
      assert(highWatermark <= flushed, `${highWatermark} shown, ${flushed} flushed`);
      assert(log.flushedOffset <= log.writtenOffset && log.writtenOffset <= log.logEndOffset);
      const { logStartOffset } = log;
      assert(logStartOffset >= (this.#deletedStarts[partition] as number), 'deleted is back');
      assert(logStartOffset <= (this.#askedStarts[partition] as number), 'nobody deleted that');
    }
  }

  /** Somebody deletes what consumers may have read, or not. */
  #deleteRecords(): void {
    const partition = this.#random.below(partitions);
    const { highWatermark, log } = this.world.leader('t', partition);
    const offset = BigInt(this.#random.below(highWatermark + 1));
    const client = new WorldConnection(this.world);
    const sent = client.send('DeleteRecords', 2, {
      topics: [{ name: 't', partitions: [{ partitionIndex: partition, offset }] }],
      timeoutMs: 60_000,
    });
    this.#deletions.push({ sent, client, partition });
    const asked = Math.max(this.#askedStarts[partition] as number, Number(offset));
    this.#askedStarts[partition] = Math.max(asked, log.logStartOffset);
  }

  #noteDeletions(): void {
    const open = this.#deletions;
    this.#deletions = open.filter(({ sent }) => !sent.isAnswered);
    for (const { sent, partition } of open) {
      if (!sent.isAnswered) continue;
      const answer = sent.response().topics[0]?.partitions[0];
      assert(answer !== undefined);
      if (answer.errorCode !== ErrorCode.NONE) continue;
      const start = Number(answer.lowWatermark);
      this.#deletedStarts[partition] = Math.max(this.#deletedStarts[partition] as number, start);
      this.#count('deletions');
    }
  }

  #hangUp(): void {
    const [produceAt, fetchAt] = [this.#random.below(8), this.#random.below(4)];
    const pending = this.#pending[produceAt];
    if (pending !== undefined) {
      pending.client.die();
      this.#pending.splice(produceAt, 1);
      pending.producer.retry.push(pending.sequence);
      pending.producer.retry.sort((a, b) => a - b);
      this.#count('hang-ups');
    }
    this.#fetches[fetchAt]?.client.die();
    this.#fetches.splice(fetchAt, 1);
  }

  #checkpoint(): void {
    this.world.checkpoint();
    this.#count('checkpoints');
  }

  #toggleFullDisk(): void {
    const { disk } = this.world;
    disk.writeError = disk.writeError === null ? 'ENOSPC' : null;
    this.#count('full disks');
  }

  /** A topic that comes and goes, in the same log directory. */
  async #otherTopic(): Promise<void> {
    const { world } = this;
    if (world.disk.writeError !== null || world.failedDirs.length > 0) return;
    if (world.image.topic('other') === undefined) {
      await world.createTopic('other');
      const client = new WorldConnection(world);
      client.send(
        'Produce',
        9,
        produce(world, 9, 1, [{ topic: 'other', records: batchOf(['x']) }]),
      );
      return;
    }
    await world.deleteTopic('other');
    for (const { renamed } of world.deleted.splice(0)) world.disk.removeTree(renamed, () => {});
    this.#count('deleted topics');
  }

  async #die(how: 'kill' | 'power cut'): Promise<void> {
    const { world } = this;
    for (const { client } of [...this.#pending, ...this.#fetches, ...this.#deletions]) client.die();
    this.#deletions = [];
    for (const { producer, sequence } of this.#pending) producer.retry.push(sequence);
    for (const producer of this.#producers) producer.retry.sort((a, b) => a - b);
    this.#pending = [];
    this.#fetches = [];
    world.disk.writeError = null;
    world.disk.failingFlushes = 0;
    if (how === 'kill') world.kill();
    else world.powerCut();
    world.failedDirs.length = 0;
    world.allFailed.length = 0;
    await world.open();
    this.#count(how);
  }

  /** Faults end; everybody gets what is due; then all that was promised is looked for. */
  async #rest(): Promise<void> {
    const { world } = this;
    if (world.failedDirs.length > 0) await this.#die('kill');
    world.disk.writeError = null;
    world.disk.failingFlushes = 0;
    for (let round = 0; round < 3; round += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      world.settle();
      world.advance(1_000);
      this.#collect();
    }
    assert.deepEqual([this.#pending.length, this.#fetches.length], [0, 0], 'unanswered');
    const { slabs, budget } = world.memory;
    assert.deepEqual([slabs.usedBytes, budget.usedBytes], [0, 0], 'request memory');
    const { purgatory, produceTimeouts } = world.services;
    assert.deepEqual([purgatory.size, produceTimeouts.size], [0, 0], 'parked');
    for (let partition = 0; partition < partitions; partition += 1) this.#checkLog(partition);
  }

  #checkLog(partition: number): void {
    const { log, highWatermark } = this.world.leader('t', partition);
    assert.equal(highWatermark, log.logEndOffset, 'at rest all is shown');
    const stored = new Map<number, string>();
    for (let offset = log.logStartOffset; offset < log.logEndOffset; ) {
      const slice = log.read(offset, 100_000, log.logEndOffset, true);
      assert(typeof slice === 'object', `read at ${offset}: ${slice as number}`);
      for (const text of valuesIn(log.copy(slice))) {
        const at = text.indexOf(' ');
        offset = Number(text.slice(0, at)) + 1;
        note(stored, offset - 1, text.slice(at + 1));
      }
    }
    const values = [...stored.values()];
    assert.equal(new Set(values).size, values.length, 'a batch is stored twice');
    for (const [what, promised] of [
      ['acknowledged', this.#acknowledged[partition]],
      ['seen', this.#seen[partition]],
    ] as const)
      for (const [offset, value] of promised ?? [])
        if (offset >= log.logStartOffset)
          assert.equal(stored.get(offset), value, `offset ${offset} of ${partition} was ${what}`);
  }
}

function note(values: Map<number, string>, offset: number, value: string): void {
  const known = values.get(offset) ?? value;
  assert.equal(value, known, `offset ${offset}`);
  values.set(offset, value);
}

test('histories under faults keep what was promised', async () => {
  const totals: Record<string, number> = {};
  for (
    let seed = oneSeed > 0 ? oneSeed : 1;
    seed < (oneSeed > 0 ? oneSeed + 1 : seeds + 1);
    seed += 1
  ) {
    const world = await ShardWorld.start({ topics: [['t', partitions]], seed });
    world.settle();
    const history = new History(world, new SeededRandom(seed));
    try {
      await history.run();
    } catch (error) {
      throw new Error(`seed ${seed}: ${(error as Error).message}`, { cause: error });
    }
    for (const [what, count] of Object.entries(history.counts))
      totals[what] = (totals[what] ?? 0) + count;
  }
  if (oneSeed > 0) return;
  for (const what of [
    'acknowledged',
    'fetches',
    'retries',
    'kill',
    'power cut',
    'full disks',
    'deleted topics',
    'deletions',
  ])
    assert((totals[what] ?? 0) > seeds / 2, `too little of ${what}: ${JSON.stringify(totals)}`);
});

test.run();
