import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { SlabAllocator } from '../../../engine/thread/slab.ts';
import { MemoryBudget } from '../../../net/server/memory_budget.ts';
import { type ReceiveOwner, Receiver, receiveLimits } from '../../../net/server/receive.ts';
import type { RequestFrame, RequestMemory } from '../../../net/server/request_frame.ts';
import { exclusive, hasPattern, overlapping, request } from './harness.ts';

const test = suite('receive');

interface Seen {
  correlationId: number;
  intact: boolean;
}

/** Stands for a connection: notes what comes, and runs nothing while `held`. */
class FakeOwner implements ReceiveOwner {
  readonly memory: RequestMemory;
  readonly shared: Buffer = Buffer.alloc(receiveLimits.sharedBufferBytes);
  readonly receiver: Receiver;
  readonly seen: Seen[] = [];
  held: boolean = false;
  granted: number = 0;
  frameBytesMax: number = 50_000_000;
  /** Frames that their handlers keep. */
  readonly kept: RequestFrame[] = [];
  keep: boolean = false;

  constructor(memory: RequestMemory = newMemory(1e9)) {
    this.memory = memory;
    this.receiver = new Receiver(this, memory, this.shared);
  }

  acceptsSize(size: number): boolean {
    if (size >= receiveLimits.frameBytesMin && size <= this.frameBytesMax) return true;
    this.receiver.dispose();
    return false;
  }
  knowsApi(apiKey: number): boolean {
    if (apiKey <= exclusive) return true;
    this.receiver.dispose();
    return false;
  }
  retainsFrame(apiKey: number): boolean {
    return apiKey === overlapping;
  }
  mayDispatch(): boolean {
    return !this.held;
  }
  onFrame(frame: RequestFrame): void {
    const bytes = Buffer.from(frame.bytes.buffer, frame.bytes.byteOffset, frame.bytes.length);
    const correlationId = bytes.readInt32BE(frame.offset + 4);
    const body = bytes.subarray(frame.offset + 10, frame.end);
    this.seen.push({ correlationId, intact: hasPattern(body, correlationId) });
    if (this.keep) this.kept.push(frame);
    else frame.release();
  }
  onMemoryGranted(): void {
    this.granted += 1;
  }

  /** Receives as a socket does: into the buffer asked for, `sizes()` bytes at most a read. Returns what is left. */
  receive(bytes: Buffer, sizes: () => number): Buffer {
    let at = 0;
    while (at < bytes.length) {
      const target = this.receiver.nextBuffer();
      const length = Math.min(target.length, bytes.length - at, sizes());
      bytes.copy(target, 0, at, at + length);
      at += length;
      const more = this.receiver.received(length, target);
      // The next read of any connection may overwrite it.
      this.shared.fill(0xee);
      if (!more) break;
    }
    return bytes.subarray(at);
  }

  ids(): number[] {
    assert(
      this.seen.every((frame) => frame.intact),
      'a frame came in damaged',
    );
    return this.seen.map((frame) => frame.correlationId);
  }
}

function newMemory(limitBytes: number): RequestMemory {
  return { slabs: new SlabAllocator(), budget: new MemoryBudget(limitBytes) };
}

function checkEmpty(memory: RequestMemory): void {
  assert.equal(memory.budget.usedBytes, 0);
  assert.equal(memory.slabs.usedBytes, 0);
}

test('frames arrive whole however they are split: at every byte boundary', () => {
  const stream = Buffer.concat([
    request(exclusive, 1, 5),
    request(overlapping, 2, 40),
    request(exclusive, 3, 0),
    request(overlapping, 4, 7),
  ]);
  for (let cut = 1; cut < stream.length; cut += 1) {
    const owner = new FakeOwner();
    owner.receive(stream.subarray(0, cut), () => cut);
    owner.receive(stream.subarray(cut), () => stream.length);
    assert.deepEqual(owner.ids(), [1, 2, 3, 4], `cut at ${cut}`);
    assert(!owner.receiver.partial);
    checkEmpty(owner.memory);
  }
  const owner = new FakeOwner();
  owner.receive(stream, () => 1);
  assert.deepEqual(owner.ids(), [1, 2, 3, 4]);
});

test('frames of all sizes in reads of all sizes', () => {
  const sizes = [0, 100, 8_000, 32_000, 33_000, 65_522, 65_536, 70_000, 200_000, 1_048_576];
  const stream = Buffer.concat(
    sizes.flatMap((size, at) => [
      request(overlapping, 2 * at, size),
      request(exclusive, 2 * at + 1, size),
    ]),
  );
  for (const readBytes of [1_000, 4_096, 65_536, 1e9]) {
    const owner = new FakeOwner();
    owner.receive(stream, () => readBytes);
    assert.deepEqual(owner.ids(), [...Array(2 * sizes.length).keys()], `reads of ${readBytes}`);
    checkEmpty(owner.memory);
  }
});

