/**
 * A small client for tests: each call is one request, in the newest version that both sides know unless told
 * otherwise, and returns what the broker said, error codes included. It retries nothing and hides nothing.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { type BatchInput, encodeBatch, type RecordInput } from '../../engine/batch/encode.ts';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { ApiKey } from '../../net/protocol/api_key.gen.ts';
import { apiInfo } from '../../net/protocol/apis.ts';
import { errorName } from '../../net/protocol/errors.ts';
import type {
  ApiName,
  FetchRequestInput,
  FetchResponse,
  FetchResponsePartitionData,
  MessageInputs,
  MessageTypes,
  MetadataResponse,
  ProduceResponsePartitionProduceResponse,
} from '../../net/protocol/messages.gen.ts';
import { Connection, type Endpoint } from './connection.ts';
import { decodeRecords, type FetchedRecord } from './fetched_records.ts';

/** From these versions on topics are named by id alone (KIP-516). */
const topicIdsSince = { Produce: 13, Fetch: 13 } as const;
const askAgainMs = 20;
const askAgainTimes = 1_000;
const zeroUuid = 'AAAAAAAAAAAAAAAAAAAAAA';

/** The broker answered with an error where a test needs success. */
export class BrokerError extends Error {
  readonly code: number;

  constructor(what: string, code: number, message: string | null = null) {
    super(`${what}: ${errorName(code)}${message === null ? '' : ` (${message})`}`);
    this.code = code;
  }
}

export interface ProducerIdentity {
  readonly producerId: number;
  readonly producerEpoch: number;
}

/** One batch of a produce request: ready bytes, or records to put into a batch. */
export interface ProducePart {
  readonly topic: string;
  readonly partition: number;
  readonly batch: Uint8Array | BatchInput | readonly RecordInput[];
}

export interface ProduceOptions {
  readonly acks?: -1 | 0 | 1;
  readonly timeoutMs?: number;
  readonly version?: number;
}

export interface FetchPart {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  readonly maxBytes?: number;
}

export interface FetchOptions {
  readonly maxWaitMs?: number;
  readonly minBytes?: number;
  readonly maxBytes?: number;
  readonly version?: number;
  readonly sessionId?: number;
  readonly sessionEpoch?: number;
  readonly forgotten?: readonly { readonly topic: string; readonly partition: number }[];
}

export type PartitionAnswer = ProduceResponsePartitionProduceResponse;

export class Client {
  readonly connection: Connection;
  /** Newest version that the broker serves, by API key. */
  readonly #served: ReadonlyMap<number, number>;
  readonly #topicIds = new Map<string, string>();

  private constructor(connection: Connection, served: ReadonlyMap<number, number>) {
    this.connection = connection;
    this.#served = served;
  }

  /** Connects and asks what the broker speaks. */
  static async connect(endpoint: Endpoint, clientId = 'test', timeoutMs?: number): Promise<Client> {
    const connection = await Connection.connect(endpoint, clientId);
    const { errorCode, apiKeys } = await connection.request(
      'ApiVersions',
      4,
      { clientSoftwareName: 'scenario', clientSoftwareVersion: '1' },
      timeoutMs,
    );
    if (errorCode !== ErrorCode.NONE) throw new BrokerError('ApiVersions', errorCode);
    return new Client(
      connection,
      new Map(apiKeys.map(({ apiKey, maxVersion }) => [apiKey, maxVersion])),
    );
  }

  close(): void {
    this.connection.close();
  }

  /** The newest version of an API that both sides know. Throws when the broker does not serve it. */
  version(api: ApiName): number {
    const served = this.#served.get(ApiKey[api]);
    const known = apiInfo(ApiKey[api])?.maxVersion;
    if (served === undefined || known === undefined) throw new Error(`${api} is not served`);
    return Math.min(served, known);
  }

  /** One request in the newest version. */
  request<N extends ApiName>(
    api: N,
    body: MessageInputs[`${N}Request`],
    timeoutMs?: number,
  ): Promise<MessageTypes[`${N}Response`]> {
    return this.connection.request<N>(api, this.version(api), body, timeoutMs);
  }

  /** Creates a topic and returns its id. Throws a BrokerError when it is refused. */
  async createTopic(
    name: string,
    partitions = 1,
    configs: Readonly<Record<string, string | number>> = {},
    replicationFactor = 1,
  ): Promise<string> {
    const entries = Object.entries(configs);
    const answer = await this.request('CreateTopics', {
      topics: [
        {
          name,
          numPartitions: partitions,
          replicationFactor,
          assignments: [],
          configs: entries.map(([key, value]) => ({ name: key, value: String(value) })),
        },
      ],
      timeoutMs: 30_000,
    });
    const topic = answer.topics[0];
    if (topic === undefined) throw new Error(`CreateTopics: nothing was said about ${name}`);
    if (topic.errorCode !== ErrorCode.NONE)
      throw new BrokerError(`create ${name}`, topic.errorCode, topic.errorMessage);
    this.#topicIds.set(name, topic.topicId);
    return topic.topicId;
  }

