import assert from 'node:assert/strict';
import { assertTooLargeIsRefused, clientSuite } from './client_suite.ts';
import { assertSame, dataset } from './dataset.ts';
import { kcat } from './peers/kcat_peer.ts';
import { modeName, modes } from './peers/peer.ts';

const { test, client } = clientSuite('kcat');

test('the first record creates its topic; every mode is written and read back', async () => {
  const { peer } = client();
  for (const [index, mode] of modes.entries()) {
    const topic = `auto-${index}`;
    const records = dataset(index, peer.limits);
    const beforeMs = Date.now();
    await peer.produce(topic, 0, mode, records);
    const stampedBetween = [beforeMs, Date.now()] as const;
    const sent = { topic, partition: 0, records, what: modeName(mode), stampedBetween };
    const read = await peer.consume([[topic, 0, records.length]]);
    assertSame([sent], read, peer.name);
  }
});

test('a record above max.message.bytes is refused', async () => {
  await assertTooLargeIsRefused(client().peer, /Message size too large/);
});

test('-L lists the broker and the topics', async () => {
  const { broker, peer } = client();
  await peer.create('listed', 1);
  const listing = String(await kcat(['-L', '-b', broker.bootstrap]));
  assert.match(listing, new RegExp(`broker \\d+ at ${broker.bootstrap.replaceAll('.', '\\.')}`));
  assert.match(listing, /topic "listed" with 1 partitions/);
});

test('-Q finds offsets by timestamp', async () => {
  const { broker, peer } = client();
  await peer.create('query', 1);
  const mode = { codec: 'zstd', acks: 'all', idempotent: false } as const;
  const record = { key: null, value: '61', headers: [], timestamp: 0 };
  await peer.produce('query', 0, mode, [record, record]);
  const times = (await peer.consume([['query', 0, 2]])).map(({ timestamp }) => timestamp);
  const query = async (time: number): Promise<string> =>
    String(await kcat(['-Q', '-b', broker.bootstrap, '-t', `query:0:${time}`])).trim();
  assert.equal(await query(times[0] as number), 'query [0] offset 0');
  assert.equal(await query(-2), 'query [0] offset 0');
  assert.equal(await query(-1), 'query [0] offset 2');
  assert.equal(await query((times[1] as number) + 60_000), 'query [0] offset -1');
});

test.run();
