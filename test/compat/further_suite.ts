/** The tests of the clients that exchange records with two others, Kafka's own and a current librdkafka. */
import assert from 'node:assert/strict';
import type { Test } from 'uvu';
import { assertTooLargeIsRefused, clientSuite } from './client_suite.ts';
import { asReadWith, assertSame } from './dataset.ts';
import { type FurtherName, peers, produceModes, wantedOf } from './exchange.ts';
import { modes, type Peer } from './peers/peer.ts';

const partners = ['java', 'python'] as const;
/** One mode for each codec: acks leave no trace in what is stored. */
const storedModes = modes.filter(({ idempotent }) => idempotent);

/**
 * A suite in which the client writes in each of its modes for itself and two others, reads what these wrote in each
 * codec, and gets the error `tooLarge` for a record above max.message.bytes. The caller runs it.
 */
export function furtherSuite(name: FurtherName, tooLarge: RegExp): Test {
  const { test, client } = clientSuite(name);
  const open = new Map<string, Peer>();
  const partner = async (which: (typeof partners)[number]): Promise<Peer> => {
    const peer = open.get(which) ?? (await peers[which](client().broker.bootstrap));
    open.set(which, peer);
    return peer;
  };
  for (const which of partners) {
    test(`${which} reads what it wrote`, async () => {
      const { sent } = client();
      assert(sent.length > 0, `${name} did not write`);
      const reader = await partner(which);
      assertSame(sent, await reader.consume(wantedOf(sent)), reader.name);
    });
    test(`it reads what ${which} wrote`, async () => {
      const { peer } = client();
      const sent = await produceModes(await partner(which), `from-${which}`, storedModes);
      const read = await peer.consume(wantedOf(sent));
      assertSame(asReadWith(peer.limits, sent), read, peer.name);
    });
  }
  test('a record above max.message.bytes is refused', async () => {
    await assertTooLargeIsRefused(client().peer, tooLarge);
  });
  test.after(async () => {
    for (const peer of open.values()) await peer.close();
  });
  return test;
}
