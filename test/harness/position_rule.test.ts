import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { type MemberEvent, PositionRule } from './position_rule.ts';

const test = suite('positions of group members');

const assigned: MemberEvent = { assigned: [0] };
const read = (from: number, to = from): MemberEvent[] =>
  Array.from({ length: to - from + 1 }, (_, at) => ({ partition: 0, offset: from + at }));
const failed = (offset: number): MemberEvent => ({ failed: { partition: 0, offset } });

/** What is committed for partition 0, or null for nothing, and what members a and b have noted since the look before. */
type Look = readonly [
  committed: number | null,
  a: readonly MemberEvent[],
  b?: readonly MemberEvent[],
];

function looks(...all: readonly Look[]): void {
  const rule = new PositionRule();
  for (const [committed, a, b = []] of all)
    rule.look(
      new Map(committed === null ? [] : [[0, committed]]),
      new Map([
        ['a', a],
        ['b', b],
      ]),
    );
}

/** Member a has read up to 9 and committed 10. */
const begun: readonly Look[] = [
  [null, [assigned, ...read(0, 9)]],
  [10, []],
];

test('a member goes on, also with what it has fetched before the group gave it up', () => {
  looks(...begun, [10, read(10, 14)], [15, read(15), [assigned, ...read(15, 20)]], [21, read(16)]);
});

test('what is committed does not go back', () => {
  assert.throws(() => looks(...begun, [9, []]), /9 is committed for partition 0, it was 10 before/);
  assert.throws(() => looks(...begun, [null, []]), /-1 is committed/);
});

test('a record that is skipped is found, with a rebalance and without', () => {
  assert.throws(() => looks(...begun, [10, read(11)]), /reads 11 .* after 9, without a rebalance/);
  const skipped: Look = [10, [], [assigned, ...read(11)]];
  assert.throws(() => looks(...begun, skipped, [12, []]), /b reads 11 .* nobody has read/);
  assert.throws(() => looks([null, [assigned, ...read(1)]], [2, []]), /a reads 1 .* nobody/);
});

test('who takes over begins at what is committed, and what is read again is no loss', () => {
  looks(...begun, [10, read(10, 12), [assigned, ...read(10, 12)]], [13, []]);
  looks(...begun, [10, [...read(10, 12), assigned, ...read(10, 12)]]);
  // a's file is read before b's: what b begins behind is noted, but not seen yet.
  looks(...begun, [10, read(10, 11), [assigned, ...read(13)]], [14, read(12)]);
});

test('a position before the commit is found, after a rebalance and without', () => {
  const anew: Look = [10, [assigned, ...read(9)]];
  assert.throws(() => looks(...begun, anew), /reads 9 .* after 9, and 10 was committed/);
  assert.throws(() => looks(...begun, [10, [], [assigned, ...read(0)]]), /b reads 0 .* after null/);
  assert.throws(() => looks(...begun, [10, read(10)], [11, read(10)]), /after 10, without/);
});

test('a member that asked for its position before the look may begin before what that has seen', () => {
  // A commit of the generation before was under way: it is seen at a look, but not by who asked before it.
  looks(...begun, [10, read(10), [assigned]], [11, []], [11, [], read(10)]);
  // The same for one that has read before, in the time of another rebalance.
  const taken: readonly Look[] = [
    [10, [], [assigned, ...read(10, 14)]],
    [15, []],
  ];
  looks(...begun, ...taken, [15, [assigned], read(15)], [16, []], [16, read(15)]);
});

test('a member that has gone on since the rebalance begins no more where it could have begun', () => {
  const goesOn: readonly Look[] = [
    [10, [assigned, ...read(10, 15)]],
    [16, read(16, 19)],
  ];
  looks(...begun, ...goesOn, [20, read(20)]);
  assert.throws(
    () => looks(...begun, ...goesOn, [20, read(12)]),
    /reads 12 .* and 16 was committed/,
  );
});

test('it begins anew once after a rebalance', () => {
  const twice: Look = [10, [assigned, ...read(10, 12), ...read(11), ...read(11)]];
  assert.throws(() => looks(...begun, twice), /reads 11 .* after 11, without a rebalance/);
});

test('the record in hand comes again when the client is told that its commit failed', () => {
  const inHand: Look = [10, [...read(10), failed(10)]];
  looks(...begun, inHand, [11, read(10, 12)]);
  assert.throws(() => looks(...begun, [10, read(10)], [11, read(10)]), /10 .* after 10, without/);
  assert.throws(() => looks(...begun, inHand, [11, read(9)]), /9 .* after 10, without/);
  assert.throws(() => looks(...begun, inHand, [11, read(12)]), /12 .* after 10, without/);
  const another: Look = [10, [...read(10), failed(9)]];
  assert.throws(() => looks(...begun, another, [11, read(10)]), /10 .* after 10, without/);
  const again: Look = [11, [...read(10), ...read(10)]];
  assert.throws(() => looks(...begun, inHand, again), /10 .* after 10, without/);
});

test.run();
