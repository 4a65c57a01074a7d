import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { suite } from 'uvu';
import { Acceptor, type AcceptorOptions } from '../../../net/server/acceptor.ts';
import { ConnectionCounts } from '../../../net/server/connection_counts.ts';
import { connectClient, eventually, exclusive, libc, request, TestLog } from './harness.ts';

const test = suite('acceptor');

function options(log: TestLog, delivery: AcceptorOptions['delivery'], port = 0): AcceptorOptions {
  return {
    listener: 'PLAINTEXT',
    host: '127.0.0.1',
    port,
    counts: new ConnectionCounts({ connectionsMax: 1_000, connectionsPerIpMax: 1_000 }),
    log,
    delivery,
  };
}

test('connections are served by another thread, first bytes included, and no descriptor leaks', async () => {
  const worker = new Worker(new URL('./adopting_worker.ts', import.meta.url));
  const acceptor = await Acceptor.listen(
    options(new TestLog(), {
      type: 'descriptor',
      dup: libc.dup,
      deliver: (fd, origin) => worker.postMessage({ fd, origin }),
    }),
  );
  worker.on('message', (id: number) => acceptor.closed(id));
  const serve = async (count: number): Promise<void> => {
    const clients = await Promise.all(
      Array.from({ length: count }, async (_, id) => {
        const client = await connectClient(acceptor.port);
        client.socket.write(request(exclusive, id));
        assert.deepEqual(await client.untilFrames(1), [id]);
        return client;
      }),
    );
    assert.equal(acceptor.openCount, count);
    for (const client of clients) client.socket.destroy();
    await eventually(() => acceptor.openCount === 0);
  };
  await serve(5);
  const before = countDescriptors();
  await serve(50);
  await eventually(() => countDescriptors() <= before);
  await worker.terminate();
  await acceptor.close();
});

test('an address in use is an error of listen, not an event of later', async () => {
  const delivery: AcceptorOptions['delivery'] = {
    type: 'descriptor',
    dup: libc.dup,
    deliver: () => {},
  };
  const first = await Acceptor.listen(options(new TestLog(), delivery));
  await assert.rejects(Acceptor.listen(options(new TestLog(), delivery, first.port)), {
    code: 'EADDRINUSE',
  });
  await first.close();
});

test('without a duplicate the connection is closed and does not count', async () => {
  const log = new TestLog();
  const acceptor = await Acceptor.listen(
    options(log, { type: 'descriptor', dup: () => -24, deliver: () => assert.fail('delivered') }),
  );
  const client = await connectClient(acceptor.port);
  await client.untilClosed();
  assert.equal(acceptor.openCount, 0);
  assert.match(log.texts('warn').join(), /no duplicate.*24/);
  await acceptor.close();
});

function countDescriptors(): number {
  return readdirSync('/proc/self/fd').length;
}

test.run();
