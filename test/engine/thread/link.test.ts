import assert from 'node:assert/strict';
import { once } from 'node:events';
import { MessageChannel, Worker } from 'node:worker_threads';
import { suite } from 'uvu';
import { Bell, createDoorbellFlag } from '../../../engine/thread/doorbell.ts';
import { Answerer, Asker, createLink, linkLimits } from '../../../engine/thread/link.ts';
import type { Words } from '../../../engine/thread/ring.ts';
import { SeededRandom } from '../../sim/seeded_random.ts';
import { Peer, type PeerData } from './link_peer.ts';
import { messagesCount } from './messages_count.ts';

const test = suite('link');

/** Both ends of a link in this thread; nobody is woken, the test drains. */
function pair(slots: number): { asker: Asker; answerer: Answerer; close(): void } {
  const memory = createLink(slots);
  const { port1, port2 } = new MessageChannel();
  const bell = new Bell(createDoorbellFlag(), port1);
  return {
    asker: new Asker(memory, bell),
    answerer: new Answerer(memory, bell),
    close: () => {
      port1.close();
      port2.close();
    },
  };
}

const noNews = (): void => assert.fail('news');

test('requests of a class stay in order through full rings, and every answer finds its exchange', () => {
  for (let seed = 1; seed <= 20; seed += 1) {
    const random = new SeededRandom(seed);
    const { asker, answerer, close } = pair(8);
    const served: number[][] = [[], []];
    const asked = [0, 0];
    const open: { exchange: number; left: number }[] = [];
    let answersSeen = 0;
    let answersDue = 0;
    const serve = ({ numbers }: Words, at: number): boolean => {
      const isBulk = numbers[at] as number;
      served[isBulk]!.push(numbers[at + 2] as number);
      open.push({ exchange: numbers[at + 1] as number, left: isBulk === 1 ? 2 : 1 });
      return true;
    };
    const answerOne = (): void => {
      const index = random.below(open.length);
      const one = open[index]!;
      one.left -= 1;
      answerer.answer(7, one.exchange, one.left === 0);
      if (one.left === 0) open.splice(index, 1);
    };
    for (let step = 0; step < 5_000; step += 1) {
      const what = random.below(4);
      if (what === 0) {
        const isBulk = random.chance(0.6);
        asker.words.numbers[2] = asked[Number(isBulk)]!++;
        let left = isBulk ? 2 : 1;
        answersDue += left;
        const onAnswer = (_words: Words, _at: number, isLast: boolean): void => {
          left -= 1;
          answersSeen += 1;
          assert.equal(isLast, left === 0);
        };
        asker.ask(Number(isBulk), { onAnswer }, left, isBulk);
      } else if (what === 1) answerer.drain(serve);
      else if (what === 2 && open.length > 0) answerOne();
      else asker.drain(noNews);
    }
    while (asker.openCount > 0) {
      answerer.drain(serve);
      if (open.length > 0) answerOne();
      asker.drain(noNews);
    }
    assert.equal(answersSeen, answersDue);
    for (const isBulk of [0, 1])
      assert.deepEqual(
        served[isBulk],
        Array.from({ length: asked[isBulk]! }, (_, k) => k),
      );
    assert.equal(asker.isCongested, false);
    close();
  }
});

test('a request that gets fewer answers than it reserved gives the rest back', () => {
  const { asker, answerer, close } = pair(4);
  for (let k = 0; k < 100; k += 1) {
    let answers = 0;
    asker.ask(1, { onAnswer: () => (answers += 1) }, 2, true);
    assert.equal(asker.isCongested, false, `request ${k}`);
    answerer.drain(({ numbers }, at) => {
      answerer.answer(1, numbers[at + 1] as number, true);
      return true;
    });
    asker.drain(noNews);
    assert.equal(answers, 1);
  }
  close();
});

test('slow requests that fill the ring of answers leave room for quick ones', () => {
  const { asker, answerer, close } = pair(16);
  for (let k = 0; k < 100; k += 1) asker.ask(1, { onAnswer: () => assert.fail() }, 2, true);
  assert.equal(asker.isCongested, true);
  answerer.drain(() => true);
  let isAnswered = false;
  asker.ask(2, { onAnswer: () => (isAnswered = true) }, 1, false);
  answerer.drain(({ numbers }, at) => {
    if (numbers[at] === 2) answerer.answer(2, numbers[at + 1] as number, true);
    return true;
  });
  asker.drain(noNews);
  assert.equal(isAnswered, true);
  close();
});

