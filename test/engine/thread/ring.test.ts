import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { suite } from 'uvu';
import {
  createRing,
  type RingMemory,
  RingReader,
  RingWriter,
} from '../../../engine/thread/ring.ts';
import { SeededRandom } from '../../sim/seeded_random.ts';
import { messagesCount } from './messages_count.ts';
import { fillSlot, type RingWorkerData, wrongWord } from './ring_worker.ts';

const test = suite('ring');

function put(writer: RingWriter, sequence: number): boolean {
  const at = writer.claim();
  if (at < 0) return false;
  fillSlot(writer.words, at, writer.slotWords, sequence);
  writer.publish();
  return true;
}

function take(reader: RingReader, sequence: number): boolean {
  const at = reader.peek();
  if (at < 0) return false;
  assert.equal(wrongWord(reader.words, at, reader.slotWords, sequence), -1, `message ${sequence}`);
  reader.advance();
  return true;
}

/** Both indexes as after `count` messages. */
function aged(memory: RingMemory, count: number): RingMemory {
  const control = new Int32Array(memory.buffer, 0, 32);
  control[0] = count;
  control[16] = count;
  return memory;
}

test('gives out in order what was put in, whatever the order of the calls', () => {
  const random = new SeededRandom(7);
  for (let round = 0; round < 50; round += 1) {
    const slots = 2 ** (1 + (round % 6));
    const memory = createRing(slots, 1 + (round % 16));
    const writer = new RingWriter(memory);
    const reader = new RingReader(memory);
    let written = 0;
    let read = 0;
    for (let step = 0; step < 2_000; step += 1) {
      if (random.next() < 0.5) {
        const isTaken = put(writer, written);
        assert.equal(isTaken, written - read < slots, 'refuses exactly when full');
        if (isTaken) written += 1;
      } else {
        const isThere = take(reader, read);
        assert.equal(isThere, written > read, 'is empty exactly when all was read');
        if (isThere) read += 1;
      }
      assert.equal(writer.room, slots - (written - read));
    }
  }
});

test('an unpublished slot is not seen, and a shown one not reused before advance', () => {
  const memory = createRing(2, 2);
  const writer = new RingWriter(memory);
  const reader = new RingReader(memory);
  fillSlot(writer.words, writer.claim(), 2, 0);
  assert.equal(reader.peek(), -1);
  writer.publish();
  put(writer, 1);
  const at = reader.peek();
  assert.equal(reader.peek(), at, 'peek takes nothing off');
  assert.equal(writer.claim(), -1);
  reader.advance();
  assert(put(writer, 2));
  assert(take(reader, 1));
  assert(take(reader, 2));
  assert.equal(reader.peek(), -1);
});

test('goes on where the 32 bits of the indexes end', () => {
  for (const start of [0x7fffffff - 5, -5]) {
    const memory = aged(createRing(4, 3), start);
    const writer = new RingWriter(memory);
    const reader = new RingReader(memory);
    for (let round = 0; round < 10; round += 1) {
      for (let k = 0; k < 4; k += 1) assert(put(writer, round * 4 + k));
      assert.equal(put(writer, 99), false);
      assert.equal(writer.room, 0);
      for (let k = 0; k < 4; k += 1) assert(take(reader, round * 4 + k));
      assert.equal(reader.peek(), -1);
    }
  }
});

test('who waits for room is told once, and not at all when there is room by now', () => {
  const memory = createRing(2, 1);
  const writer = new RingWriter(memory);
  const reader = new RingReader(memory);
  assert.equal(writer.waitForRoom(), true);
  assert.equal(reader.takeWaiting(), false);
  put(writer, 0);
  put(writer, 1);
  assert.equal(writer.waitForRoom(), false);
  take(reader, 0);
  assert.equal(reader.takeWaiting(), true);
  assert.equal(reader.takeWaiting(), false);
});

test('sizes that cannot be are refused', () => {
  for (const slots of [0, 1, 3, 100, 2.5]) assert.throws(() => createRing(slots, 4));
  assert.throws(() => createRing(4, 0));
});

for (const slots of [2, 16, 1024]) {
  test(`between two threads nothing is lost, doubled, reordered or torn: ${slots} slots`, async () => {
    // With two slots, threads that share a core change places for every other message.
    const count = Math.ceil(messagesCount(300_000) / (slots === 2 ? 50 : 1));
    const memory = createRing(slots, 16);
    const data: RingWorkerData = { memory, count };
    const worker = new Worker(new URL('./ring_worker.ts', import.meta.url), { workerData: data });
    const exited = once(worker, 'exit');
    const reader = new RingReader(memory);
    for (let read = 0; read < count; ) {
      let taken = 0;
      while (read < count && take(reader, read)) {
        read += 1;
        taken += 1;
      }
      // The event loop must turn, for the worker's start and for a failure of it.
      if (taken === 0 || read % 4096 === 0) await new Promise(setImmediate);
    }
    assert.deepEqual(await exited, [0]);
    assert.equal(reader.peek(), -1);
  });
}

test.run();
