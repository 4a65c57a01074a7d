import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { SlabAllocator } from '../../../engine/thread/slab.ts';
import type { ResponseFrame } from '../../../net/replication/response_frame.ts';
import { ResponseReceiver } from '../../../net/replication/response_receiver.ts';

const test = suite('responses of a leader');

const shared = Buffer.alloc(64 * 1024);

interface World {
  readonly slabs: SlabAllocator;
  readonly receiver: ResponseReceiver;
  readonly frames: ResponseFrame[];
}

function world(frameBytesMax = 1_000_000): World {
  const slabs = new SlabAllocator();
  const frames: ResponseFrame[] = [];
  const receiver = new ResponseReceiver({
    slabs,
    shared,
    frameBytesMax,
    onResponse: (frame) => frames.push(frame),
  });
  return { slabs, receiver, frames };
}

/** Reads as the kernel does: as much as there is, into whatever buffer the receiver offers. */
function feed({ receiver }: World, bytes: Uint8Array, pieceMax: number): string | null {
  for (let at = 0; at < bytes.length; ) {
    const buffer = receiver.nextBuffer();
    const length = Math.min(pieceMax, buffer.length, bytes.length - at);
    buffer.set(bytes.subarray(at, at + length));
    const refusal = receiver.received(length, buffer);
    if (refusal !== null) return refusal;
    at += length;
  }
  return null;
}

function response(size: number, fill: number): Uint8Array {
  const bytes = new Uint8Array(4 + size).fill(fill);
  new DataView(bytes.buffer).setInt32(0, size);
  return bytes;
}

const sizes = [4, 5, 1_000, 40_000, 300_000, 64 * 1024, 17];

for (const piece of [1_000_000, 64 * 1024, 1_461, 7])
  test(`responses of all sizes arrive whole, read in pieces of ${piece} bytes`, () => {
    const one = world();
    const all = Buffer.concat(sizes.map((size, k) => response(size, k + 1)));
    assert.equal(feed(one, all, piece), null);
    assert.deepEqual(
      one.frames.map(({ offset, end }) => end - offset),
      sizes,
    );
    one.frames.forEach((frame, k) => {
      const bytes = frame.bytes.subarray(frame.offset, frame.end);
      assert(
        bytes.every((byte) => byte === k + 1),
        `response ${k}`,
      );
      frame.release();
    });
    assert(one.slabs.isPristine());
  });

test('what is no response is refused, before memory is taken for it', () => {
  for (const size of [0, 3, -1, 1_000_001, 0x7fffffff]) {
    const one = world();
    const prefix = Buffer.alloc(4);
    prefix.writeInt32BE(size);
    assert.match(feed(one, prefix, 4) ?? '', /^a response of/);
    assert(one.slabs.isPristine());
  }
});

test('memory of a response that never gets whole is given back', () => {
  const one = world();
  feed(one, response(200_000, 1).subarray(0, 90_000), 64 * 1024);
  assert(!one.slabs.isPristine());
  one.receiver.dispose();
  assert(one.slabs.isPristine());
  assert.deepEqual(one.frames, []);
});

test('a response stays until its last user has released it', () => {
  const one = world();
  feed(one, response(100, 1), 104);
  const [frame] = one.frames;
  frame!.retain();
  frame!.release();
  assert(!one.slabs.isPristine());
  frame!.release();
  assert(one.slabs.isPristine());
  assert.throws(() => frame!.release(), /more often/);
});

test.run();
