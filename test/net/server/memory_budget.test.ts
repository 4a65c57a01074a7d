import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { type BudgetWaiter, MemoryBudget } from '../../../net/server/memory_budget.ts';

const test = suite('memory_budget');

function waiter(name: string, log: string[]): BudgetWaiter {
  return { onMemoryGranted: () => log.push(name) };
}

test('reservations end at the limit, and a release makes room', () => {
  const budget = new MemoryBudget(100);
  assert(budget.tryReserve(60));
  assert(!budget.tryReserve(50));
  assert(budget.tryReserve(40));
  budget.release(60);
  assert(budget.tryReserve(50));
  assert.equal(budget.usedBytes, 90);
});

test('who waits is served in order, and nobody overtakes', () => {
  const log: string[] = [];
  const budget = new MemoryBudget(100);
  assert(budget.tryReserve(90));
  budget.wait(waiter('large', log), 80);
  budget.wait(waiter('small', log), 5);
  assert(!budget.tryReserve(1), 'a newcomer overtook');
  budget.grantWaiting();
  assert.deepEqual(log, [], 'the small one overtook the large one');
  budget.release(90);
  budget.grantWaiting();
  assert.deepEqual(log, ['large', 'small']);
  assert.equal(budget.usedBytes, 85);
  assert.equal(budget.waitingCount, 0);
});

test('a request larger than the whole budget is served alone', () => {
  const log: string[] = [];
  const budget = new MemoryBudget(100);
  let rooms = 0;
  budget.onRoom = () => {
    rooms += 1;
  };
  assert(budget.tryReserve(1_000));
  budget.wait(waiter('giant', log), 2_000);
  budget.grantWaiting();
  assert.deepEqual(log, []);
  budget.release(1_000);
  assert.equal(rooms, 1);
  budget.grantWaiting();
  assert.deepEqual(log, ['giant']);
  budget.release(2_000);
  assert.equal(budget.usedBytes, 0);
});

test('one that leaves the line lets the next one in', () => {
  const log: string[] = [];
  const budget = new MemoryBudget(100);
  let rooms = 0;
  budget.onRoom = () => {
    rooms += 1;
  };
  assert(budget.tryReserve(50));
  const gone = waiter('gone', log);
  budget.wait(gone, 80);
  budget.wait(waiter('next', log), 10);
  budget.cancel(gone);
  assert.equal(rooms, 1);
  assert.equal(budget.waitingCount, 1);
  budget.grantWaiting();
  assert.deepEqual(log, ['next']);
});

const mebibyte = 1024 * 1024;

test('large requests that never end leave room for small ones', () => {
  const log: string[] = [];
  const budget = new MemoryBudget(100 * mebibyte);
  assert(budget.tryReserve(50 * mebibyte));
  assert(!budget.tryReserve(30 * mebibyte), 'large requests took more than their share');
  budget.wait(waiter('large', log), 30 * mebibyte);
  assert(!budget.tryReserve(2 * mebibyte), 'a large newcomer overtook a large one');
  for (let count = 0; count < 25; count += 1) assert(budget.tryReserve(mebibyte), `small ${count}`);
  assert(!budget.tryReserve(mebibyte), 'small requests took what a large one waits for');
  budget.wait(waiter('small', log), mebibyte);
  budget.grantWaiting();
  assert.deepEqual(log, []);
  budget.release(mebibyte);
  budget.grantWaiting();
  assert.deepEqual(log, ['small']);
  budget.release(50 * mebibyte);
  budget.grantWaiting();
  assert.deepEqual(log, ['small', 'large']);
  assert.equal(budget.usedBytes, 55 * mebibyte);
});

test('small requests may use all of it while no large one waits', () => {
  const log: string[] = [];
  const budget = new MemoryBudget(100 * mebibyte);
  for (let count = 0; count < 100; count += 1) assert(budget.tryReserve(mebibyte));
  budget.wait(waiter('large', log), 60 * mebibyte);
  for (let count = 0; count < 75; count += 1) {
    budget.release(mebibyte);
    budget.grantWaiting();
    assert.deepEqual(log, count < 59 ? [] : ['large'], `after ${count + 1} releases`);
    if (count < 59)
      assert(!budget.tryReserve(mebibyte), 'a small one took what a large one waits for');
  }
});

test('a release too many is noticed', () => {
  const budget = new MemoryBudget(100);
  assert.throws(() => budget.release(1), /released twice/);
});

test.run();
