/**
 * KafkaJS behind the command contract of ../README.md, with the codecs that its users plug in. Its consumer takes no
 * partitions by assignment, only what a group gives it, so this one asks KafkaJS's own cluster and broker objects, as
 * its consumer does.
 */
import { Worker } from 'node:worker_threads';
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import kafkajs from 'kafkajs';
import snappy from 'kafkajs-snappy';
import { compressFrameSync, decompressFrameSync } from 'lz4-napi';
import { serve, wait } from './contract.js';

const { CompressionCodecs, CompressionTypes, Kafka, logLevel } = kafkajs;
CompressionCodecs[CompressionTypes.Snappy] = snappy;
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: async ({ buffer }) => compressFrameSync(buffer),
  decompress: async (buffer) => decompressFrameSync(buffer),
});
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async ({ buffer }) => zstdCompressSync(buffer),
  decompress: async (buffer) => zstdDecompressSync(buffer),
});

const codecs = { none: 'None', gzip: 'GZIP', snappy: 'Snappy', lz4: 'LZ4', zstd: 'ZSTD' };
/** What a commit hears that comes too late. */
const movedOn = new Set(['ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID']);
const acksOf = { 0: 0, 1: 1, all: -1 };

function connect(bootstrap) {
  const logCreator = () => (entry) => process.stderr.write(`${JSON.stringify(entry)}\n`);
  return new Kafka({ brokers: bootstrap.split(','), logLevel: logLevel.ERROR, logCreator });
}

async function create(bootstrap, topic, numPartitions) {
  const admin = connect(bootstrap).admin();
  await admin.connect();
  try {
    const topics = [{ topic, numPartitions, replicationFactor: 1 }];
    // KafkaJS hides this error, and only this one, behind false.
    if (!(await admin.createTopics({ topics }))) throw new Error(`${topic} already exists`);
  } finally {
    await admin.disconnect();
  }
}

/** Headers as KafkaJS takes them: an array for a name that comes several times. */
function headersOf(pairs) {
  const headers = {};
  for (const [name, value] of pairs) {
    headers[name] = name in headers ? [headers[name], value].flat() : value;
  }
  return headers;
}

async function produce(bootstrap, mode, records, stayOpen) {
  const { topic, partition, codec, acks, idempotent } = mode;
  // What a message says of its partition is for the partitioner to read.
  const createPartitioner = () => (choice) => choice.message.partition;
  const producer = connect(bootstrap).producer({ idempotent, createPartitioner });
  await producer.connect();
  try {
    const messages = records.map(({ headers, timestamp, ...rest }) => ({
      ...rest,
      partition,
      timestamp: String(timestamp),
      headers: headersOf(headers),
    }));
    const compression = CompressionTypes[codecs[codec]];
    await producer.send({ topic, acks: acksOf[acks], compression, messages });
    await stayOpen();
  } finally {
    await producer.disconnect();
  }
}

async function consume(bootstrap, places, emit, isDone) {
  const kafka = connect(bootstrap);
  const newCluster = Object.getOwnPropertySymbols(kafka).find((symbol) =>
    symbol.description?.endsWith('createCluster'),
  );
  const cluster = kafka[newCluster]({ metadataMaxAge: 300_000, isolationLevel: 1 });
  await cluster.connect();
  try {
    const next = new Map(places.map(({ topic, partition }) => [`${topic}-${partition}`, 0]));
    const topicNames = [...new Set(places.map(({ topic }) => topic))];
    await cluster.addMultipleTargetTopics(topicNames);
    while (!isDone()) {
      for (const { nodeId, topics } of byLeader(cluster, places, next)) {
        const broker = await cluster.findBroker({ nodeId });
        const { responses } = await broker.fetch({ maxWaitTime: 100, isolationLevel: 1, topics });
        for (const response of responses) take(response, next, emit);
      }
    }
  } finally {
    await cluster.disconnect();
  }
}

/** What to ask of each leader. */
function* byLeader(cluster, places, next) {
  for (const topic of new Set(places.map((place) => place.topic))) {
    const wanted = places.filter((place) => place.topic === topic).map((place) => place.partition);
    const leaders = cluster.findLeaderForPartitions(topic, wanted);
    for (const [nodeId, partitions] of Object.entries(leaders)) {
      const asked = partitions.map((partition) => ({
        partition,
        fetchOffset: String(next.get(`${topic}-${partition}`)),
        maxBytes: 1_048_576,
      }));
      yield { nodeId, topics: [{ topic, partitions: asked }] };
    }
  }
}

