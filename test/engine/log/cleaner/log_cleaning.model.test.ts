/**
 * Random workloads on a simulated disk, cleaned again and again with an end of the process or of the power at any
 * change that the cleaner makes, against a reference model. And mutants, which the model must find.
 */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import type { RecordInput } from '../../../../engine/batch/encode.ts';
import type { CleanableRange } from '../../../../engine/log/cleaner/cleanable_log.ts';
import type { CleaningJob } from '../../../../engine/log/cleaner/cleaning_job.ts';
import type { PartitionLog } from '../../../../engine/log/partition_log.ts';
import { seedsAtLeast } from '../../../harness/budget.ts';
import { cleanLog, type DiskFaults, FaultyDisk, Interrupted } from '../../../sim/cleaning.ts';
import { CompactedModel, recordsIn } from '../../../sim/compacted_model.ts';
import { LogWorld, partitionDir } from '../../../sim/log_world.ts';
import { SeededRandom } from '../../../sim/seeded_random.ts';

const test = suite('log_cleaning.model');
const seeds = seedsAtLeast(30);
const encoder = new TextEncoder();
const deleteRetentionMs = 50_000;

interface Mutation {
  readonly faults?: DiskFaults;
  readonly change?: (job: CleaningJob) => CleaningJob;
  readonly range?: (log: PartitionLog, range: CleanableRange) => CleanableRange;
}

interface Producer {
  readonly id: number;
  nextSequence: number;
}

/** Counts over all seeds, so that a run that tests nothing is noticed. */
const seen = { crashes: 0, cleanings: 0, tombstonesGone: 0, ends: new Set<string>() };

class Run {
  readonly #random: SeededRandom;
  readonly #world: LogWorld;
  readonly #model = new CompactedModel(deleteRetentionMs);
  readonly #producers: Producer[];
  readonly #mutation: Mutation;
  readonly #minLagMs: number;
  /** What the checkpoint file would say. */
  #checkpoint = 0;
  #number = 0;

  constructor(seed: number, mutation: Mutation) {
    const random = new SeededRandom(seed);
    this.#random = random;
    this.#mutation = mutation;
    this.#minLagMs = random.chance(0.3) ? 20_000 : 0;
    this.#world = new LogWorld(
      {
        segmentBytes: 1_500 + random.below(4_000),
        indexIntervalBytes: 100 + random.below(1_000),
        cleanupPolicy: { compact: true, delete: false },
        minCompactionLagMs: this.#minLagMs,
        deleteRetentionMs,
      },
      { seed },
    ).open();
    this.#producers = Array.from({ length: 3 }, (_, at) => ({ id: 100 + at, nextSequence: 0 }));
  }

  go(): void {
    for (let round = 0; round < 12; round += 1) {
      this.#append(10 + this.#random.below(40));
      this.#world.settle();
      if (this.#random.chance(0.5)) this.#world.checkpoint();
      this.#world.wallMs += this.#random.below(40_000);
      this.#clean();
      this.#check();
      if (this.#random.chance(0.3)) this.#restart(this.#random.chance(0.5));
    }
  }

  #append(count: number): void {
    for (let batch = 0; batch < count; batch += 1) {
      const random = this.#random;
      const world = this.#world;
      const codec = random.chance(0.5) ? 0 : (random.below(5) as 0 | 1 | 2 | 3 | 4);
      const base = world.log.logEndOffset;
      const records: RecordInput[] = Array.from({ length: 1 + random.below(5) }, (_, at) =>
        this.#record(base + at),
      );
      const producer = random.chance(0.5) ? this.#producers[random.below(3)] : undefined;
      const sent =
        producer === undefined
          ? {}
          : { producerId: producer.id, baseSequence: producer.nextSequence };
      world.put({ records, codec, ...sent });
      if (producer !== undefined) producer.nextSequence += records.length;
      if (random.chance(0.3)) world.settle();
    }
  }

  #record(offset: number): RecordInput {
    const random = this.#random;
    const timestamp = this.#world.wallMs - random.below(1_000);
    const isKeyless = random.chance(0.02);
    const key = isKeyless ? null : `key-${random.below(random.chance(0.2) ? 400 : 12)}`;
    this.#number += 1;
    const value = random.chance(0.2) ? null : `${this.#number}`.padEnd(random.below(60), 'v');
    this.#model.add({ offset, timestamp, key, value });
    return {
      timestamp: BigInt(timestamp),
      key: key === null ? null : encoder.encode(key),
      value: value === null ? null : encoder.encode(value),
      headers: random.chance(0.1) ? [{ key: encoder.encode('h'), value: null }] : [],
    };
  }

  #clean(): void {
    const world = this.#world;
    const random = this.#random;
    const { log, wallMs: nowMs } = world;
    const { uncleanableOffset } = log.cleaning.range(log.flushedOffset, nowMs);
    const endAfter = random.chance(0.5) ? random.below(60) : Number.POSITIVE_INFINITY;
    const faulty = new FaultyDisk(world.disk, { endAfter, ...this.#mutation.faults });
    this.#model.begin(uncleanableOffset, nowMs, this.#minLagMs);
    try {
      const result = cleanLog(log, {
        disk: faulty.disk,
        nowMs,
        mapBytes: random.chance(0.2) ? 24 * (20 + random.below(60)) : 1 << 20,
        ...this.#mutation,
        onStep: () => {
          if (random.chance(0.3)) this.#check();
        },
      });
      if (result === null) return;
      seen.cleanings += 1;
      this.#checkpoint = result.cleanedOffset;
      this.#model.end(result.cleanedOffset);
    } catch (error) {
      if (!(error instanceof Interrupted)) throw error;
      seen.crashes += 1;
      seen.ends.add(String(faulty.endedAt));
      this.#restart(random.chance(0.5));
    }
  }

  #restart(isPowerCut: boolean): void {
    const world = this.#world;
    const end = world.log.flushedOffset;
    if (isPowerCut) world.crash();
    else world.kill();
    // Producers must be known from the log alone.
    for (const name of world.disk.list(partitionDir) ?? [])
      if (name.endsWith('.snapshot') && this.#random.chance(0.5))
        world.disk.unlink(`${partitionDir}/${name}`);
    world.reopen();
    assert.equal(world.log.logEndOffset, end, 'the log ends where it did');
    assert.deepEqual(world.log.recovery.damage, []);
    assert.deepEqual(world.log.recovery.setAside, []);
    const left = world.disk.list(partitionDir) ?? [];
    assert.deepEqual(
      left.filter((name) => /cleaned|swap|deleted|cut$|damaged/.test(name)),
      [],
    );
    world.log.cleaning.cleanedOffset = this.#checkpoint;
    this.#check();
  }

  #check(): void {
    const { log, wallMs } = this.#world;
    const bytes = this.#world.readAll(log.logStartOffset, 200 + this.#random.below(5_000));
    this.#model.check(recordsIn(bytes), log.logStartOffset, wallMs);
    for (const { id, nextSequence } of this.#producers)
      if (nextSequence > 0)
        assert.equal(log.producers.get(id)?.lastSequence, nextSequence - 1, `producer ${id}`);
  }
}