test('a large frame is received into its own memory, which grows as bytes arrive', () => {
  const owner = new FakeOwner();
  const stream = request(exclusive, 9, 9_000_000);
  let rest = owner.receive(stream.subarray(0, 100), () => 100);
  assert(owner.memory.slabs.usedBytes <= 1024 * 1024, 'memory was taken as announced');
  assert.equal(owner.memory.budget.usedBytes, 9_000_010, 'it is admitted as a whole');
  assert(owner.receiver.nextBuffer() !== owner.shared);
  rest = owner.receive(stream.subarray(100, 3_000_000), () => 300_000);
  assert.equal(rest.length, 0);
  assert(owner.memory.slabs.usedBytes <= 4 * 1024 * 1024);
  owner.receive(stream.subarray(3_000_000), () => 1e9);
  assert.deepEqual(owner.ids(), [9]);
  checkEmpty(owner.memory);
});

test('what comes behind a held frame waits, and all of it comes in order later', () => {
  const owner = new FakeOwner();
  const stream = Buffer.concat([1, 2, 3].map((id) => request(exclusive, id, 1_000)));
  owner.held = true;
  const rest = owner.receive(stream, () => 1_700);
  assert.equal(rest.length, stream.length - 1_700, 'reading went on');
  assert(!owner.receiver.open);
  assert(!owner.receiver.resume());
  owner.held = false;
  assert(owner.receiver.resume());
  assert.deepEqual(owner.ids(), [1]);
  owner.receive(rest, () => 1e9);
  assert.deepEqual(owner.ids(), [1, 2, 3]);
  checkEmpty(owner.memory);
});

test('a large frame that is held keeps its memory until it may run', () => {
  const owner = new FakeOwner();
  owner.held = true;
  owner.receive(request(overlapping, 1, 100_000), () => 1e9);
  assert.deepEqual(owner.ids(), []);
  owner.held = false;
  assert(owner.receiver.resume());
  assert.deepEqual(owner.ids(), [1]);
  checkEmpty(owner.memory);
});

test('without memory the frame waits for it, first come, first served', () => {
  const memory = newMemory(100_000);
  const first = new FakeOwner(memory);
  first.keep = true;
  first.receive(request(overlapping, 1, 90_000), () => 1e9);
  assert.equal(first.kept.length, 1);

  const second = new FakeOwner(memory);
  const third = new FakeOwner(memory);
  const stream = request(overlapping, 2, 60_000);
  const rest = second.receive(stream, () => 20_000);
  assert.equal(rest.length, stream.length - 20_000);
  assert.equal(third.receive(request(overlapping, 3, 50), () => 1e9).length, 0);
  assert.deepEqual([second.ids(), third.ids()], [[], []], 'a small one overtook a large one');
  memory.budget.grantWaiting();
  assert.deepEqual([second.granted, third.granted], [0, 0]);

  first.kept[0]?.release();
  memory.budget.grantWaiting();
  assert.deepEqual([second.granted, third.granted], [1, 1]);
  assert(second.receiver.resume());
  assert(third.receiver.resume());
  second.receive(rest, () => 1e9);
  assert.deepEqual([second.ids(), third.ids()], [[2], [3]]);
  checkEmpty(memory);
});

test('a connection that dies at any moment gives back all memory and its place in the line', () => {
  const stream = Buffer.concat([
    request(exclusive, 1, 100),
    request(overlapping, 2, 2_000_000),
    request(exclusive, 3, 90_000),
  ]);
  const memory = newMemory(2_100_000);
  for (let length = 1; length < stream.length; length += 30_011) {
    for (const held of [false, true]) {
      const owner = new FakeOwner(memory);
      owner.held = held;
      owner.receive(stream.subarray(0, length), () => 50_000);
      owner.receiver.dispose();
      assert.equal(owner.receiver.received(10, owner.shared), false);
      assert(!owner.receiver.resume());
      checkEmpty(memory);
    }
  }
  const holder = new FakeOwner(memory);
  holder.keep = true;
  holder.receive(request(overlapping, 1, 2_000_000), () => 1e9);
  const waiting = new FakeOwner(memory);
  waiting.receive(stream, () => 1e9);
  assert.equal(memory.budget.waitingCount, 1);
  waiting.receiver.dispose();
  assert.equal(memory.budget.waitingCount, 0);
  holder.kept[0]?.release();
  checkEmpty(memory);
});

test('sizes that no request has end it: negative, tiny, huge', () => {
  for (const size of [-1, -0x80000000, 0, 7, 50_000_001, 0x7fffffff]) {
    const owner = new FakeOwner();
    const bytes = Buffer.alloc(1_000);
    bytes.writeInt32BE(size);
    owner.receive(bytes, () => 1e9);
    assert(!owner.receiver.open, `size ${size}`);
    checkEmpty(owner.memory);
  }
});

test('a frame of an API that is not served is refused before it is received', () => {
  const owner = new FakeOwner();
  owner.receive(request(99, 1, 10_000_000).subarray(0, 1_000), () => 1e9);
  assert(!owner.receiver.open);
  checkEmpty(owner.memory);
});

test.run();
