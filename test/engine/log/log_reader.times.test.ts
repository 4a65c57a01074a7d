import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { LogWorld, partitionDir, startMs } from '../../sim/log_world.ts';

const test = suite('log reader: look-ups by time over many segments');

/** A log of so many segments, with one batch at each second and a last one, closed and opened again. */
function closedLog(segments: number): LogWorld {
  const world = new LogWorld({ segmentBytes: 200 }).open();
  for (let at = 0; at < segments; at += 1) {
    world.put({ atMs: [at * 1_000, at * 1_000 + 1], valueBytes: 50 });
    world.settle();
  }
  world.close();
  return world.reopen();
}

/** Names of the index files that are read whole from here on. */
function indexReads({ disk }: LogWorld): Set<string> {
  const names = new Set<string>();
  const open = disk.open.bind(disk);
  disk.open = (path, create) => {
    if (path.endsWith('.index')) names.add(path);
    return open(path, create);
  };
  return names;
}

const at = (ms: number): bigint => BigInt(startMs + ms);

test('the indexes of segments that end too early are not loaded', () => {
  const world = closedLog(40);
  assert.equal(world.log.segmentCount, 40);
  const loaded = indexReads(world);
  const found = world.log.offsetForTimestamp(at(30_001));
  assert.deepEqual([found?.offset, found?.timestamp], [61, at(30_001)]);
  assert.deepEqual([...loaded], [`${partitionDir}/00000000000000000060.index`]);
  assert.equal(world.log.offsetForTimestamp(at(99_999)), null);
  assert.equal(world.log.offsetOfMaxTimestamp()?.offset, 79);
  assert(loaded.size <= 2);
});

test('every time is found, as in a log whose indexes are all loaded', () => {
  const world = closedLog(20);
  for (let second = 19; second >= 0; second -= 1) {
    assert.equal(world.log.offsetForTimestamp(at(second * 1_000))?.offset, second * 2);
    assert.equal(world.log.offsetForTimestamp(at(second * 1_000 + 1))?.offset, second * 2 + 1);
  }
});

test('a time index that is missing, empty, padded or cut short says nothing: the segment is looked at', () => {
  for (const damage of ['missing', 'empty', 'padded', 'cut'] as const) {
    const world = closedLog(5);
    world.close();
    const path = `${partitionDir}/00000000000000000004.timeindex`;
    const bytes = world.disk.bytesOf(path);
    if (damage === 'missing') world.disk.unlink(path);
    if (damage === 'empty') world.disk.writeFile(path, new Uint8Array(0));
    if (damage === 'padded') world.disk.writeFile(path, Buffer.concat([bytes, Buffer.alloc(240)]));
    if (damage === 'cut') world.disk.writeFile(path, bytes.subarray(0, bytes.length - 5));
    world.reopen();
    assert.equal(world.log.offsetForTimestamp(at(2_001))?.offset, 5, damage);
  }
});

test.run();
