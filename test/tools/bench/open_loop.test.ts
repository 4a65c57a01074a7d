import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { runOpenLoop } from '../../../tools/bench/open_loop.ts';

const test = suite('open_loop');
const { signal } = new AbortController();

test('a stall holds up no message that is due', async () => {
  const due: number[] = [];
  const begunMs = performance.now();
  let release: () => void = () => undefined;
  const stalled = new Promise<void>((resolve) => {
    release = resolve;
  });
  const { sent } = await runOpenLoop({
    ...{ rate: 1_000, seconds: 0.2, signal },
    send: async (number, dueMs) => {
      due.push(dueMs - begunMs);
      // Nothing is answered before the 150th has been sent.
      if (number === 150) release();
      await stalled;
    },
  });
  assert.equal(sent, due.length);
  assert(sent > 150 && sent <= 201, String(sent));
  // Due times are those of the rate, whenever the messages were really sent.
  const first = due[0] as number;
  for (const [number, ms] of due.entries()) assert(Math.abs(ms - first - number) < 1e-6);
});

test('without a rate so many are on their way as are answered', async () => {
  let inFlight = 0;
  let most = 0;
  const { sent } = await runOpenLoop({
    ...{ rate: 0, seconds: 0.1, signal },
    send: async () => {
      inFlight += 1;
      most = Math.max(most, inFlight);
      await new Promise((resolve) => setImmediate(resolve));
      inFlight -= 1;
    },
  });
  assert(sent > 0 && most <= 20_000);
  assert.equal(inFlight, 0);
});

test('an interruption ends it, whatever is still on its way', async () => {
  const controller = new AbortController();
  const call = runOpenLoop({
    ...{ rate: 100, seconds: 60, signal: controller.signal },
    send: () => new Promise(() => undefined),
  });
  controller.abort();
  assert.equal((await call).sent, 1);
});

test.run();
