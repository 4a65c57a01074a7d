/**
 * What a client of a cluster believes of it: who leads which partition, from the Metadata of whichever broker answers,
 * and one connection to each broker. Of two answers about a partition the one of the later leader epoch counts.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { errorName, isRetriable } from '../../net/protocol/errors.ts';
import type { MetadataResponse } from '../../net/protocol/messages.gen.ts';
import { Client } from './client.ts';
import type { Cluster } from './cluster.ts';
import { ConnectionLostError } from './connection.ts';
import { laneName, type Target } from './load.ts';

const askTimeoutMs = 1_000;
const lookAgainMs = 20;
const preferred = 0;

export interface PartitionView {
  /** -1: nobody leads. */
  readonly leaderId: number;
  readonly leaderEpoch: number;
  readonly isr: readonly number[];
  readonly replicas: readonly number[];
}

export class ClusterView {
  readonly #cluster: Cluster;
  readonly #topics: readonly string[];
  readonly #name: string;
  readonly #partitions = new Map<string, PartitionView>();
  readonly #clients = new Map<number, Client>();
  readonly #connecting = new Map<number, Promise<Client | null>>();
  #next = 0;
  #closed: boolean = false;

  constructor(cluster: Cluster, topics: readonly string[], name = 'view') {
    this.#cluster = cluster;
    this.#topics = topics;
    this.#name = name;
  }

  partition(target: Target): PartitionView | null {
    return this.#partitions.get(laneName(target)) ?? null;
  }

  /** Asks the brokers in turn, one with each call. Returns whether it answered. */
  async refresh(): Promise<boolean> {
    const up = this.#cluster.ids.filter((id) => this.#cluster.isUp(id));
    this.#next += 1;
    const id = up[this.#next % up.length];
    if (id === undefined) return false;
    const client = await this.client(id);
    if (client === null) return false;
    try {
      const zero = 'AAAAAAAAAAAAAAAAAAAAAA';
      const topics = this.#topics.map((name) => ({ name, topicId: zero }));
      this.#learn(await client.request('Metadata', { topics }, askTimeoutMs));
      return true;
    } catch (error) {
      if (!(error instanceof ConnectionLostError)) throw error;
      return false;
    }
  }

  /** Resolves when all copies of all partitions are in sync, and throws when that takes too long. */
  async whole(timeoutMs: number): Promise<void> {
    const deadline = performance.now() + timeoutMs;
    for (;;) {
      await this.refresh();
      const views = [...this.#partitions.values()];
      const isWhole = views.every(({ isr, replicas }) => isr.length === replicas.length);
      if (isWhole && views.length > 0) return;
      assert(performance.now() < deadline, `not all in sync again: ${JSON.stringify(views)}`);
      await sleep(lookAgainMs);
    }
  }

  /** Gives every partition to its preferred leader; all copies are in sync. */
  async electPreferred(): Promise<void> {
    for (;;) {
      const client = await this.client(this.#cluster.ids.find((id) => this.#cluster.isUp(id)) ?? 1);
      const answer = await client?.request('ElectLeaders', {
        electionType: preferred,
        topicPartitions: null,
        timeoutMs: 30_000,
      });
      const codes = (answer?.replicaElectionResults ?? []).flatMap(({ partitionResult }) =>
        partitionResult.map(({ errorCode }) => errorCode),
      );
      const code = answer?.errorCode ?? ErrorCode.NOT_CONTROLLER;
      const isDone = [code, ...codes].every(
        (one) => one === ErrorCode.NONE || one === ErrorCode.ELECTION_NOT_NEEDED,
      );
      if (isDone) return;
      const passes = code === ErrorCode.NONE || isRetriable(code);
      assert(passes, `ElectLeaders: ${errorName(code)}`);
      await sleep(lookAgainMs);
    }
  }

  /** The open connection to a broker, if there is one. */
  open(id: number): Client | null {
    const client = this.#clients.get(id);
    return client?.connection.isOpen === true ? client : null;
  }

  /** A connection to the broker that knows all topics; null when there is none to be had now. */
  async client(id: number): Promise<Client | null> {
    const open = this.open(id);
    if (open !== null) return open;
    let connecting = this.#connecting.get(id);
    if (connecting === undefined) {
      connecting = this.#connect(id).finally(() => this.#connecting.delete(id));
      this.#connecting.set(id, connecting);
    }
    return connecting;
  }

  close(): void {
    this.#closed = true;
    for (const client of this.#clients.values()) client.close();
  }

  async #connect(id: number): Promise<Client | null> {
    let client: Client | null = null;
    try {
      client = await Client.connect(this.#cluster.broker(id), this.#name, askTimeoutMs);
      const { topics } = await client.metadata(this.#topics);
      if (this.#closed || topics.some(({ errorCode }) => errorCode !== ErrorCode.NONE)) {
        client.close();
        return null;
      }
      this.#clients.get(id)?.close();
      this.#clients.set(id, client);
      return client;
    } catch (error) {
      client?.close();
      if (error instanceof ConnectionLostError) return null;
      throw error;
    }
  }

  #learn({ topics }: MetadataResponse): void {
    for (const { errorCode, name, partitions } of topics) {
      if (errorCode !== ErrorCode.NONE || name === null) continue;
      for (const { partitionIndex, leaderId, leaderEpoch, isrNodes, replicaNodes } of partitions) {
        const key = laneName({ topic: name, partition: partitionIndex });
        if ((this.#partitions.get(key)?.leaderEpoch ?? -1) > leaderEpoch) continue;
        this.#partitions.set(key, { leaderId, leaderEpoch, isr: isrNodes, replicas: replicaNodes });
      }
    }
  }
}