function take({ topicName: topic, partitions }, next, emit) {
  for (const { partition, messages } of partitions) {
    const place = `${topic}-${partition}`;
    for (const { offset, timestamp, key, value, headers } of messages) {
      // A batch that holds the wanted offset comes whole.
      if (Number(offset) < next.get(place)) continue;
      next.set(place, Number(offset) + 1);
      const pairs = Object.entries(headers).flatMap(([name, values]) =>
        [values].flat().map((one) => [name, one]),
      );
      const numbers = { offset: Number(offset), timestamp: Number(timestamp) };
      emit({ topic, partition, ...numbers, key, value, headers: pairs });
    }
  }
}

const disconnectMs = 10_000;
/** Runs beside the event loop, which KafkaJS may have taken: see `disconnect`. */
const endOfProcess = `
  import { writeSync } from 'node:fs';
  import { workerData } from 'node:worker_threads';
  setTimeout(() => {
    writeSync(2, 'KafkaJS has not ended its disconnect\\n');
    writeSync(1, workerData);
    process.kill(process.pid, 'SIGKILL');
  }, ${disconnectMs});
`;

/**
 * Disconnects a consumer that has nothing to commit, and where that takes too long answers for the program, with the error
 * that the consumer ended with if it did, and ends the process. When the brokers that KafkaJS 2.2.4 knows change while it
 * stops, its fetch manager, which waits for its fetchers to end so that it can make new ones, does make them; they find the
 * consumer stopped and ask again at once, for ever, without a turn of the event loop. A timer of this thread would not
 * fire. (A loop of that kind that runs without a broker is its issue 1384.)
 */
async function disconnect(consumer, error) {
  const answer = error === null ? { ok: true } : { ok: false, error: `${error.stack}` };
  const url = new URL(`data:text/javascript,${encodeURIComponent(endOfProcess)}`);
  const watch = new Worker(url, { workerData: `${JSON.stringify(answer)}\n` });
  try {
    await consumer.disconnect();
  } finally {
    await watch.terminate();
  }
}

async function member({ bootstrap, topic, group }, { assigned, processed, failed, isStopped }) {
  const consumer = connect(bootstrap).consumer({
    groupId: group,
    sessionTimeout: 6_000,
    heartbeatInterval: 300,
    maxWaitTimeInMs: 100,
  });
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) =>
    assigned(payload.memberAssignment[topic] ?? []),
  );
  consumer.on(consumer.events.REBALANCING, () => assigned([]));
  let failure = null;
  let isInHand = false;
  consumer.on(consumer.events.CRASH, ({ payload }) => {
    if (!payload.restart) failure = payload.error;
  });
  await consumer.connect();
  let ended = null;
  try {
    await consumer.subscribe({ topics: [topic], fromBeginning: true });
    await consumer.run({
      autoCommit: false,
      eachMessage: async ({ partition, message }) => {
        isInHand = true;
        processed(partition, message.offset);
        const offset = String(BigInt(message.offset) + 1n);
        try {
          await consumer.commitOffsets([{ topic, partition, offset }]);
        } catch (error) {
          // The group has gone on without us: the next owner reads the record again. KafkaJS, which joins anew of its own
          // accord while a message is processed, would take this error for one that ends the consumer.
          if (movedOn.has(error.cause?.type)) return;
          // What KafkaJS does about any other one is to process the message again, from its own memory of where it was.
          failed(partition, message.offset);
          throw error;
        } finally {
          isInHand = false;
        }
      },
    });
    // A consumer that stops leaves out the commit of the message in hand.
    while ((!isStopped() || isInHand) && failure === null) await wait(50);
    if (failure !== null) throw failure;
  } catch (error) {
    ended = error;
  }
  await disconnect(consumer, ended);
  if (ended !== null) throw ended;
}

/**
 * One message in flight for each partition. Not several partitions in one `send`: when their leaders change in the middle
 * of it, KafkaJS takes the answer of a broker for some of them as its answer for all that it leads by then.
 */
async function stream({ bootstrap, topic, partitions, pauseMs }, next, acked) {
  const createPartitioner = () => (choice) => choice.message.partition;
  const producer = connect(bootstrap).producer({ idempotent: true, createPartitioner });
  await producer.connect();
  const send = async (partition) => {
    for (let record = next(partition); record !== null; record = next(partition)) {
      const messages = [{ partition, value: record.value }];
      const [answer] = await producer.send({ topic, acks: -1, messages });
      acked(partition, record.number, answer.baseOffset);
      await wait(pauseMs * partitions);
    }
  };
  try {
    await Promise.all(Array.from({ length: partitions }, (_, partition) => send(partition)));
  } finally {
    await producer.disconnect();
  }
}

await serve({ create, produce, consume, member, stream });
