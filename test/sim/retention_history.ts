/**
 * Seeded histories of one log under retention and DeleteRecords: appends, turns, flushes, checkpoints, kills, power cuts
 * and full disks in between every step of a deletion. Checked with every deletion and after every restart:
 *
 *   the log start never goes back, and nothing below it is read
 *   nothing goes that no deletion had asked for: no record younger than retention.ms, no more bytes than retention.bytes
 *   lets go, nothing unflushed
 *   what is left is what was sent, byte for byte, and all of it that was acknowledged
 *   producers are known as exactly as if nothing had been deleted
 */
import assert from 'node:assert/strict';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { FlushSet } from '../../engine/log/flush_set.ts';
import { DiskError } from '../../engine/ports.ts';
import { LogWorld, partitionDir, splitBatches, topicId } from './log_world.ts';
import { checkFound, type Sent } from './retention_checks.ts';
import { SeededRandom } from './seeded_random.ts';

const steps = 250;

/** Rules that the driver breaks, to see that the checks notice. */
export interface Mutation {
  /** The log start counts before it is written down. */
  readonly advancesEarly?: boolean;
  /** Segments go though no snapshot of the producers is flushed. */
  readonly forgetsProducers?: boolean;
  /** All that is in memory counts as committed. */
  readonly ignoresHighWatermark?: boolean;
  /** The wall clock is a while ahead. */
  readonly clockAheadMs?: number;
}

export class RetentionHistory {
  readonly world: LogWorld;
  readonly #random: SeededRandom;
  readonly #mutation: Mutation;
  #sent: Sent[] = [];
  #refused: Sent[] = [];
  #ackedOffset = 0;
  /** The largest log start that readers have seen. */
  #shownStart = 0;
  /** The largest that anything has asked for. */
  #askedStart = 0;
  /** One write of checkpoint files at a time, as main does it. */
  #isWriting: boolean = false;
  #hasRemovalRunning: boolean = false;
  #deleted: string[] = [];
  #sequences = [0, 0, 0];
  readonly counts: Record<string, number> = {};

  constructor(seed: number, mutation: Mutation) {
    const random = new SeededRandom(seed);
    this.#random = random;
    this.#mutation = mutation;
    this.world = new LogWorld(
      {
        segmentBytes: 1_500 + random.below(1_500),
        indexIntervalBytes: random.below(3) * 300,
        retentionMs: random.chance(0.3) ? -1 : 100 + random.below(400),
        retentionBytes: random.chance(0.5) ? -1 : random.below(12_000),
        durability: random.chance(0.2) ? 'os' : 'fsync',
      },
      { seed: seed * 7 + 1, hasSyncfs: random.chance(0.5) },
    );
    this.world.flushEachMax = random.below(3) * 4;
  }

  run(): void {
    this.world.open();
    for (let step = 0; step < steps; step += 1) this.#step();
    this.#restart(true);
  }

