/**
 * Producers that the log does not know because the batch they began with was refused: a full disk, say. A producer that
 * is not known may begin anywhere (KIP-360), so without this the batches in flight behind the refused one would be
 * taken, and the refused one never could be: it would come too late. Kafka's brokers have that hole.
 *
 * What comes out of order instead is sent again: Kafka's own producer resends in order from the refused batch,
 * librdkafka and franz-go take a new epoch, which begins at 0.
 *
 * Thread: the partition's shard. Memory: `producersMax` entries, the oldest of which make room. Durability: none needed,
 * since requests in flight do not outlive the broker.
 */
import type { ProducerFields } from './producer_fields.ts';

/** With more producers refused than this, the ones refused first are as unknown as in Kafka. */
const producersMax = 1000;

interface Refused {
  readonly epoch: number;
  readonly sequence: number;
  readonly atMs: number;
}

export class RefusedSequences {
  /** Null: there is none, as in nearly all logs. */
  #byProducer: Map<number, Refused> | null = null;

  get size(): number {
    return this.#byProducer?.size ?? 0;
  }

  /** Notes the first refused sequence of a producer in an epoch; later ones of that epoch wait for it. */
  note(producerId: number, epoch: number, sequence: number, nowMs: number): void {
    this.#byProducer ??= new Map();
    const byProducer = this.#byProducer;
    const known = byProducer.get(producerId);
    if (known !== undefined && known.epoch >= epoch) return;
    byProducer.delete(producerId);
    byProducer.set(producerId, { epoch, sequence, atMs: nowMs });
    if (byProducer.size <= producersMax) return;
    for (const oldest of byProducer.keys()) {
      byProducer.delete(oldest);
      return;
    }
  }

  /** The sequence that must come before any other one of the batch's producer and epoch, or -1. */
  expected({ producerId, producerEpoch }: ProducerFields): number {
    const refused = this.#byProducer?.get(producerId);
    return refused?.epoch === producerEpoch ? refused.sequence : -1;
  }

  /** The producer is known now. */
  forget(producerId: number): void {
    this.#byProducer?.delete(producerId);
  }

  expire(nowMs: number, expirationMs: number): void {
    if (this.#byProducer === null) return;
    for (const [producerId, { atMs }] of this.#byProducer)
      if (nowMs - atMs >= expirationMs) this.#byProducer.delete(producerId);
    if (this.#byProducer.size === 0) this.#byProducer = null;
  }
}
