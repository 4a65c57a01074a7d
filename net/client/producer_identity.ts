/** The producer id that brokers know an idempotent producer by (KIP-98); a new one where a partition has used up its epochs. */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { Cluster } from './cluster.ts';
import { brokerError } from './errors.ts';
import type { ProducerIdentity } from './partition_queue.ts';

export class IdentitySource {
  readonly #cluster: Cluster;
  #latest: ProducerIdentity | null = null;
  #isAsking: boolean = false;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  /** The latest id, unless that is `used`; null while a new one is asked for, upon which `done` is called, once for all. */
  take(used: ProducerIdentity | null, done: (error: unknown) => void): ProducerIdentity | null {
    if (this.#latest !== null && this.#latest.producerId !== used?.producerId) return this.#latest;
    if (this.#isAsking) return null;
    this.#isAsking = true;
    this.#ask().then(
      () => {
        this.#isAsking = false;
        done(null);
      },
      (error: unknown) => {
        this.#isAsking = false;
        done(error);
      },
    );
    return null;
  }

  async #ask(): Promise<void> {
    const reply = await this.#cluster.request(
      'any',
      'InitProducerId',
      { transactionalId: null, transactionTimeoutMs: 0 },
      { signal: this.#cluster.signal, errorOf: (answer) => answer.errorCode },
    );
    if (reply.errorCode !== ErrorCode.NONE)
      throw brokerError(reply.errorCode, 'asking for a producer id');
    this.#latest = { producerId: Number(reply.producerId), epoch: reply.producerEpoch };
  }
}
