/** The project's own client as one of the peers. */
import { Client } from '../../../net/client/client.ts';
import {
  CONSUME_TIMEOUT_MS,
  type Hex,
  type Limits,
  type Mode,
  type Peer,
  type PeerRecord,
  type ReadRecord,
  type Wanted,
} from './peer.ts';

const bytesOf = (hex: Hex): Buffer | null => (hex === null ? null : Buffer.from(hex, 'hex'));
const hexOf = (bytes: Buffer | null): Hex => (bytes === null ? null : bytes.toString('hex'));

class OwnPeer implements Peer {
  readonly name = 'millrace/client';
  readonly limits: Limits = {};
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  async create(topic: string, partitions: number): Promise<void> {
    await this.#client.admin().createTopic(topic, { partitions, replicationFactor: 1 });
  }

  async produce(
    topic: string,
    partition: number,
    { codec, acks, idempotent }: Mode,
    records: readonly PeerRecord[],
  ): Promise<void> {
    await using producer = this.#client.producer({
      ...{ compression: codec, idempotent, acks: acks === 'all' ? acks : acks === '1' ? 1 : 0 },
    });
    await Promise.all(
      records.map(({ key, value, headers, timestamp: timestampMs }) =>
        producer.send({
          ...{ topic, partition, key: bytesOf(key), value: bytesOf(value), timestampMs },
          headers: headers.map(([name, content]) => [name, bytesOf(content)] as const),
        }),
      ),
    );
  }

  async consume(wanted: readonly Wanted[]): Promise<ReadRecord[]> {
    const read: ReadRecord[] = [];
    let missing = wanted.reduce((sum, [, , count]) => sum + count, 0);
    await using consumer = this.#client.consumer({
      partitions: wanted.map(([topic, partition]) => ({ topic, partition, offset: 0 })),
      signal: AbortSignal.timeout(CONSUME_TIMEOUT_MS),
    });
    for await (const { topic, partition, offset, timestampMs, key, value, headers } of consumer) {
      read.push({
        ...{ topic, partition, offset, timestamp: timestampMs },
        ...{ key: hexOf(key), value: hexOf(value) },
        headers: headers.map(([name, content]) => [name, hexOf(content)] as const),
      });
      missing -= 1;
      if (missing === 0) break;
    }
    return read;
  }

  async close(): Promise<void> {
    await this.#client.close();
  }
}

export async function ownPeer(bootstrap: string): Promise<Peer> {
  return new OwnPeer(new Client({ bootstrap }));
}
