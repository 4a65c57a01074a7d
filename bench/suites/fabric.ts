/** The thread fabric: ring, slabs, and a round trip to another thread that sleeps in its event loop. */
import { MessageChannel, Worker } from 'node:worker_threads';
import { Bell, createDoorbellFlag, Doorbell } from '../../engine/thread/doorbell.ts';
import { Asker, createLink, type Exchange } from '../../engine/thread/link.ts';
import { createRing, RingReader, RingWriter } from '../../engine/thread/ring.ts';
import { SlabAllocator, slabLimits } from '../../engine/thread/slab.ts';
import { SlabAnnouncer, SlabViews } from '../../engine/thread/slab_share.ts';
import { type Benchmark, consume, type Suite } from '../micro/benchmark.ts';
import type { EchoData } from './fabric_echo.ts';

export async function openFabricSuite(): Promise<Suite> {
  const echo = await startEcho();
  const benchmarks = [
    passing(),
    allocating('one of 1 KB', 1_000, 1),
    allocating('64 of 64 KB, freed in turn', 65_000, 64),
    announcing(),
    roundTrip(echo, 1),
    roundTrip(echo, 256),
  ];
  return { benchmarks, close: echo.close };
}

/** A descriptor through a ring, both ends on this thread: what it costs without any other cache in between. */
function passing(): Benchmark {
  const memory = createRing(1024, 16);
  const writer = new RingWriter(memory);
  const reader = new RingReader(memory);
  return {
    name: 'fabric: a descriptor through a ring',
    calibration: 'script',
    run: () => {
      const to = writer.claim();
      for (let k = 0; k < 16; k += 1) writer.words.numbers[to + k] = k;
      writer.publish();
      const from = reader.peek();
      consume(reader.words.numbers[from + 15] as number);
      reader.advance();
    },
  };
}

function allocating(name: string, bytes: number, count: number): Benchmark {
  const slabs = new SlabAllocator();
  const regions = Array.from({ length: count }, () => slabs.alloc(bytes));
  let at = 0;
  return {
    name: `fabric: slab region, ${name}`,
    calibration: 'script',
    run: () => {
      slabs.free(regions[at]!);
      regions[at] = slabs.alloc(bytes);
      at = (at + 1) % count;
    },
  };
}

/** What a slab costs before the first descriptor points into it, and when it goes. */
function announcing(): Benchmark {
  const { port1, port2 } = new MessageChannel();
  const announcer = new SlabAnnouncer(port1);
  const views = new SlabViews(port2);
  const buffer = new SharedArrayBuffer(slabLimits.slabBytes);
  let id = 0;
  return {
    name: 'fabric: announce a slab, find it, retire it',
    calibration: 'native',
    run: () => {
      announcer.announce(id, buffer);
      consume(views.find(id)?.length ?? 0);
      announcer.retire(id);
      views.update();
      id += 1;
    },
  };
}

interface Echo {
  readonly asker: Asker;
  readonly close: () => Promise<void>;
}

async function startEcho(): Promise<Echo> {
  const link = createLink();
  const { port1, port2 } = new MessageChannel();
  const ownFlag = createDoorbellFlag();
  const otherFlag = createDoorbellFlag();
  const data: EchoData = { link, port: port2, ownFlag: otherFlag, otherFlag: ownFlag };
  const worker = new Worker(new URL('./fabric_echo.ts', import.meta.url), {
    workerData: data,
    transferList: [port2],
  });
  await new Promise((resolve) => worker.once('message', resolve));
  worker.unref();
  const asker = new Asker(link, new Bell(otherFlag, port1));
  new Doorbell(ownFlag, () => asker.drain(() => {})).listen(port1);
  port1.ref();
  return {
    asker,
    close: async () => {
      port1.close();
      await worker.terminate();
    },
  };
}

/** `count` requests at once to a sleeping thread, until all are answered. */
function roundTrip({ asker }: Echo, count: number): Benchmark {
  return {
    name: `fabric: round trip between threads, ${count === 1 ? 'one request' : `${count} requests`}`,
    calibration: 'threads',
    items: { count, of: 'request' },
    run: () =>
      new Promise((resolve) => {
        let left = count;
        const exchange: Exchange = {
          onAnswer: () => {
            left -= 1;
            if (left === 0) resolve();
          },
        };
        for (let k = 0; k < count; k += 1) asker.ask(1, exchange, 1, false);
      }),
  };
}
