/** The requests of the harness as functions: topics made and dropped, records produced, ends asked. */
import { ApiKey, ApiVersion, ByteReader, request } from './wire.ts';
import { WireClient } from './wire_client.ts';

const TIMEOUT_MS = 60_000;
/** TOPIC_ALREADY_EXISTS: an earlier try got through although its answer was lost. */
const TOPIC_ALREADY_EXISTS = 36;

export interface TopicOptions {
  partitions: number;
  /** Topic configuration, Kafka's names. */
  configs?: Record<string, string>;
}

/** Creates a topic with one replica. Resolves with the error code; 0 also when it exists already. */
export async function createTopic(
  client: WireClient,
  topic: string,
  options: TopicOptions,
): Promise<number> {
  const writer = request(ApiKey.createTopics, ApiVersion.createTopics);
  writer.int32(1).string(topic).int32(options.partitions).int16(1).int32(0);
  writer.array(Object.entries(options.configs ?? {}), ([name, value]) => {
    writer.string(name).string(value);
  });
  writer.int32(TIMEOUT_MS).int8(0);
  const reader = new ByteReader(await client.call(writer.frame(), TIMEOUT_MS));
  reader.int32();
  const codes = reader.array(() => {
    reader.string();
    const code = reader.int16();
    reader.string();
    return code;
  });
  const code = codes[0] ?? -1;
  return code === TOPIC_ALREADY_EXISTS ? 0 : code;
}

/** Deletes a topic; errors are left to the caller's judgement (error code, 0 for none). */
export async function deleteTopic(client: WireClient, topic: string): Promise<number> {
  const writer = request(ApiKey.deleteTopics, ApiVersion.deleteTopics);
  writer.int32(1).string(topic).int32(TIMEOUT_MS);
  const reader = new ByteReader(await client.call(writer.frame(), TIMEOUT_MS));
  reader.int32();
  const codes = reader.array(() => {
    reader.string();
    return reader.int16();
  });
  return codes[0] ?? -1;
}

/** How many partitions of the topic have a leader now; 0 when the topic is not known. */
async function partitionsReady(client: WireClient, topic: string): Promise<number> {
  const writer = request(ApiKey.metadata, ApiVersion.metadata);
  writer.int32(1).string(topic).int8(0);
  const reader = new ByteReader(await client.call(writer.frame(), TIMEOUT_MS));
  reader.int32();
  reader.array(() => {
    reader.int32();
    reader.string();
    reader.int32();
    reader.string();
  });
  reader.string();
  reader.int32();
  let ready = 0;
  reader.array(() => {
    reader.int16();
    reader.string();
    reader.int8();
    reader.array(() => {
      const code = reader.int16();
      reader.int32();
      const leader = reader.int32();
      reader.array(() => reader.int32());
      reader.array(() => reader.int32());
      if (code === 0 && leader >= 0) ready += 1;
    });
  });
  return ready;
}

/** A Produce request frame with one batch for one partition. `acks`: 1, or -1 for all. */
export function produceFrame(
  topic: string,
  partition: number,
  batch: Uint8Array,
  acks: number,
): Buffer {
  const writer = request(ApiKey.produce, ApiVersion.produce);
  writer.string(null).int16(acks).int32(TIMEOUT_MS);
  writer.int32(1).string(topic).int32(1).int32(partition).bytes(batch);
  return writer.frame();
}

/** The error code of a Produce answer to a `produceFrame`. Reads nothing else: it is on the hot path. */
export function produceError(body: Buffer): number {
  const nameLength = body.readInt16BE(4);
  // Topic count, name, partition count, partition index, then the code.
  return body.readInt16BE(4 + 2 + nameLength + 4 + 4);
}

/** The next offset of each partition, from ListOffsets with timestamp -1. Throws on an error code. */
export async function endOffsets(
  client: WireClient,
  topic: string,
  partitions: number,
): Promise<number[]> {
  const writer = request(ApiKey.listOffsets, ApiVersion.listOffsets);
  writer.int32(-1).int32(1).string(topic);
  writer.array(
    Array.from({ length: partitions }, (_, index) => index),
    (partition) => {
      writer.int32(partition).int64(-1);
    },
  );
  const reader = new ByteReader(await client.call(writer.frame(), TIMEOUT_MS));
  const ends = new Array<number>(partitions).fill(-1);
  reader.array(() => {
    reader.string();
    reader.array(() => {
      const partition = reader.int32();
      const code = reader.int16();
      reader.int64();
      const offset = reader.int64();
      if (code !== 0) throw new Error(`ListOffsets of ${topic}-${partition}: error ${code}`);
      ends[partition] = offset;
    });
  });
  return ends;
}

/** A long-polling Fetch request for one partition: answers at the first byte or after `waitMs`. */
export function fetchFrame(
  topic: string,
  offset: number,
  waitMs: number,
  maxBytes: number,
): Buffer {
  const writer = request(ApiKey.fetch, ApiVersion.fetch);
  writer.int32(-1).int32(waitMs).int32(1).int32(maxBytes).int8(0);
  writer.int32(1).string(topic).int32(1).int32(0).int64(offset).int32(maxBytes);
  return writer.frame();
}

/** The error code and the record data (a view, lent) of a Fetch answer to a `fetchFrame`. */
export function fetchedRecords(body: Buffer): { code: number; records: Buffer } {
  const reader = new ByteReader(body);
  reader.int32();
  reader.int32();
  reader.string();
  reader.int32();
  reader.int32();
  const code = reader.int16();
  reader.int64();
  reader.int64();
  reader.array(() => {
    reader.int64();
    reader.int64();
  });
  return { code, records: reader.bytes() };
}

/** Runs `work` with a fresh connection and closes it, whatever happens. */
export async function withClient<T>(
  port: number,
  work: (client: WireClient) => Promise<T>,
): Promise<T> {
  const client = await WireClient.connect(port);
  try {
    return await work(client);
  } finally {
    client.close();
  }
}

/** Creates a topic and resolves when all its partitions have a leader. Throws after `timeoutMs`. */
export async function makeTopic(
  port: number,
  topic: string,
  options: TopicOptions,
  timeoutMs = 60_000,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  await withClient(port, async (client) => {
    const code = await createTopic(client, topic, options);
    if (code !== 0) throw new Error(`creating topic ${topic} failed with error ${code}`);
    while ((await partitionsReady(client, topic)) < options.partitions) {
      if (performance.now() > deadline)
        throw new Error(`topic ${topic} has no leaders after ${timeoutMs} ms`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  });
}
