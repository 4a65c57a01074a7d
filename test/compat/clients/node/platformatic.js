/**
 * @platformatic/kafka behind the command contract of ../README.md. Its streams join a group, so the reading here is done
 * with its consumer's `fetch`, on which they build.
 */
import { Admin, Consumer, Producer } from '@platformatic/kafka';
import { serve, wait } from './contract.js';

const acksOf = { 0: 0, 1: 1, all: -1 };
const options = (bootstrap) => ({ clientId: 'compat', bootstrapBrokers: [bootstrap] });

async function create(bootstrap, topic, partitions) {
  const admin = new Admin(options(bootstrap));
  try {
    await admin.createTopics({ topics: [topic], partitions, replicas: 1 });
  } finally {
    await admin.close();
  }
}

async function produce(
  bootstrap,
  { topic, partition, codec, acks, idempotent },
  records,
  stayOpen,
) {
  const producer = new Producer({ ...options(bootstrap), idempotent });
  try {
    const messages = records.map(({ key, value, headers, timestamp }) => ({
      topic,
      partition,
      key,
      value,
      timestamp: BigInt(timestamp),
      // Names as buffers of their own: a map of strings would keep only the last of two headers with one name.
      headers: new Map(headers.map(([name, content]) => [Buffer.from(name), content])),
    }));
    await producer.send({ messages, acks: acksOf[acks], compression: codec });
    await stayOpen();
  } finally {
    await producer.close();
  }
}

async function consume(bootstrap, places, emit, isDone) {
  const consumer = new Consumer({ ...options(bootstrap), groupId: 'compat' });
  try {
    const topics = [...new Set(places.map(({ topic }) => topic))];
    const metadata = await consumer.metadata({ topics });
    const names = new Map([...metadata.topics].map(([name, { id }]) => [id, name]));
    const next = new Map(places.map(({ topic, partition }) => [`${topic}-${partition}`, 0n]));
    const node = [...metadata.brokers.keys()][0];
    while (!isDone()) {
      const wanted = topics.map((topic) => ({
        topicId: metadata.topics.get(topic).id,
        partitions: places
          .filter((place) => place.topic === topic)
          .map(({ partition }) => ({
            partition,
            currentLeaderEpoch: -1,
            fetchOffset: next.get(`${topic}-${partition}`),
            lastFetchedEpoch: -1,
            partitionMaxBytes: 1_048_576,
          })),
      }));
      const { responses } = await consumer.fetch({ node, topics: wanted, maxWaitTime: 100 });
      for (const { topicId, partitions } of responses) {
        for (const partition of partitions) take(names.get(topicId), partition, next, emit);
      }
    }
  } finally {
    await consumer.close();
  }
}

function take(topic, { partitionIndex: partition, records: batches }, next, emit) {
  const place = `${topic}-${partition}`;
  for (const batch of batches ?? []) {
    for (const record of batch.records) {
      const offset = batch.firstOffset + BigInt(record.offsetDelta);
      // A batch that holds the wanted offset comes whole.
      if (offset < next.get(place)) continue;
      next.set(place, offset + 1n);
      const timestamp = Number(batch.firstTimestamp + record.timestampDelta);
      const headers = record.headers.map(([name, content]) => [name.toString('utf8'), content]);
      const { key, value } = record;
      emit({ topic, partition, offset: Number(offset), timestamp, key, value, headers });
    }
  }
}

async function member({ bootstrap, topic, group, instance }, life) {
  const { assigned, processed, isStopped } = life;
  const consumer = new Consumer({
    ...options(bootstrap),
    groupId: group,
    groupInstanceId: instance ?? undefined,
    sessionTimeout: 6_000,
    heartbeatInterval: 300,
    rebalanceTimeout: 10_000,
    maxWaitTime: 100,
  });
  const note = () =>
    assigned(
      (consumer.assignments ?? [])
        .filter((one) => one.topic === topic)
        .flatMap((one) => one.partitions),
    );
  consumer.on('consumer:group:join', note);
  consumer.on('consumer:group:rebalance', () => assigned([]));
  const stream = await consumer.consume({
    topics: [topic],
    autocommit: false,
    mode: 'committed',
    fallbackMode: 'earliest',
  });
  note();
  stream.on('data', (message) => {
    processed(message.partition, message.offset);
    // One that comes late, after a rebalance, is refused; the next owner reads the record again.
    void Promise.resolve(message.commit()).catch(() => {});
  });
  stream.on('error', (error) => process.stderr.write(`${error.stack}\n`));
  while (!isStopped()) await wait(50);
  await consumer.close(true);
}

await serve({ create, produce, consume, member });