  #count(what: string): void {
    this.counts[what] = (this.counts[what] ?? 0) + 1;
  }

  #step(): void {
    const { world } = this;
    const draw = this.#random.below(100);
    if (draw < 40) this.#append();
    else if (draw < 58) this.#endTurn();
    else if (draw < 74) this.#endFlushes();
    else if (draw < 78) this.#checkpoint();
    else if (draw < 84) this.#retain();
    else if (draw < 87) this.#deleteRecords();
    else if (draw < 92) this.#removeOld();
    else if (draw < 93) this.#unlink();
    else if (draw < 95) this.#fillOrFree();
    else if (draw < 96) this.#removeInPlace();
    else if (draw < 97) this.#restart(true);
    else if (draw < 98) this.#restart(false);
    else world.wallMs += this.#random.below(200);
  }

  get #highWatermark(): number {
    const { log } = this.world;
    if (this.#mutation.ignoresHighWatermark) return log.logEndOffset;
    return log.config.durability === 'os' ? log.writtenOffset : log.flushedOffset;
  }

  #append(): void {
    const { world } = this;
    const producerId = this.#random.below(this.#sequences.length);
    const sequence = this.#sequences[producerId] as number;
    const timestampMs = world.wallMs - this.#random.below(60);
    const value = this.#random.bytes(this.#random.below(300));
    const records = [{ timestamp: BigInt(timestampMs), value }];
    const { code, bytes, result } = world.append({ records, producerId, baseSequence: sequence });
    if (code !== ErrorCode.NONE) {
      assert.equal(code, ErrorCode.KAFKA_STORAGE_ERROR);
      return;
    }
    assert.equal(result.duplicate, false);
    this.#sequences[producerId] = sequence + 1;
    const endOffset = result.lastOffset + 1;
    this.#sent.push({ bytes, endOffset, producerId, sequence, timestampMs });
    this.#count('appends');
    world.wallMs += this.#random.below(10);
  }

  #endTurn(): void {
    const { world } = this;
    world.endTurn();
    this.#noteWritten();
    this.#checkStart();
  }

  #noteWritten(): void {
    for (const { from, error } of this.world.written.splice(0))
      if (error !== ErrorCode.NONE) this.#takeBack(from);
  }

  #takeBack(from: number): void {
    this.#count('refused');
    this.#refused.push(...this.#sent.filter(({ endOffset }) => endOffset > from));
    this.#sent = this.#sent.filter(({ endOffset }) => endOffset <= from);
    this.#recallSequences();
  }

  #recallSequences(): void {
    this.#sequences = this.#sequences.map((_, producerId) => {
      const last = this.#sent.findLast((one) => one.producerId === producerId);
      return last === undefined ? 0 : last.sequence + 1;
    });
  }

  #endFlushes(): void {
    this.world.disk.endFlushes();
    this.#noteWritten();
    this.#ackedOffset = Math.max(this.#ackedOffset, this.world.flushed.at(-1) ?? 0);
    this.#checkStart();
  }

  #checkpoint(): void {
    if (this.#isWriting) return;
    this.#isWriting = true;
    this.world.beginCheckpoint(() => {
      this.#isWriting = false;
    });
  }

  /** A look of retention at the log. */
  #retain(): void {
    const { world } = this;
    const { deletion } = world.log;
    const isIdle = this.#random.chance(0.2);
    if (isIdle) this.#rest();
    const rules = {
      highWatermark: this.#highWatermark,
      nowMs: world.wallMs + (this.#mutation.clockAheadMs ?? 0),
      isIdle,
    };
    let found = deletion.find(rules);
    checkFound(world.log, world.wallMs, found, this.#sent);
    if (found.at(-1)?.isActive) {
      if (!this.#roll()) found = found.slice(0, -1);
      else this.#count('active ones');
    }
    const target = found.at(-1)?.endOffset ?? 0;
    if (target > world.log.logStartOffset) this.#advance(target, 'retention');
  }

  /** Nothing comes for a while. */
  #rest(): void {
    for (let round = 0; round < 4; round += 1) {
      this.#endTurn();
      this.#endFlushes();
    }
    this.world.wallMs += 600;
  }

  #roll(): boolean {
    try {
      return this.world.log.deletion.roll(this.world.wallMs);
    } catch (error) {
      assert(error instanceof DiskError && error.isPassing);
      return false;
    }
  }

  #deleteRecords(): void {
    const { log } = this.world;
    const span = this.#highWatermark - log.logStartOffset;
    if (span <= 0) return;
    const keeps = this.#random.chance(0.3) ? 0 : this.#random.below(span);
    this.#advance(this.#highWatermark - keeps, 'deleteRecords');
  }

  /** As `LogStarts` and main: written down, then it counts. */
  #advance(offset: number, why: string): void {
    if (this.#isWriting) return;
    this.#isWriting = true;
    this.#askedStart = Math.max(this.#askedStart, offset);
    const { log, directory } = this.world;
    if (this.#mutation.advancesEarly) log.deletion.advanceLogStart(offset);
    const logStartOffset = Math.max(offset, log.logStartOffset);
    const { recoveryPoint } = log;
    directory.writeLogStarts(
      [{ topic: 'orders', topicId, partition: 0, recoveryPoint, logStartOffset, highWatermark: 0 }],
      (error) => {
        this.#isWriting = false;
        if (error !== null) {
          this.#count('failed checkpoints');
          return;
        }
        log.deletion.advanceLogStart(offset);
        this.#count(why);
      },
    );
    this.#checkStart();
  }

  /** The segments below the log start go. */
  #removeOld(): void {
    const { log, group } = this.world;
    if (log.deletion.countBelowStart === 0 || this.#hasRemovalRunning) return;
    if (this.#mutation.forgetsProducers) {
      this.#noteRemoved(log.deletion.remove(log.logEndOffset));
      return;
    }
    const set = new FlushSet();
    let snapshotOffset: number;
    try {
      snapshotOffset = log.deletion.prepare(set);
    } catch (error) {
      assert(error instanceof DiskError && error.isPassing);
      return;
    }
    if (snapshotOffset < 0) return;
    this.#hasRemovalRunning = true;
    group.flushFiles(set, (error) => {
      this.#hasRemovalRunning = false;
      if (error === null) this.#noteRemoved(log.deletion.remove(snapshotOffset));
    });
  }

  #noteRemoved(names: readonly string[]): void {
    this.#deleted.push(...names);
    if (names.length > 0) this.#count('removals');
  }

  /** The disk is full, and retention must go on. */
  #removeInPlace(): void {
    const { log, disk, wallMs } = this.world;
    if (this.#isWriting) return;
    if (disk.capacityBytes === Number.POSITIVE_INFINITY) disk.capacityBytes = disk.usedBytes;
    const rules = { highWatermark: this.#highWatermark, nowMs: wallMs, isIdle: false };
    const offset = log.deletion.find(rules).at(-1)?.endOffset ?? 0;
    if (offset <= log.logStartOffset) return;
    this.#askedStart = Math.max(this.#askedStart, offset);
    const before = disk.usedBytes;
    for (const name of log.deletion.removeInPlace(offset)) disk.unlink(`${partitionDir}/${name}`);
    if (disk.usedBytes < before) this.#count('in place');
    this.#checkStart();
  }

  #unlink(): void {
    for (const name of this.#deleted.splice(0)) this.world.disk.unlink(`${partitionDir}/${name}`);
  }

  #fillOrFree(): void {
    const { disk } = this.world;
    const isFree = disk.capacityBytes === Number.POSITIVE_INFINITY;
    disk.capacityBytes = isFree
      ? disk.usedBytes + this.#random.below(1_000)
      : Number.POSITIVE_INFINITY;
  }

  /** What readers see now. */
  #checkStart(): void {
    const { log } = this.world;
    assert(log.logStartOffset >= this.#shownStart, 'the log start has gone back');
    this.#shownStart = log.logStartOffset;
    assert(log.logStartOffset <= log.logEndOffset);
    if (log.logStartOffset === 0) return;
    const below = log.read(log.logStartOffset - 1, 100, log.writtenOffset, true);
    assert.equal(below, ErrorCode.OFFSET_OUT_OF_RANGE);
  }

  #restart(isPowerCut: boolean): void {
    const { world } = this;
    const isOs = world.config.durability === 'os';
    if (isPowerCut) world.crash();
    else world.kill();
    this.#count(isPowerCut ? 'power cuts' : 'kills');
    world.disk.capacityBytes = Number.POSITIVE_INFINITY;
    this.#isWriting = false;
    this.#hasRemovalRunning = false;
    this.#deleted = [];
    world.flushed.length = 0;
    world.written.length = 0;
    world.open();
    const { log } = world;
    assert.deepEqual([log.recovery.damage, log.recovery.setAside], [[], []]);
    assert(
      log.logStartOffset >= this.#shownStart,
      `the log began at ${this.#shownStart}, and now at ${log.logStartOffset}`,
    );
    assert(
      log.logStartOffset <= Math.max(this.#shownStart, this.#askedStart),
      `the log begins at ${log.logStartOffset}, and nothing asked for more than ${this.#askedStart}`,
    );
    if (isOs && isPowerCut) this.#ackedOffset = Math.min(this.#ackedOffset, log.logEndOffset);
    assert(log.logEndOffset >= this.#ackedOffset, 'acknowledged records are lost');
    this.#shownStart = log.logStartOffset;
    this.#checkStart();
    this.#checkRecords();
    this.#checkProducers(isOs);
    if (isPowerCut) this.#refused = [];
    const leftovers = world.disk.list(partitionDir)?.filter((name) => name.endsWith('.deleted'));
    assert.deepEqual(leftovers, []);
    if (this.#random.chance(0.8)) world.settle();
    this.#endFlushes();
  }

  /** What is left is one unbroken sequence of what was sent. */
  #checkRecords(): void {
    const { world } = this;
    const { logStartOffset, logEndOffset } = world.log;
    const gone = this.#sent.filter(({ endOffset }) => endOffset <= logStartOffset);
    let next = logStartOffset;
    const kept: Sent[] = [];
    for (const batch of splitBatches(world.readAll())) {
      if (batch.lastOffset < logStartOffset) continue;
      assert.equal(batch.baseOffset, next, 'an unbroken sequence');
      next = batch.lastOffset + 1;
      const is = (one: Sent): boolean => Buffer.compare(one.bytes, batch.bytes) === 0;
      const sent = this.#sent.find(is) ?? this.#refused.find(is);
      assert(sent !== undefined, `the batch at ${batch.baseOffset} is none that was sent`);
      kept.push(sent);
    }
    assert.equal(next, logEndOffset);
    this.#sent = [...gone, ...kept];
    this.#recallSequences();
  }

  /** @param mayBeBehind a power cut may have taken batches that were deleted unflushed, and the snapshots that had them */
  #checkProducers(mayBeBehind: boolean): void {
    const { producers } = this.world.log;
    for (const [producerId, next] of this.#sequences.entries()) {
      const entry = producers.get(producerId);
      if (mayBeBehind) {
        const last = entry?.lastSequence ?? -1;
        this.#sent = this.#sent.filter(
          (one) => one.producerId !== producerId || one.sequence <= last,
        );
        this.#sequences[producerId] = last + 1;
        continue;
      }
      assert.equal(
        entry?.lastSequence ?? -1,
        next - 1,
        `producer ${producerId} is not known as it was`,
      );
      const own = this.#sent.filter((one) => one.producerId === producerId).slice(-5);
      assert.deepEqual(
        entry?.batches.slice(0, entry.batchCount).map(({ lastOffset }) => lastOffset + 1) ?? [],
        own.map(({ endOffset }) => endOffset),
        'the last five batches are known',
      );
    }
  }
}
