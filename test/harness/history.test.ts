import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { assertNoViolations, History, idOf, type Observed, valueFor } from './history.ts';

const test = suite('history');

/** Two producers and ten records each in partition t-0, all acked at their offsets, and the log that goes with it. */
function goodRun(): { history: History; log: Observed[] } {
  const history = new History();
  const log: Observed[] = [];
  for (let index = 0; index < 20; index += 1) {
    const producer = index % 2 === 0 ? 'a' : 'b';
    const id = `${producer}${index}`;
    history.sent(id, 't-0', producer);
    history.acked(id, index, index);
    log.push({ offset: index, id });
  }
  return { history, log };
}

/** Offsets anew from 0, so that a canary breaks one rule and not the offsets, too. */
function renumbered(log: readonly Observed[]): Observed[] {
  return log.map(({ id }, offset) => ({ offset, id }));
}

function kinds(history: History, log: readonly Observed[], at?: number): string[] {
  return [...new Set(history.check('t-0', log, at).map(({ kind }) => kind))].sort((a, b) =>
    a.localeCompare(b),
  );
}

test('a log that holds what was acknowledged passes', () => {
  const { history, log } = goodRun();
  assert.deepEqual(history.check('t-0', log), []);
  assertNoViolations(history.check('t-0', log));
});

test('a record of unknown fate may be there or not', () => {
  const { history, log } = goodRun();
  history.sent('a-unknown', 't-0', 'a');
  assert.deepEqual(kinds(history, log), []);
  assert.deepEqual(kinds(history, [...log, { offset: 20, id: 'a-unknown' }]), []);
});

test('canary: an acknowledged record that is gone is found', () => {
  const { history, log } = goodRun();
  assert.deepEqual(kinds(history, log.slice(0, -1)), ['lost']);
  assert.throws(() => assertNoViolations(history.check('t-0', log.slice(0, -1))), /lost.*b19/);
});

test('canary: a record cut out of the middle is found, and so are those that moved', () => {
  const { history, log } = goodRun();
  const cut = renumbered(log.filter(({ id }) => id !== 'a6'));
  assert.deepEqual(kinds(history, cut), ['lost', 'moved']);
});

test('canary: a record that is there twice is found', () => {
  const { history, log } = goodRun();
  const again = [...log, { offset: 20, id: 'b19' }];
  assert.deepEqual(kinds(history, again), ['duplicated']);
});

test('canary: two records of one producer in the wrong order are found, even if nobody knows their offsets', () => {
  const history = new History();
  for (const id of ['a0', 'a1', 'a2']) {
    history.sent(id, 't-0', 'a');
    history.acked(id, -1);
  }
  const log = renumbered(['a0', 'a2', 'a1'].map((id) => ({ offset: 0, id })));
  assert.deepEqual(kinds(history, log), ['reordered']);
});

test('records of two producers may interleave in any way', () => {
  const history = new History();
  for (const id of ['a0', 'a1', 'b0', 'b1']) {
    history.sent(id, 't-0', id.slice(0, 1));
    history.acked(id, -1);
  }
  for (const ids of ['a0 b0 a1 b1', 'b0 b1 a0 a1', 'a0 a1 b0 b1']) {
    const log = ids.split(' ').map((id, offset) => ({ offset, id }));
    assert.deepEqual(kinds(history, log), [], ids);
  }
});

test('canary: a record that nobody sent is found', () => {
  const { history, log } = goodRun();
  assert.deepEqual(kinds(history, [...log, { offset: 20, id: 'nobody' }]), ['phantom']);
  assert.deepEqual(kinds(history, [...log, { offset: 20, id: null }]), ['phantom']);
});

test('canary: a record of another partition is found', () => {
  const { history, log } = goodRun();
  history.sent('elsewhere', 't-1', 'a');
  assert.deepEqual(kinds(history, [...log, { offset: 20, id: 'elsewhere' }]), ['phantom']);
});

test('canary: a record that was refused and is there all the same is found', () => {
  const { history, log } = goodRun();
  history.sent('refused', 't-0', 'a');
  history.failed('refused');
  assert.deepEqual(kinds(history, log), []);
  assert.deepEqual(kinds(history, [...log, { offset: 20, id: 'refused' }]), ['phantom']);
});

test('canary: an offset that is skipped is found', () => {
  const { history, log } = goodRun();
  history.sent('late', 't-0', 'a');
  assert.deepEqual(kinds(history, [...log, { offset: 21, id: 'late' }]), ['gap']);
});

test('canary: what a consumer saw and is gone later is found', () => {
  const { history, log } = goodRun();
  history.sent('seen', 't-0', 'a');
  history.seen('t-0', { offset: 20, id: 'seen' });
  assert.deepEqual(kinds(history, log), ['lost']);
});

test('what a consumer cannot have seen is an error at once', () => {
  const { history } = goodRun();
  assert.throws(() => history.seen('t-0', { offset: 3, id: 'nobody' }), /not sent there/);
  assert.throws(() => history.seen('t-0', { offset: 3, id: null }), /damaged/);
  assert.throws(() => history.seen('t-0', { offset: 4, id: 'b3' }), /at 3 and at 4/);
});

test('of a log that was cut at a point in time, only what was acknowledged until then must be there', () => {
  const { history, log } = goodRun();
  assert.deepEqual(kinds(history, log.slice(0, 10), 9), []);
  assert.deepEqual(kinds(history, log.slice(0, 15), 9), []);
  assert.deepEqual(kinds(history, log.slice(0, 9), 9), ['lost']);
});

test('an acknowledgement for two offsets is an error', () => {
  const { history } = goodRun();
  assert.throws(() => history.acked('a0', 5), /at 0 and at 5/);
  history.acked('a0', 0);
});

test('a value carries its id, and any changed byte shows', () => {
  for (const length of [0, 5, 64, 1000, 1001, 1002, 1003]) {
    const value = valueFor('p1.t-0.42', length);
    assert.equal(value.length, Math.max(length, 10));
    assert.equal(idOf(value), 'p1.t-0.42');
    for (let at = 10; at < value.length; at += 97) {
      const damaged = Uint8Array.from(value);
      damaged[at] = (damaged[at] as number) ^ 1;
      assert.equal(idOf(damaged), null, `byte ${at} of ${length}`);
    }
  }
  assert.equal(idOf(null), null);
  assert.equal(idOf(new Uint8Array(20)), null);
});

test.run();
