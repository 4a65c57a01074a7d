import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { LogWorld, partitionDir } from '../../sim/log_world.ts';

const test = suite('state of a log');

test('indexes of a segment closed between checkpoints outlive a power cut', () => {
  for (let seed = 1; seed <= 20; seed += 1) {
    const world = new LogWorld({ segmentBytes: 1_500, indexIntervalBytes: 0 }, { seed });
    world.open();
    for (let sequence = 0; sequence < 40; sequence += 1) {
      const value = new Uint8Array(200);
      const records = [{ timestamp: BigInt(1_000 + sequence), value }];
      world.append({ records, producerId: 1, baseSequence: sequence });
      world.endTurn();
      while (world.disk.waitingFlushes > 0) world.disk.endFlushes();
    }
    let isDone = false;
    world.beginCheckpoint(() => {
      isDone = true;
    });
    while (world.disk.waitingFlushes > 0) world.disk.endFlushes();
    assert(isDone);
    const sizes = (): (readonly [string, number | undefined])[] =>
      (world.disk.list(partitionDir) ?? [])
        .filter((name) => /index$/.test(name))
        .map((name) => [name, world.disk.readFile(`${partitionDir}/${name}`)?.length] as const);
    const before = sizes();
    assert(before.length > 4);
    world.crash();
    assert.deepEqual(sizes(), before, `seed ${seed}`);
  }
});

test.run();