/** Where the segment begins that takes appends. */
function activeBaseOf(log: PartitionLog): number {
  const { config } = log;
  log.updateConfig({ ...config, minCompactionLagMs: 0 });
  const { uncleanableOffset } = log.cleaning.range(log.flushedOffset, 0);
  log.updateConfig(config);
  return uncleanableOffset;
}

function runSeeds(count: number, mutation: Mutation = {}): void {
  for (let seed = 1; seed <= count; seed += 1) {
    try {
      new Run(seed, mutation).go();
    } catch (error) {
      if (error instanceof Error) error.message = `seed ${seed}: ${error.message}`;
      throw error;
    }
  }
}

test('whatever is appended, whenever it ends', () => {
  runSeeds(seeds);
  assert(seen.cleanings > seeds * 3, `${seen.cleanings} cleanings`);
  assert(seen.crashes > seeds, `${seen.crashes} crashes`);
  for (const change of ['open', 'write', 'flushSync', 'flushDirectorySync', 'rename', 'unlink'])
    assert(seen.ends.has(change), `no end before ${change}`);
});

/** Each with what the model says of it. */
const mutants: Record<string, Mutation & { readonly found: RegExp }> = {
  'directories are not flushed': {
    faults: { skipped: new Set(['flushDirectorySync']) },
    found: /.*/,
  },
  'files are not flushed': { faults: { skipped: new Set(['flushSync']) }, found: /.*/ },
  'tombstones go at once': {
    change: (job) => ({ ...job, deleteRetentionMs: 0 }),
    found: /the tombstone at \d+ goes early/,
  },
  'producers are forgotten': {
    change: (job) => ({ ...job, producers: { producerIds: [], lastOffsets: [], epochs: [] } }),
    found: /producer \d+/,
  },
  'half of the dirty part is taken for clean': {
    change: (job) => ({
      ...job,
      firstDirtyOffset: Math.floor((job.firstDirtyOffset + job.uncleanableOffset) / 2),
    }),
    found: /has a later record of .* and goes/,
  },
  'min.compaction.lag.ms is not looked at': {
    range: (log, range) => ({ ...range, uncleanableOffset: activeBaseOf(log) }),
    found: /is not to be touched/,
  },
};

for (const [name, { found, ...mutation }] of Object.entries(mutants))
  test(`mutant: ${name}`, () => {
    assert.throws(() => runSeeds(200, mutation), found);
  });

test.run();
