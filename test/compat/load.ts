/** A mixed load: topics in every codec, with and without idempotence, over segments that are small enough to roll. */
import { anchorMs, dataset, type Sent } from './dataset.ts';
import { codecs, type Peer, type PeerRecord } from './peers/peer.ts';

/** Settings under which a few megabytes roll segments and fill their indexes. */
export const smallSegments = {
  'log.segment.bytes': 1_048_576,
  'log.index.interval.bytes': 1_024,
  'metadata.log.max.record.bytes.between.snapshots': 1_000,
} as const;

/** `count` records with timestamps that mostly grow, of about `repeats` times 20 bytes. */
export function bulk(seed: number, count: number, repeats = 25): PeerRecord[] {
  const baseMs = anchorMs + seed * 3_600_000;
  return Array.from({ length: count }, (_, index) => ({
    key: Buffer.from(`key-${index % 50}`).toString('hex'),
    value: Buffer.from(
      `${seed}-${index}-${Math.imul(index + 1, 0x9e3779b9)}`.repeat(repeats),
    ).toString('hex'),
    headers: [],
    timestamp: baseMs + index * 5 - (index % 100 === 0 ? 250 : 0),
  }));
}

/**
 * Writes to one topic of five partitions, one a codec, in two runs of the producer: the first idempotent. Then the small
 * data set to a second topic. Returns what was sent.
 */
export async function writeMixedLoad(peer: Peer, prefix: string, count: number): Promise<Sent[]> {
  const [large, small] = [`${prefix}-large`, `${prefix}-small`];
  await peer.create(large, codecs.length);
  await peer.create(small, codecs.length);
  const sent: Sent[] = [];
  for (const [partition, codec] of codecs.entries()) {
    const records = bulk(partition, count);
    const half = count >> 1;
    const first = { codec, acks: 'all', idempotent: true } as const;
    await peer.produce(large, partition, first, records.slice(0, half));
    await peer.produce(
      large,
      partition,
      { codec, acks: '1', idempotent: false },
      records.slice(half),
    );
    const few = dataset(partition, peer.limits);
    await peer.produce(small, partition, { codec, acks: 'all', idempotent: true }, few);
    const what = `${codec}, mixed load`;
    sent.push({ topic: large, partition, records, what, stampedBetween: null });
    sent.push({ topic: small, partition, records: few, what, stampedBetween: null });
  }
  return sent;
}
