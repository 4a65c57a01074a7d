import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { newTimer, type Timer, TimerQueue } from '../../../engine/groups/timers.ts';
import { SeededRandom } from '../../sim/seeded_random.ts';

const test = suite('timers');

test('timers fire at their last deadline, earliest first, as a plain list would have them', () => {
  const random = new SeededRandom(1);
  const queue = new TimerQueue();
  const timers: Timer[] = Array.from({ length: 20 }, () => newTimer(() => undefined));
  const model = new Map<Timer, number>();
  let nowMs = 0;
  for (let step = 0; step < 20_000; step += 1) {
    const timer = timers[random.below(timers.length)];
    assert(timer);
    if (random.chance(0.6)) {
      const deadlineMs = nowMs + random.below(50);
      queue.set(timer, deadlineMs);
      model.set(timer, deadlineMs);
    } else if (random.chance(0.3)) {
      queue.clear(timer);
      model.delete(timer);
    } else nowMs += random.below(10);
    const earliest = (): number => Math.min(Infinity, ...model.values());
    assert.equal(queue.nextDeadlineMs, earliest());
    for (let due = queue.takeDue(nowMs); due !== null; due = queue.takeDue(nowMs)) {
      assert.equal(model.get(due), earliest());
      assert(earliest() <= nowMs);
      model.delete(due);
    }
    assert(earliest() > nowMs);
  }
});

test.run();
