import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { Supervisor, type ThreadFailure } from '../../../engine/thread/supervisor.ts';

const test = suite('supervisor');
const entry = new URL('./supervised_fixture.ts', import.meta.url);

test('threads start, say that they are ready, answer the watchdog, and stop when told to', async () => {
  const failures: ThreadFailure[] = [];
  const supervisor = new Supervisor({ onFailure: (failure) => failures.push(failure), pingMs: 5 });
  const threads = ['a', 'b'].map((name) => supervisor.spawn({ name, entry, data: 'well' }));
  await Promise.all(threads.map((thread) => thread.ready));
  assert.equal(threads[0]?.worker.threadName, 'a');
  await sleep(50);
  assert.deepEqual(await supervisor.stop(10_000), []);
  assert.deepEqual(failures, []);
});

for (const [data, reason] of [
  ['throws at start', /failed: broken on purpose/],
  ['throws later', /failed: broken on purpose/],
  ['rejects', /failed: rejected on purpose/],
  ['exits', /exited with code 3/],
] as const) {
  test(`the death of a thread that ${data} is reported once, with its reason`, async () => {
    const failures: ThreadFailure[] = [];
    const failed = Promise.withResolvers<void>();
    const supervisor = new Supervisor({
      onFailure: (failure) => {
        failures.push(failure);
        failed.resolve();
      },
    });
    supervisor.spawn({ name: 'shard-0', entry, data });
    await failed.promise;
    await sleep(20);
    await supervisor.stop(1_000);
    assert.equal(failures.length, 1);
    assert.equal(failures[0]?.name, 'shard-0');
    assert.match(failures[0]?.reason ?? '', reason);
  });
}

test('a module that does not exist is a failure, too', async () => {
  const failed = Promise.withResolvers<ThreadFailure>();
  const supervisor = new Supervisor({ onFailure: failed.resolve });
  supervisor.spawn({ name: 'x', entry: new URL('./no_such_module.ts', entry), data: null });
  assert.match((await failed.promise).reason, /no_such_module/);
  await supervisor.stop(1_000);
});

test('a thread that hangs is reported once and counted as silent until it answers again', async () => {
  const hung = Promise.withResolvers<number>();
  let reports = 0;
  const supervisor = new Supervisor({
    onFailure: (failure) => assert.fail(failure.reason),
    onUnresponsive: (name, silentMs) => {
      assert.equal(name, 'shard-0');
      reports += 1;
      hung.resolve(silentMs);
    },
    pingMs: 10,
    unresponsiveMs: 100,
  });
  await supervisor.spawn({ name: 'shard-0', entry, data: 'hangs for a while' }).ready;
  assert((await hung.promise) >= 100);
  assert(supervisor.silentMs() >= 100);
  while (supervisor.silentMs() > 0) await sleep(10);
  assert.equal(reports, 1);
  await supervisor.stop(5_000);
});

test('a thread that does not stop in time is terminated and named', async () => {
  const supervisor = new Supervisor({ onFailure: (failure) => assert.fail(failure.reason) });
  await supervisor.spawn({ name: 'stubborn', entry, data: 'never stops' }).ready;
  assert.deepEqual(await supervisor.stop(50), ['stubborn']);
});

async function sleep(ms: number): Promise<void> {
  await new Promise<void>((resolve) => {
    setTimeout(resolve, ms);
  });
}

test.run();
