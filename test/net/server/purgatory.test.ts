import assert from 'node:assert/strict';
import { suite } from 'uvu';
import type { Awaited } from '../../../engine/awaited.ts';
import { DeadlineHeap } from '../../../net/server/deadline_heap.ts';
import { type Parkable, Purgatory, type PurgatoryClock } from '../../../net/server/purgatory.ts';

const test = suite('purgatory');

const keyNames = ['t-0', 't-1', 't-2', 'k'] as const;
let keys: Record<(typeof keyNames)[number], Awaited>;

test.before.each(() => {
  const made = keyNames.map((name) => [name, { waiters: null }] as const);
  keys = Object.fromEntries(made) as typeof keys;
});

/** Virtual time: `advance` runs the timer if it is due. */
class FakeClock implements PurgatoryClock {
  ms: number = 0;
  timersSet: number = 0;
  #timer: { callback: () => void; atMs: number } | null = null;

  nowMs(): number {
    return this.ms;
  }
  setTimer(callback: () => void, delayMs: number): unknown {
    assert.equal(this.#timer, null, 'two timers');
    this.timersSet += 1;
    this.#timer = { callback, atMs: this.ms + delayMs };
    return this.#timer;
  }
  clearTimer(timer: unknown): void {
    assert.equal(timer, this.#timer);
    this.#timer = null;
  }
  advanceTo(ms: number): void {
    this.ms = ms;
    const timer = this.#timer;
    if (timer === null || timer.atMs > ms) return;
    this.#timer = null;
    timer.callback();
  }
}

function parkable(name: string, log: string[], enough: () => boolean = () => true): Parkable {
  return {
    tryComplete: () => {
      const complete = enough();
      log.push(`${name} ${complete ? 'completed' : 'tried'}`);
      return complete;
    },
    expire: () => log.push(`${name} expired`),
  };
}

test('a request completes when one of its keys is woken, and only then', () => {
  const log: string[] = [];
  const purgatory = new Purgatory(new FakeClock());
  purgatory.park(parkable('a', log), [keys['t-0'], keys['t-1']], 500);
  purgatory.park(parkable('b', log), [keys['t-1']], 500);
  assert.equal(purgatory.wake([keys['t-2']]), 0);
  assert.equal(purgatory.wake([keys['t-0']]), 1);
  assert.deepEqual(log, ['a completed']);
  assert.equal(purgatory.wake([keys['t-0']]), 0);
  assert(!purgatory.hasWaiters(keys['t-0']));
  assert(purgatory.hasWaiters(keys['t-1']));
  assert.equal(purgatory.wake([keys['t-1']]), 1);
  assert.deepEqual(log, ['a completed', 'b completed']);
  assert.equal(purgatory.size, 0);
});

test('a request that has not got enough stays parked until its deadline', () => {
  const log: string[] = [];
  const clock = new FakeClock();
  const purgatory = new Purgatory(clock);
  purgatory.park(
    parkable('a', log, () => false),
    [keys['t-1']],
    500,
  );
  purgatory.park(parkable('b', log), [keys['t-2']], 100);
  purgatory.wake([keys['t-1']]);
  clock.advanceTo(99);
  assert.deepEqual(log, ['a tried']);
  clock.advanceTo(100);
  assert.deepEqual(log, ['a tried', 'b expired']);
  clock.advanceTo(500);
  assert.deepEqual(log, ['a tried', 'b expired', 'a expired']);
  assert.equal(purgatory.size, 0);
  assert(!purgatory.hasWaiters(keys['t-1']) && !purgatory.hasWaiters(keys['t-2']));
});

test('long polls that end early do not move the timer each time', () => {
  const clock = new FakeClock();
  const purgatory = new Purgatory(clock);
  for (let at = 0; at < 100; at += 1) {
    purgatory.park(parkable('x', []), [keys['t-1']], 500);
    clock.ms += 1;
    purgatory.wake([keys['t-1']]);
  }
  assert.equal(clock.timersSet, 1);
});

test('requests may park, wake and cancel from within', () => {
  const log: string[] = [];
  const purgatory = new Purgatory(new FakeClock());
  const other = purgatory.park(parkable('other', log), [keys.k], 500);
  let again = 0;
  const greedy: Parkable = {
    tryComplete: () => {
      again += 1;
      purgatory.cancel(other);
      purgatory.park(parkable('second', log), [keys.k], 500);
      return true;
    },
    expire: () => assert.fail('expired'),
  };
  purgatory.cancel(other);
  purgatory.park(greedy, [keys.k], 500);
  purgatory.wake([keys.k]);
  assert.equal(again, 1);
  assert.equal(purgatory.size, 1, 'what was parked during the wake is for the next one');
  assert.deepEqual(log, []);
  assert.equal(purgatory.cancel(other), false);
  purgatory.wake([keys.k]);
  assert.deepEqual(log, ['second completed']);
});

test('at the end everything expires at once', () => {
  const log: string[] = [];
  const purgatory = new Purgatory(new FakeClock());
  purgatory.park(parkable('late', log), [keys['t-1']], 900);
  purgatory.park(parkable('soon', log), [keys['t-1']], 100);
  purgatory.expireAll();
  assert.deepEqual(log, ['soon expired', 'late expired']);
  assert.equal(purgatory.size, 0);
});

test('the real clock expires, too', async () => {
  const purgatory = new Purgatory();
  const keepAlive = setInterval(() => {}, 1_000);
  const startedMs = performance.now();
  await new Promise<void>((resolve) => {
    purgatory.park({ tryComplete: () => false, expire: resolve }, [keys['t-1']], 20);
  });
  clearInterval(keepAlive);
  assert(performance.now() - startedMs >= 19);
});

test('the heap gives the earliest, whatever was taken out of its middle', () => {
  for (let seed = 1; seed <= 50; seed += 1) {
    let state = seed;
    const random = (bound: number): number => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
      return (state >> 8) % bound;
    };
    const heap = new DeadlineHeap<{ deadlineMs: number; heapIndex: number }>();
    const model: { deadlineMs: number; heapIndex: number }[] = [];
    for (let step = 0; step < 300; step += 1) {
      if (model.length > 0 && random(5) < 2) {
        const [item] = model.splice(random(model.length), 1);
        heap.remove(item as { deadlineMs: number; heapIndex: number });
      } else {
        const item = { deadlineMs: random(50), heapIndex: -1 };
        model.push(item);
        heap.push(item);
      }
      const least = Math.min(...model.map((item) => item.deadlineMs));
      assert.equal(heap.peek()?.deadlineMs ?? Number.POSITIVE_INFINITY, least, `seed ${seed}`);
      assert.equal(heap.size, model.length);
    }
  }
});

test('the longest wait there is in a request fits a timer, rounding and all', () => {
  const clock = new FakeClock();
  const setTimer = clock.setTimer.bind(clock);
  clock.setTimer = (callback, delayMs) => {
    assert(delayMs <= 0x7fffffff, `${delayMs} ms`);
    return setTimer(callback, delayMs);
  };
  const log: string[] = [];
  // Here the sum and the difference round up.
  clock.ms = 4_852_383.119_509_471;
  new Purgatory(clock).park(parkable('a', log), [keys.k], 0x7fffffff);
  clock.advanceTo(clock.ms + 1);
  assert.deepEqual(log, []);
});

test('a request under many keys that are woken together tries once', () => {
  const log: string[] = [];
  const purgatory = new Purgatory(new FakeClock());
  const all = [keys['t-0'], keys['t-1'], keys['t-2']];
  purgatory.park(
    parkable('a', log, () => false),
    all,
    500,
  );
  purgatory.park(parkable('b', log), [keys['t-2']], 500);
  assert.equal(purgatory.wake([...all, keys.k]), 1);
  assert.deepEqual(log, ['a tried', 'b completed']);
});

test.run();
