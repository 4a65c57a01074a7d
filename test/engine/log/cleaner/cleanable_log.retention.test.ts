/** Retention beside a cleaning, and an end of the process or of the power at any change that the cleaner makes. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { FlushSet } from '../../../../engine/log/flush_set.ts';
import { cleanLog, FaultyDisk, Interrupted } from '../../../sim/cleaning.ts';
import { recordsIn } from '../../../sim/compacted_model.ts';
import { LogWorld, partitionDir, startMs } from '../../../sim/log_world.ts';

const test = suite('cleanable_log.retention');
const logStart = 8;
const count = 16;

/** Two keys in turn, each record from a producer of its own, three to a segment. */
function makeWorld(seed: number): LogWorld {
  const cleanupPolicy = { compact: true, delete: true };
  const world = new LogWorld({ segmentBytes: 300, cleanupPolicy }, { seed }).open();
  for (let number = 0; number < count; number += 1) {
    const key = new TextEncoder().encode(`k${number % 2}`);
    const records = [{ key, value: new Uint8Array(20), timestamp: BigInt(startMs) }];
    world.put({ records, producerId: number, baseSequence: 0 });
    world.settle();
  }
  world.checkpoint();
  // Neighbours become one.
  world.config = { ...world.config, segmentBytes: 700 };
  world.log.updateConfig(world.config);
  return world;
}

/** As a shard does it: the start in the checkpoint, the snapshot flushed, the segments by another name. */
function deleteOld(world: LogWorld, isStartStored: boolean): void {
  const { deletion } = world.log;
  if (isStartStored) {
    let isStored = false;
    world.directory.writeLogStarts([{ ...world.marks(), logStartOffset: logStart }], (error) => {
      assert.equal(error, null);
      isStored = true;
    });
    world.settle();
    assert(isStored);
    deletion.advanceLogStart(logStart);
  }
  const set = new FlushSet();
  const snapshotOffset = deletion.prepare(set);
  if (snapshotOffset < 0) return;
  set.flushSync(world.disk);
  deletion.remove(snapshotOffset);
  world.settle();
}

interface Ending {
  readonly seed: number;
  readonly step: number;
  readonly endAfter: number;
  readonly isPowerCut: boolean;
}

/** Returns false when the cleaning came to its end before either happened. */
function run({ seed, step, endAfter, isPowerCut }: Ending): boolean {
  const world = makeWorld(seed);
  let at = 0;
  let isEnded = false;
  const faulty = new FaultyDisk(world.disk, { endAfter });
  try {
    cleanLog(world.log, {
      disk: faulty.disk,
      nowMs: startMs,
      onStep: () => {
        if (at === step) deleteOld(world, true);
        else if (at > step) deleteOld(world, false);
        at += 1;
      },
    });
  } catch (error) {
    isEnded = error instanceof Interrupted;
    if (!isEnded && !/has changed/.test(String(error))) throw error;
  }
  const isDeleted = world.log.logStartOffset === logStart;
  for (let start = 0; start < 2; start += 1) {
    if (isPowerCut) world.crash();
    else world.kill();
    world.reopen();
    check(world, isDeleted);
    deleteOld(world, true);
    cleanLog(world.log, { disk: world.disk, nowMs: startMs });
    check(world, true);
  }
  return isEnded || isDeleted;
}

function check(world: LogWorld, isDeleted: boolean): void {
  const { log } = world;
  if (isDeleted) assert.equal(log.logStartOffset, logStart);
  assert.equal(log.logEndOffset, count);
  assert.deepEqual(log.recovery.damage, []);
  assert.deepEqual(log.recovery.setAside, []);
  const offsets = recordsIn(world.readAll()).map(({ offset }) => offset);
  assert.deepEqual(
    offsets,
    [...new Set(offsets)].sort((a, b) => a - b),
  );
  for (const kept of [count - 2, count - 1]) assert(offsets.includes(kept), `${offsets}`);
  for (let producerId = 0; producerId < count; producerId += 1)
    assert.equal(log.producers.get(producerId)?.lastSequence, 0, `producer ${producerId}`);
  const left = world.disk.list(partitionDir)!.filter((name) => /swap|cleaned/.test(name));
  assert.deepEqual(left, []);
}

for (const isPowerCut of [false, true])
  test(`deletions at any step of a cleaning, and ${isPowerCut ? 'a power cut' : 'an end'} at any change`, () => {
    let runs = 0;
    for (let step = 0; step < 8; step += 1) {
      let endAfter = step % 3;
      for (let isMore = true; isMore && endAfter < 120; endAfter += 3) {
        const seed = 1 + runs;
        isMore = run({ seed, step, endAfter, isPowerCut });
        runs += 1;
      }
    }
    assert(runs > 100, `${runs}`);
  });

test.run();
