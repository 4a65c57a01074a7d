/** The project's own client as one of the peers; it reads with the tests' raw client, since what it writes is in question. */

import { Client } from '../../../net/client/client.ts';
import type { BrokerProcess } from '../../harness/broker_process.ts';
import { Client as RawClient } from '../../harness/client.ts';
import type { Hex, Limits, Mode, Peer, PeerRecord, ReadRecord, Wanted } from './peer.ts';

const bytesOf = (hex: Hex): Buffer | null => (hex === null ? null : Buffer.from(hex, 'hex'));
const hexOf = (bytes: Uint8Array | null): Hex =>
  bytes === null ? null : Buffer.from(bytes).toString('hex');

class OwnPeer implements Peer {
  readonly name = 'millrace/client';
  readonly limits: Limits = {};
  readonly #client: Client;
  readonly #raw: RawClient;

  constructor(client: Client, raw: RawClient) {
    this.#client = client;
    this.#raw = raw;
  }

  async create(topic: string, partitions: number): Promise<void> {
    await this.#raw.createTopic(topic, partitions);
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
    for (const [topic, partition, count] of wanted)
      for (const record of (await this.#raw.readAll(topic, partition)).slice(0, count))
        read.push({
          ...{ topic, partition, offset: record.offset, timestamp: Number(record.timestamp) },
          key: hexOf(record.key),
          value: hexOf(record.value),
          headers: record.headers.map(
            ({ key, value }) => [Buffer.from(key).toString('utf8'), hexOf(value)] as const,
          ),
        });
    return read;
  }

  async close(): Promise<void> {
    await this.#client.close();
    this.#raw.close();
  }
}

export async function ownPeer(broker: BrokerProcess): Promise<Peer> {
  const raw = await RawClient.connect(broker);
  return new OwnPeer(new Client({ bootstrap: broker.bootstrap }), raw);
}
