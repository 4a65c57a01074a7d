import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ReadAhead } from '../../engine/read_ahead.ts';
import { SimPageCache } from '../sim/page_cache.ts';

const test = suite('read ahead');

const piece = 1_000;

class Devices extends SimPageCache {
  // Descriptors 100 to 199 are of device 1, and so on.
  override deviceOf(fd: number): number {
    return Math.floor(fd / 100);
  }
}

function start(piecesMax = 4, devicePiecesMax = 2): { cache: Devices; ahead: ReadAhead } {
  const cache = new Devices((fd) => fd, piece);
  cache.drop();
  return { cache, ahead: new ReadAhead({ pageCache: cache, piecesMax, devicePiecesMax }) };
}

/** Ends the oldest fill and says whose it was. */
function endOne(cache: Devices): number {
  const fill = cache.fills[0];
  assert(fill !== undefined, 'nothing is being read');
  fill.end();
  return fill.fd;
}

test('a range is read in pieces, in order, and its asker told once at the end', () => {
  const { cache, ahead } = start();
  let done = 0;
  ahead.request({}, 100, 5_000, 2_500, () => {
    done += 1;
  });
  const read: [number, number][] = [];
  while (cache.fills.length > 0) {
    assert.equal(done, 0);
    assert.equal(cache.fills.length, 1, 'two pieces of one range at a time');
    const { position, length } = cache.fills[0]!;
    read.push([position, length]);
    cache.endFills();
  }
  assert.deepEqual(read, [
    [5_000, 1_000],
    [6_000, 1_000],
    [7_000, 500],
  ]);
  assert.equal(done, 1);
});

test('askers take turns piece by piece, however much each has asked for', () => {
  const { cache, ahead } = start(1, 1);
  const done: string[] = [];
  const greedy = {};
  ahead.request(greedy, 101, 0, 4 * piece, () => done.push('greedy 1'));
  ahead.request(greedy, 101, 9_000, piece, () => done.push('greedy 2'));
  ahead.request({}, 102, 0, 2 * piece, () => done.push('b'));
  ahead.request({}, 103, 0, piece, () => done.push('c'));
  const order = [];
  while (cache.fills.length > 0) order.push(endOne(cache));
  assert.deepEqual(order, [101, 102, 103, 101, 102, 101, 101, 101]);
  assert.deepEqual(done, ['c', 'b', 'greedy 1', 'greedy 2']);
});

test('so many pieces are under way for a device, and so many in all', () => {
  const { cache, ahead } = start(3, 2);
  const ask = (fd: number): void => void ahead.request({}, fd, 0, piece, () => {});
  for (const fd of [101, 102, 103, 201, 202, 301]) ask(fd);
  assert.deepEqual(
    cache.fills.map(({ fd }) => fd),
    [101, 102, 201],
  );
  endOne(cache);
  assert.equal(cache.fills.length, 3);
  const seen = new Set<number>();
  while (cache.fills.length > 0) {
    assert(cache.fills.length <= 3);
    assert(cache.fills.filter(({ fd }) => fd < 200).length <= 2);
    seen.add(endOne(cache));
  }
  assert.equal(seen.size, 5, 'one was ended before');
});

test('a stalled device leaves room for another one', () => {
  const { cache, ahead } = start(3, 2);
  for (let count = 0; count < 5; count += 1) ahead.request({}, 100, 0, piece, () => {});
  let done = 0;
  for (let count = 0; count < 5; count += 1)
    ahead.request({}, 200, 0, piece, () => {
      done += 1;
    });
  for (let count = 0; count < 5; count += 1) cache.fills.find(({ fd }) => fd === 200)?.end();
  assert.equal(done, 5);
});

test('what is cancelled before its turn is never read', () => {
  const { cache, ahead } = start(1, 1);
  const done: string[] = [];
  const asker = {};
  ahead.request({}, 101, 0, piece, () => done.push('a'));
  const second = ahead.request(asker, 102, 0, piece, () => done.push('b'));
  const third = ahead.request(asker, 103, 0, piece, () => done.push('c'));
  ahead.request({}, 104, 0, piece, () => done.push('d'));
  assert(second.cancel());
  assert(third.cancel());
  const order = [];
  while (cache.fills.length > 0) order.push(endOne(cache));
  assert.deepEqual(order, [101, 104]);
  assert.deepEqual(done, ['a', 'd']);
  assert(third.cancel(), 'twice is no harm');
  ahead.request(asker, 105, 0, piece, () => done.push('e'));
  cache.endFills();
  assert.deepEqual(done, ['a', 'd', 'e']);
});

test('what is cancelled while it is read ends with that piece, and its asker is told', () => {
  const { cache, ahead } = start();
  let done = 0;
  const ticket = ahead.request({}, 101, 0, 10 * piece, () => {
    done += 1;
  });
  cache.endFills();
  assert(!ticket.cancel());
  assert.equal(done, 0, 'the file is in use');
  cache.endFills();
  assert.equal(done, 1);
  assert.equal(cache.fills.length, 0);
});

test('who is told may ask again at once', () => {
  const { cache, ahead } = start(1, 1);
  const asker = {};
  let done = 0;
  const again = (): void => {
    done += 1;
    if (done < 5) ahead.request(asker, 101, done * piece, piece, again);
  };
  ahead.request(asker, 101, 0, piece, again);
  while (cache.fills.length > 0) cache.endFills();
  assert.equal(done, 5);
});

test.run();
