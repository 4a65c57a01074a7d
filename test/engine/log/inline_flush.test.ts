import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { LogWorld } from '../../sim/log_world.ts';

const test = suite('inline_flush');

/** A world whose first flush, with its directories, is behind it. */
function inlineWorld(): LogWorld {
  const world = new LogWorld();
  world.inlineFlushBytesMax = 1000;
  world.open();
  world.put();
  world.settle();
  world.flushed.length = 0;
  return world;
}

test('a small write that is alone is flushed within the turn', () => {
  const world = inlineWorld();
  world.put();
  world.endTurn();
  assert.deepEqual(world.flushed, [2]);
  world.crash();
  world.reopen();
  assert.equal(world.log.logEndOffset, 2);
});

test('a larger one is not', () => {
  const world = inlineWorld();
  world.put({ valueBytes: 2000 });
  world.endTurn();
  assert.deepEqual(world.flushed, []);
  world.settle();
  assert.deepEqual(world.flushed, [2]);
});

test('a device that has become slow is waited for elsewhere, and tried again later', () => {
  const world = inlineWorld();
  world.disk.onFlushSync = () => {
    world.monotonicMs += 30_000;
  };
  world.put();
  world.endTurn();
  assert.deepEqual(world.flushed, [2], 'the first one holds up the thread');
  world.put();
  world.endTurn();
  assert.deepEqual(world.flushed, [2], 'the next one does not');
  world.settle();
  assert.deepEqual(world.flushed, [2, 3]);
  world.disk.onFlushSync = () => {};
  world.monotonicMs += 1000;
  world.put();
  world.endTurn();
  assert.deepEqual(world.flushed, [2, 3, 4]);
});

test('its failure takes the directory offline as any other', () => {
  const world = inlineWorld();
  world.disk.failingFlushes = 1;
  world.put();
  world.settle();
  assert.equal(world.failures.length, 1);
  assert.deepEqual(world.flushed, []);
  assert.equal(world.append().code, ErrorCode.KAFKA_STORAGE_ERROR);
});

test.run();
