import assert from 'node:assert/strict';
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { suite } from 'uvu';
import { Bell, createDoorbellFlag, Doorbell } from '../../../engine/thread/doorbell.ts';
import { SlabAllocator, slabLimits } from '../../../engine/thread/slab.ts';
import { SlabAnnouncer, SlabViews } from '../../../engine/thread/slab_share.ts';

const test = suite('doorbell and slab announcements');

const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5));

function channel(): { ports: [MessagePort, MessagePort]; close: () => void } {
  const { port1, port2 } = new MessageChannel();
  return { ports: [port1, port2], close: () => port1.close() };
}

test('rings once until the woken one begins to look, whoever rings', async () => {
  const flag = createDoorbellFlag();
  const one = channel();
  const other = channel();
  let looks = 0;
  const doorbell = new Doorbell(flag, () => (looks += 1));
  doorbell.listen(one.ports[1]);
  doorbell.listen(other.ports[1]);
  const bells = [new Bell(flag, one.ports[0]), new Bell(flag, other.ports[0])] as const;
  for (let k = 0; k < 10; k += 1) for (const bell of bells) bell.ring();
  await turn();
  assert.equal(looks, 1);
  for (const bell of bells) bell.ringSoon();
  for (const bell of bells) bell.ringSoon();
  await turn();
  assert.equal(looks, 2);
  assert.equal(doorbell.wakeUps, 2);
  one.close();
  other.close();
});

test('a ring from within the look wakes once more', async () => {
  const flag = createDoorbellFlag();
  const { ports, close } = channel();
  const bell = new Bell(flag, ports[0]);
  let looks = 0;
  new Doorbell(flag, () => {
    looks += 1;
    if (looks < 3) bell.ring();
  }).listen(ports[1]);
  bell.ring();
  await turn();
  assert.equal(looks, 3);
  close();
});

test('an announced slab is found at once, in the same memory, until it is retired', () => {
  const { ports, close } = channel();
  const slabs = new SlabAllocator();
  const announcer = new SlabAnnouncer(ports[0]);
  const views = new SlabViews(ports[1]);
  slabs.onRetired = (id) => announcer.retire(id);
  const region = slabs.alloc(100);
  assert.equal(views.find(region.slabId), undefined, 'not announced yet: look again later');
  announcer.announce(region.slabId, region.bytes.buffer);
  announcer.announce(region.slabId, region.bytes.buffer);
  const view = views.find(region.slabId);
  assert(view !== undefined);
  region.bytes[region.offset + 7] = 42;
  assert.equal(view[region.offset + 7], 42);
  slabs.free(region);
  // Empty at two calls in a row: given up.
  slabs.trim(0);
  slabs.trim(0);
  views.update();
  assert.deepEqual([views.count, announcer.count], [0, 0]);
  close();
});

test('a region above the size of a slab is a slab of its own, retired with it', () => {
  const { ports, close } = channel();
  const slabs = new SlabAllocator();
  const announcer = new SlabAnnouncer(ports[0]);
  const views = new SlabViews(ports[1]);
  slabs.onRetired = (id) => announcer.retire(id);
  const region = slabs.alloc(slabLimits.slabBytes + 1);
  announcer.announce(region.slabId, region.bytes.buffer);
  assert.equal(views.find(region.slabId)?.length, slabLimits.slabBytes + 1);
  slabs.free(region);
  views.update();
  assert.equal(views.count, 0);
  close();
});

test.run();
