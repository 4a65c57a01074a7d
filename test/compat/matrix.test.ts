/** Whatever one client writes, every client reads: equal bytes, keys, headers and timestamps, in every mode. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import type { BrokerProcess } from '../harness/broker_process.ts';
import { assertSame, type Sent, timestampsOf } from './dataset.ts';
import { type PeerName, peers, produceAllModes, startBroker, wantedOf } from './exchange.ts';
import type { Peer } from './peers/peer.ts';

const test = suite('matrix');
const names = Object.keys(peers) as PeerName[];
const open = new Map<PeerName, Peer>();
const sent = new Map<PeerName, Sent[]>();
/** The timestamps that the first reader saw: every other reader must see the same. */
const times = new Map<PeerName, Record<string, number[]>>();
let broker: BrokerProcess | null = null;

test.before(async () => {
  broker = await startBroker();
  for (const name of names) open.set(name, await peers[name](broker.bootstrap));
});

test.after(async () => {
  for (const peer of open.values()) await peer.close();
  await broker?.dispose();
});

for (const writer of names) {
  test(`${writer} writes in every mode`, async () => {
    const peer = open.get(writer) as Peer;
    const creator = writer === 'kcat' ? open.get('java') : peer;
    sent.set(writer, await produceAllModes(peer, `from-${writer}`, creator));
  });
}

for (const writer of names) {
  for (const reader of names) {
    test(`${reader} reads what ${writer} wrote`, async () => {
      const all = sent.get(writer);
      assert(all !== undefined, `${writer} did not write`);
      const peer = open.get(reader) as Peer;
      const read = await peer.consume(wantedOf(all));
      assertSame(all, read, peer.name);
      const expected = times.get(writer) ?? timestampsOf(read);
      times.set(writer, expected);
      assert.deepEqual(timestampsOf(read), expected);
    });
  }
}

test.run();
