/** The tests that every client has in common. */
import assert from 'node:assert/strict';
import { suite, type Test } from 'uvu';
import type { BrokerProcess } from '../harness/broker_process.ts';
import { asReadWith, assertSame, type Sent } from './dataset.ts';
import {
  type FurtherName,
  furtherPeers,
  type PeerName,
  peers,
  produceAllModes,
  startBroker,
  wantedOf,
} from './exchange.ts';
import type { Peer } from './peers/peer.ts';

/** A running broker with one client; filled in before the first test. */
export interface Client {
  readonly broker: BrokerProcess;
  readonly peer: Peer;
  /** What the client has written in every mode, once its first test has passed. */
  readonly sent: readonly Sent[];
}

/**
 * A suite with a broker and the client of that name, in which the client creates its topics, writes in every mode and
 * reads all of it back. The caller adds what is the client's own, and runs it.
 */
export function clientSuite(name: PeerName | FurtherName): { test: Test; client: () => Client } {
  const test = suite(name);
  let broker: BrokerProcess | null = null;
  let peer: Peer | null = null;
  let sent: readonly Sent[] = [];
  const client = (): Client => {
    assert(broker !== null && peer !== null, 'the broker or the client did not start');
    return { broker, peer, sent };
  };
  test.before(async () => {
    broker = await startBroker();
    peer = await { ...peers, ...furtherPeers }[name](broker.bootstrap);
  });
  test.after(async () => {
    await peer?.close();
    await broker?.dispose();
  });
  if (name !== 'kcat') {
    test('creates a topic, writes in every mode and reads it back', async () => {
      const own = client().peer;
      const written = await produceAllModes(own, 'own');
      const read = await own.consume(wantedOf(written));
      assertSame(asReadWith(own.limits, written), read, own.name);
      sent = written;
    });
    test('is told that a topic exists already', async () => {
      await client().peer.create('twice', 1);
      await assert.rejects(client().peer.create('twice', 1), /already exists/i);
    });
  }
  return { test, client };
}

/** Checks that a record above the broker's limit is refused with the error that the client knows, and that others go on. */
export async function assertTooLargeIsRefused(peer: Peer, expected: RegExp): Promise<void> {
  const idempotent = peer.limits.notIdempotent !== true;
  const mode = { codec: 'none', acks: 'all', idempotent } as const;
  const recordOf = (value: string): Parameters<Peer['produce']>[3] => [
    { key: null, value, headers: [], timestamp: Date.now() },
  ];
  const small = recordOf('00');
  await peer.create('large', 1);
  await peer.produce('large', 0, mode, small);
  await assert.rejects(peer.produce('large', 0, mode, recordOf('00'.repeat(2_000_000))), expected);
  await peer.produce('large', 0, mode, small);
  const read = await peer.consume([['large', 0, 2]]);
  assert.deepEqual(
    read.map(({ offset, value }) => [offset, value]),
    [
      [0, '00'],
      [1, '00'],
    ],
  );
}
