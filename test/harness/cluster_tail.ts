/**
 * Consumers at the tail of a cluster's partitions, which follow the leaders: what they saw must stay, and is told to the
 * history. A position never lies behind what the next leader has: OFFSET_OUT_OF_RANGE is a failure.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { isRetriable } from '../../net/protocol/errors.ts';
import { BrokerError, Client } from './client.ts';
import type { Cluster } from './cluster.ts';
import { ClusterView } from './cluster_view.ts';
import { ConnectionLostError } from './connection.ts';
import { decodeRecords } from './fetched_records.ts';
import { type History, idOf } from './history.ts';
import { laneName, type Target } from './load.ts';

const maxWaitMs = 200;
const retryPauseMs = 30;

export class ClusterTail {
  readonly #cluster: Cluster;
  readonly #history: History;
  readonly #view: ClusterView;
  readonly #runs: Promise<void>[];
  readonly #clients = new Set<Client>();
  #stopped: boolean = false;
  #failure: Error | null = null;
  records = 0;

  constructor(cluster: Cluster, targets: readonly Target[], history: History) {
    this.#cluster = cluster;
    this.#history = history;
    this.#view = new ClusterView(cluster, [...new Set(targets.map(({ topic }) => topic))], 'tail');
    this.#runs = targets.map((target) =>
      this.#follow(target).catch((error: unknown) => {
        this.#failure ??= error instanceof Error ? error : new Error(String(error));
      }),
    );
  }

  /** Throws what went wrong, if anything did. */
  assertHealthy(): void {
    if (this.#failure !== null) throw this.#failure;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    for (const client of this.#clients) client.close();
    await Promise.all(this.#runs);
    this.#view.close();
  }

  async #follow(target: Target): Promise<void> {
    let offset = 0;
    while (!this.#stopped) {
      await this.#view.refresh();
      const leaderId = this.#view.partition(target)?.leaderId ?? -1;
      if (leaderId !== -1 && this.#cluster.isUp(leaderId))
        offset = await this.#readFrom(leaderId, target, offset);
      await sleep(retryPauseMs);
    }
  }

  /** Reads until the broker is gone, silent, or the leader no more. */
  async #readFrom(leaderId: number, target: Target, from: number): Promise<number> {
    const { topic, partition } = target;
    let offset = from;
    let client: Client | null = null;
    try {
      client = await Client.connect(this.#cluster.broker(leaderId), 'tail', 2_000);
      this.#clients.add(client);
      while (!this.#stopped && this.#cluster.isUp(leaderId)) {
        const { records } = await client.fetchOne(topic, partition, offset, { maxWaitMs });
        const found = decodeRecords(records ?? new Uint8Array(0), offset);
        for (const one of found.records)
          this.#history.seen(laneName(target), { offset: one.offset, id: idOf(one.value) });
        this.records += found.records.length;
        offset = found.nextOffset;
      }
    } catch (error) {
      const passes =
        error instanceof ConnectionLostError ||
        (error instanceof BrokerError &&
          isRetriable(error.code) &&
          error.code !== ErrorCode.OFFSET_OUT_OF_RANGE);
      if (!passes) throw error;
    } finally {
      client?.close();
      if (client !== null) this.#clients.delete(client);
    }
    return offset;
  }
}