test('a request that is put off is shown again, and nothing overtakes it', () => {
  const { asker, answerer, close } = pair(8);
  for (let k = 0; k < 3; k += 1) {
    asker.words.numbers[2] = k;
    asker.ask(1, null, 0, false);
  }
  const seen: number[] = [];
  let isPutOff = true;
  const serve = ({ numbers }: Words, at: number): boolean => {
    if (numbers[at + 2] === 1 && isPutOff) return false;
    seen.push(numbers[at + 2] as number);
    return true;
  };
  assert.equal(answerer.drain(serve), false);
  assert.equal(answerer.drain(serve), false);
  isPutOff = false;
  assert.equal(answerer.drain(serve), true);
  assert.deepEqual(seen, [0, 1, 2]);
  close();
});

test('news that find no room are told later, each once', () => {
  const { asker, answerer, close } = pair(8);
  const { newsSlots } = linkLimits;
  for (let round = 0; round < 3; round += 1)
    for (let k = 0; k < newsSlots + 10; k += 1) answerer.tell(k);
  const heard: number[] = [];
  for (let round = 0; round < 10; round += 1) {
    asker.drain((number) => heard.push(number));
    answerer.drain(() => true);
  }
  assert.deepEqual(
    [...new Set(heard)].sort((a, b) => a - b),
    Array.from({ length: newsSlots + 10 }, (_, k) => k),
  );
  assert(heard.length <= 2 * newsSlots + 20, `${heard.length} told`);
  close();
});

interface Sides {
  readonly here: PeerData;
  readonly there: PeerData;
  readonly close: () => void;
}

function sides(slots: number, count: number, isReckless: boolean): Sides {
  const one = createLink(slots);
  const other = createLink(slots);
  const bells = new MessageChannel();
  const announcements = new MessageChannel();
  const flags = [createDoorbellFlag(), createDoorbellFlag()] as const;
  return {
    here: {
      seed: 1,
      count,
      isReckless,
      asking: one,
      answering: other,
      ownFlag: flags[0],
      otherFlag: flags[1],
      port: bells.port1,
      slabPort: announcements.port1,
    },
    there: {
      seed: 2,
      count,
      isReckless,
      asking: other,
      answering: one,
      ownFlag: flags[1],
      otherFlag: flags[0],
      port: bells.port2,
      slabPort: announcements.port2,
    },
    close: () => {
      bells.port1.close();
      announcements.port1.close();
    },
  };
}

interface Report {
  readonly parkedMost: number;
  readonly payloadMost: number;
  readonly served: number;
  readonly answered: number;
  readonly isPristine: boolean;
}

async function run(
  { here, there, close }: Sides,
  whilePeerRuns: (peer: Peer) => Promise<void> = async () => {},
): Promise<{ peer: Peer; report: Report }> {
  const worker = new Worker(new URL('./link_peer.ts', import.meta.url), {
    workerData: there,
    transferList: [there.port, there.slabPort],
  });
  const failed = once(worker, 'error').then(([error]) => {
    throw error;
  });
  const reported = once(worker, 'message') as Promise<[Report]>;
  const peer = new Peer(here);
  peer.turn();
  const all = Promise.all([reported, peer.finished, whilePeerRuns(peer)]);
  const [[report]] = await Promise.race([all, failed]);
  failed.catch(() => undefined);
  await worker.terminate();
  close();
  return { peer, report };
}

for (const slots of [4, 64, 1024]) {
  for (const isReckless of [false, true]) {
    const kind = isReckless ? 'every ring full both ways' : 'stopping when the other is behind';
    test(`two threads ask each other, ${slots} slots, ${kind}`, async () => {
      const count = Math.ceil(messagesCount(60_000) / (slots === 4 ? 10 : 2));
      const { peer, report } = await run(sides(slots, count, isReckless));
      const { served, answered } = peer.summary;
      assert.deepEqual([served, answered], [count, count]);
      assert.deepEqual([report.served, report.answered], [count, count]);
      assert(peer.slabs.isPristine() && report.isPristine, 'payload was not given back');
    });
  }
}

test('the other side standing still bounds what this one holds, and it goes on afterwards', async () => {
  const count = Math.ceil(messagesCount(60_000) / 3);
  const { peer, report } = await run(sides(64, count, false), async (stalling) => {
    // This side neither serves nor listens for a while: the worker must stop asking.
    stalling.stalled = true;
    await new Promise((resolve) => setTimeout(resolve, 300));
    assert(stalling.summary.served < count, 'all was served before the stall');
    stalling.stalled = false;
    stalling.turn();
  });
  assert.equal(peer.summary.answered, count);
  assert(report.parkedMost <= 3 * 64, `${report.parkedMost} requests under way`);
  assert(report.payloadMost <= 5 * 1024 * 1024, `${report.payloadMost} bytes of payload`);
});

test.run();