  /** Metadata of some topics, or of all; creates nothing unless told to. */
  async metadata(
    topics: readonly string[] | null = null,
    allowAutoTopicCreation = false,
  ): Promise<MetadataResponse> {
    const answer = await this.request('Metadata', {
      topics: topics === null ? null : topics.map((name) => ({ name, topicId: zeroUuid })),
      allowAutoTopicCreation,
    });
    for (const { errorCode, name, topicId } of answer.topics)
      if (errorCode === ErrorCode.NONE && name !== null) this.#topicIds.set(name, topicId);
    return answer;
  }

  /** The id of a topic; asks the broker for those that this client has not met. */
  async topicId(name: string): Promise<string> {
    if (!this.#topicIds.has(name)) await this.#learn([name]);
    return this.#topicIds.get(name) as string;
  }

  async #learn(names: readonly string[]): Promise<void> {
    await this.metadata(names);
    const unknown = names.find((name) => !this.#topicIds.has(name));
    if (unknown !== undefined) throw new Error(`the broker knows no topic ${unknown}`);
  }

  #unknownOf(parts: readonly ProducePart[]): string[] {
    const names = new Set(parts.map(({ topic }) => topic));
    return [...names].filter((name) => !this.#topicIds.has(name));
  }

  async initProducerId(): Promise<ProducerIdentity> {
    const answer = await this.request('InitProducerId', {
      transactionalId: null,
      transactionTimeoutMs: 60_000,
    });
    if (answer.errorCode !== ErrorCode.NONE)
      throw new BrokerError('InitProducerId', answer.errorCode);
    return { producerId: Number(answer.producerId), producerEpoch: answer.producerEpoch };
  }

  /**
   * Sends batches, at most one for a partition, and returns the broker's word on each, in the order of `parts`;
   * nothing for acks=0. Requests go out in the order of the calls once the topics' ids are known.
   */
  async produce(
    parts: readonly ProducePart[],
    options: ProduceOptions = {},
  ): Promise<PartitionAnswer[]> {
    const { acks = -1, timeoutMs = 30_000, version = this.version('Produce') } = options;
    const byId = version >= topicIdsSince.Produce;
    // One await, and none in the usual case: requests must not overtake each other by their number of topics.
    const unknown = byId ? this.#unknownOf(parts) : [];
    if (unknown.length > 0) await this.#learn(unknown);
    const topics = new Map<string, { index: number; records: Uint8Array }[]>();
    for (const { topic, partition, batch } of parts) {
      const one = { index: partition, records: batchBytes(batch) };
      const key = byId ? (this.#topicIds.get(topic) as string) : topic;
      const listed = topics.get(key);
      if (listed === undefined) topics.set(key, [one]);
      else listed.push(one);
    }
    const topicData = [...topics].map(([key, partitionData]) =>
      byId ? { topicId: key, partitionData } : { name: key, partitionData },
    );
    const body = { acks, timeoutMs, topicData };
    if (acks === 0) {
      this.connection.send('Produce', version, body);
      return [];
    }
    const answer = await this.connection.request('Produce', version, body, timeoutMs + 10_000);
    return parts.map(({ topic, partition }) => {
      const key = byId ? this.#topicIds.get(topic) : topic;
      const found = answer.responses
        .find(({ topicId, name }) => (byId ? topicId : name) === key)
        ?.partitionResponses.find(({ index }) => index === partition);
      if (found === undefined)
        throw new Error(`Produce: nothing was said about ${topic}-${partition}`);
      return found;
    });
  }

  /** As `produce` of a single batch, and throws a BrokerError when it is refused. Returns its base offset. */
  async produceOne(
    topic: string,
    partition: number,
    batch: ProducePart['batch'],
    options: ProduceOptions = {},
  ): Promise<number> {
    const [answer] = await this.produce([{ topic, partition, batch }], options);
    if (answer === undefined) return -1;
    if (answer.errorCode !== ErrorCode.NONE)
      throw new BrokerError(
        `produce to ${topic}-${partition}`,
        answer.errorCode,
        answer.errorMessage,
      );
    return Number(answer.baseOffset);
  }

  async fetch(parts: readonly FetchPart[], options: FetchOptions = {}): Promise<FetchResponse> {
    const { version = this.version('Fetch'), maxWaitMs = 0, minBytes = 1 } = options;
    const byId = version >= topicIdsSince.Fetch;
    const named = async (topic: string): Promise<{ topic?: string; topicId?: string }> =>
      byId ? { topicId: await this.topicId(topic) } : { topic };
    const topics = [];
    for (const { topic, partition, offset, maxBytes = 1 << 20 } of parts) {
      const partitions = [{ partition, fetchOffset: offset, partitionMaxBytes: maxBytes }];
      topics.push({ ...(await named(topic)), partitions });
    }
    const forgottenTopicsData = [];
    for (const { topic, partition } of options.forgotten ?? [])
      forgottenTopicsData.push({ ...(await named(topic)), partitions: [partition] });
    const body: FetchRequestInput = {
      maxWaitMs,
      minBytes,
      maxBytes: options.maxBytes ?? 50 << 20,
      sessionId: options.sessionId ?? 0,
      sessionEpoch: options.sessionEpoch ?? -1,
      topics,
      forgottenTopicsData,
    };
    return this.connection.request('Fetch', version, body, maxWaitMs + 30_000);
  }

  /** Fetches from one partition. Throws a BrokerError for any error. */
  async fetchOne(
    topic: string,
    partition: number,
    offset: number,
    options: FetchOptions & { readonly partitionMaxBytes?: number } = {},
  ): Promise<FetchResponsePartitionData> {
    const { partitionMaxBytes: maxBytes = 8 << 20, ...rest } = options;
    const answer = await this.fetch([{ topic, partition, offset, maxBytes }], rest);
    const data = answer.responses[0]?.partitions[0];
    const errorCode = answer.errorCode || (data?.errorCode ?? ErrorCode.UNKNOWN_SERVER_ERROR);
    if (errorCode !== ErrorCode.NONE || data === undefined)
      throw new BrokerError(`fetch ${topic}-${partition} at ${offset}`, errorCode);
    return data;
  }

  /** Every record from `offset` up to the high watermark, as it is when this is called. */
  async readAll(topic: string, partition: number, offset = 0): Promise<FetchedRecord[]> {
    const records: FetchedRecord[] = [];
    await this.readEach(topic, partition, (one) => records.push(one), offset);
    return records;
  }

  /** The same, one by one: for more than fits in memory. */
  async readEach(
    topic: string,
    partition: number,
    visit: (record: FetchedRecord) => void,
    offset = 0,
  ): Promise<void> {
    const end = await this.endOffset(topic, partition);
    for (let next = offset; next < end; ) {
      const { records } = await this.fetchOne(topic, partition, next, { maxWaitMs: 1_000 });
      const found = decodeRecords(records ?? new Uint8Array(0), next);
      for (const one of found.records) visit(one);
      if (found.nextOffset <= next)
        throw new Error(`${topic}-${partition}: nothing at ${next}, and the log ends at ${end}`);
      next = found.nextOffset;
    }
  }

  /**
   * The offset behind the last record that consumers may read. Right after its start a broker may not know it yet
   * (OFFSET_NOT_AVAILABLE, KIP-207); then this asks again, as clients do.
   */
  async endOffset(topic: string, partition: number): Promise<number> {
    for (let left = askAgainTimes; ; left -= 1) {
      try {
        return (await this.listOffset(topic, partition, -1)).offset;
      } catch (error) {
        const later = error instanceof BrokerError && error.code === ErrorCode.OFFSET_NOT_AVAILABLE;
        if (!later || left === 0) throw error;
        await sleep(askAgainMs);
      }
    }
  }

  /** One partition's offset for a timestamp or one of the special values (-1 latest, -2 earliest, -3 largest timestamp). */
  async listOffset(
    topic: string,
    partition: number,
    timestamp: bigint | number,
    version: number = this.version('ListOffsets'),
  ): Promise<{ offset: number; timestamp: bigint; leaderEpoch: number }> {
    const body = {
      replicaId: -1,
      topics: [{ name: topic, partitions: [{ partitionIndex: partition, timestamp }] }],
    };
    const answer = await this.connection.request('ListOffsets', version, body);
    const data = answer.topics[0]?.partitions[0];
    if (data === undefined || data.errorCode !== ErrorCode.NONE)
      throw new BrokerError(`list offsets of ${topic}-${partition}`, data?.errorCode ?? -1);
    return {
      offset: Number(data.offset),
      timestamp: data.timestamp,
      leaderEpoch: data.leaderEpoch,
    };
  }
}

function batchBytes(batch: ProducePart['batch']): Uint8Array {
  if (batch instanceof Uint8Array) return batch;
  return encodeBatch('records' in batch ? batch : { records: batch });
}

const utf8 = new TextEncoder();

/** A record with this text as its value, and the time when a test has an opinion on it. */
export function record(value: string, timestamp: bigint = BigInt(Date.now())): RecordInput {
  return { value: utf8.encode(value), timestamp };
}

/** What `record` made a value of. */
export function textOf(value: Uint8Array | null | undefined): string {
  return Buffer.from(value ?? []).toString();
}
