/** A whole metadata plane in one thread: quorum on a simulated store, host, and a shard's client; no sockets. */
import assert from 'node:assert/strict';
import { nodeClock } from '../../engine/node_ports.ts';
import type { Caller } from '../../net/cluster_view.ts';
import { codecFor } from '../../net/protocol/codec.ts';
import type { ApiName, MessageInputs, MessageTypes } from '../../net/protocol/messages.gen.ts';
import { Reader } from '../../net/protocol/reader.ts';
import { Writer } from '../../net/protocol/writer.ts';
import { QuorumClient } from '../../net/quorum_client.ts';
import { QuorumHost } from '../../net/quorum_host.ts';
import type { QuorumPort } from '../../net/quorum_messages.ts';
import type { ShardContext, TopicSettings } from '../../net/shard_context.ts';
import type { MetadataChanges } from '../../replication/metadata/changes.ts';
import { Controller, type ControllerOptions } from '../../replication/metadata/controller.ts';
import { MetadataImage } from '../../replication/metadata/image.ts';
import { splitMix } from '../harness/split_mix.ts';
import {
  clusterId,
  controllerOptions,
  newTopic,
  registration,
  uuids,
} from '../replication/metadata/fixtures.ts';
import { quorumOfOne } from '../replication/raft/quorum_of_one.ts';
import { SimulatedStore } from '../replication/raft/simulated_store.ts';

/** Two ends of a channel. Messages are cloned and arrive in a later turn, in order, as with real ports. */
export function portPair(): [FakePort, FakePort] {
  const one = new FakePort();
  const other = new FakePort();
  one.peer = other;
  other.peer = one;
  return [one, other];
}

class FakePort implements QuorumPort {
  peer: FakePort | null = null;
  readonly #listeners: ((message: unknown) => void)[] = [];

  on(_event: 'message', listener: (message: unknown) => void): void {
    this.#listeners.push(listener);
  }

  postMessage(message: unknown): void {
    const copy = structuredClone(message);
    setImmediate(() => this.peer?.receive(copy));
  }

  receive(message: unknown): void {
    for (const listener of this.#listeners) listener(message);
  }
}

export function newHost(
  store: SimulatedStore,
  overrides: Partial<ControllerOptions> = {},
): QuorumHost {
  const self = { voterId: 1, voterDirectoryId: uuids(201)(), endpoints: [] };
  const quorum = quorumOfOne(store, store, (message) => assert.fail(message), self);
  return new QuorumHost({
    quorum,
    controller: new Controller(controllerOptions(overrides)),
    clock: nodeClock,
    image: new MetadataImage(clusterId),
    onFailed: (error) => assert.fail(error),
  });
}

export interface TestShard extends ShardContext {
  readonly client: QuorumClient;
  readonly warnings: string[];
}

/** A thread that follows the host. Fulfilled when it has the snapshot. */
export async function attachShard(
  host: QuorumHost,
  settings: Partial<TopicSettings> = {},
  onChanges: (changes: MetadataChanges) => void | Promise<void> = () => {},
): Promise<TestShard> {
  const [hostPort, shardPort] = portPair();
  const image = new MetadataImage(clusterId);
  const client = new QuorumClient({
    port: shardPort,
    nodeId: 1,
    image,
    onChanges,
    onFailed: (error) => assert.fail(String(error)),
  });
  const warnings: string[] = [];
  await host.attach(hostPort);
  return {
    nodeId: 1,
    clusterId,
    image,
    quorum: client,
    client,
    warnings,
    settings: {
      autoCreateTopicsEnable: true,
      deleteTopicEnable: true,
      maxRequestPartitionSizeLimit: 2000,
      topicConfigEntries: (overrides) =>
        overrides.map(({ name, value }) => ({
          name,
          value,
          source: 1,
          readOnly: false,
          sensitive: false,
        })),
      ...settings,
    },
    logger: {
      info: () => {},
      warn: (_fields, text) => warnings.push(text),
      error: () => {},
      logLimited: (_key, _intervalMs, _level, _fields, text) => warnings.push(text),
    },
  };
}

/** One broker with one shard and some topics. */
export async function newCluster(
  topics: readonly [name: string, partitions: number][] = [],
  settings: Partial<TopicSettings> = {},
  overrides: Partial<ControllerOptions> = {},
): Promise<{ host: QuorumHost; shard: TestShard }> {
  const host = newHost(new SimulatedStore(splitMix(1)), overrides);
  await host.start();
  await host.request(registration(1));
  await host.request({
    type: 'createTopics',
    topics: topics.map(([name, numPartitions]) => newTopic(name, { numPartitions })),
    validateOnly: false,
  });
  return { host, shard: await attachShard(host, settings) };
}

/** Sends a request through the codec, both ways, as a client of that version would. */
export async function call<N extends ApiName>(
  name: N,
  version: number,
  request: MessageInputs[`${N}Request`],
  answer: (
    request: MessageTypes[`${N}Request`],
    caller: Caller,
  ) => MessageInputs[`${N}Response`] | Promise<MessageInputs[`${N}Response`]>,
): Promise<MessageTypes[`${N}Response`]> {
  const decoded = throughCodec(`${name}Request` as `${N}Request`, version, request);
  const caller = { apiVersion: version, connection: { listener: 'PLAINTEXT' } };
  const response = await answer(decoded, caller);
  return throughCodec(`${name}Response` as `${N}Response`, version, response);
}

function throughCodec<M extends keyof MessageTypes>(
  name: M,
  version: number,
  value: MessageInputs[M],
): MessageTypes[M] {
  const writer = new Writer();
  codecFor(name, version).encode(writer, value);
  const reader = new Reader(writer.finish().bytes);
  const decoded = codecFor(name, version).decode(reader);
  assert.equal(reader.remaining, 0);
  return decoded;
}
