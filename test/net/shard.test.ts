import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { NodeDisk, nodeClock, nodeRandom } from '../../engine/node_ports.ts';
import { DiskError } from '../../engine/ports.ts';
import { createFabric } from '../../net/fabric/fabric_memory.ts';
import { LevelLogger } from '../../net/logger.ts';
import { Acceptor } from '../../net/server/acceptor.ts';
import { ConnectionCounts } from '../../net/server/connection_counts.ts';
import { Shard } from '../../net/shard.ts';
import type { FromShard } from '../../net/shard_messages.ts';
import { splitMix } from '../harness/split_mix.ts';
import { clusterId, newTopic, registration } from '../replication/metadata/fixtures.ts';
import { SimulatedStore } from '../replication/raft/simulated_store.ts';
import { SimPageCache } from '../sim/page_cache.ts';
import { newHost, portPair } from './cluster_fixture.ts';
import { batchOf, batchOfBytes, valuesIn } from './data_path/requests.ts';
import { configOf } from './data_path/shard_world.ts';
import { SocketClient } from './data_path/socket_client.ts';
import { eventually, libc } from './server/harness.ts';

const test = suite('shard');

/** A disk whose flushes end when the test says so, or fail. */
class SlowDisk extends NodeDisk {
  isHeld: boolean = false;
  failure: DiskError | null = null;
  #held: (() => void)[] = [];

  override flush(fd: number, done: (error: DiskError | null) => void): void {
    const run = (): void => super.flush(fd, (error) => done(this.failure ?? error));
    if (this.isHeld) this.#held.push(run);
    else run();
  }

  let(): void {
    this.isHeld = false;
    for (const run of this.#held.splice(0)) run();
  }
}

interface Running {
  readonly shard: Shard;
  readonly disk: SlowDisk;
  readonly pageCache: SimPageCache;
  readonly messages: FromShard[];
  connect(): Promise<SocketClient>;
  createTopic(name: string): Promise<void>;
  deleteTopic(name: string): Promise<void>;
  dispose(): Promise<void>;
}

/** A shard on this thread, on a real disk, behind a real listener. */
async function startShard(): Promise<Running> {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-shard-'));
  const host = newHost(new SimulatedStore(splitMix(1)));
  await host.start();
  await host.request(registration(1));
  const [hostPort, port] = portPair();
  const pageCache = new SimPageCache();
  const disk = new SlowDisk(pageCache);
  const messages: FromShard[] = [];
  const counts = new ConnectionCounts({ connectionsMax: 100, connectionsPerIpMax: 100 });
  const logger = new LevelLogger(
    { format: 'text', level: 'fatal' },
    () => {},
    () => 0,
  );
  const shard = new Shard({
    data: {
      config: configOf([`log.dirs=${dir}`]),
      clusterId,
      logDirs: [
        {
          path: dir,
          cleanShutdown: false,
          afterPowerLoss: false,
          dropCache: false,
          partitions: new Map(),
        },
      ],
    },
    ports: { disk, pageCache, clock: nodeClock, random: nodeRandom },
    logger,
    port,
    fabric: createFabric(1)[0]!,
  });
  hostPort.on('message', (message) => {
    messages.push(message as FromShard);
    // As main does when all shards have said so.
    if ((message as FromShard).type === 'shard.drained') shard.closeLogs();
  });
  await host.attach(hostPort);
  await shard.ready;
  const acceptor = await Acceptor.listen({
    listener: 'PLAINTEXT',
    host: '127.0.0.1',
    port: 0,
    counts,
    log: logger,
    delivery: {
      type: 'descriptor',
      dup: libc.dup,
      deliver: (fd, origin) => shard.adopt(fd, origin),
    },
  });
  const clients: SocketClient[] = [];
  return {
    shard,
    disk,
    pageCache,
    messages,
    connect: async () => {
      const client = await SocketClient.connect(acceptor.port);
      clients.push(client);
      return client;
    },
    createTopic: async (name) => {
      await host.request({ type: 'createTopics', topics: [newTopic(name)], validateOnly: false });
    },
    deleteTopic: async (name) => {
      await host.request({ type: 'deleteTopics', topics: [{ name, topicId: null }] });
    },
    dispose: async () => {
      disk.let();
      for (const client of clients) client.close();
      if (!messages.some(({ type }) => type === 'shard.stopped')) await shard.stop(1_000);
      await acceptor.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

function produceOf(topic: string, records: Uint8Array, acks = -1) {
  return {
    acks,
    timeoutMs: 5_000,
    topicData: [{ name: topic, partitionData: [{ index: 0, records }] }],
  };
}

function fetchOf(topic: string, offset: number, maxWaitMs = 0) {
  return {
    maxWaitMs,
    minBytes: 1,
    maxBytes: 50_000_000,
    sessionEpoch: -1,
    topics: [
      {
        topic,
        partitions: [{ partition: 0, fetchOffset: BigInt(offset), partitionMaxBytes: 50_000_000 }],
      },
    ],
  };
}

test('records go in and out over a socket, small ones and such that go by sendfile', async () => {
  const running = await startShard();
  await running.createTopic('t');
  const client = await running.connect();
  await client.call('Produce', 9, produceOf('t', batchOf(['a', 'b'])));
  const small = await client.call('Fetch', 11, fetchOf('t', 0));
  assert.deepEqual(valuesIn(small.responses[0]?.partitions[0]?.records), ['0 a', '1 b']);
  const large = batchOfBytes(1_000_000);
  for (let count = 0; count < 5; count += 1) client.send('Produce', 9, produceOf('t', large));
  const fetched = client.send('Fetch', 11, fetchOf('t', 2));
  const records = (await fetched()).responses[0]?.partitions[0]?.records as Uint8Array;
  assert.equal(records.length, 5_000_000);
  assert(Buffer.from(records.subarray(61, 1_000_000)).equals(Buffer.from(large.subarray(61))));
  await running.dispose();
});

test('trap 13: requests of one connection are answered in their order, silent ones between', async () => {
  const running = await startShard();
  await running.createTopic('t');
  const client = await running.connect();
  const answers = [
    client.send('Produce', 9, produceOf('t', batchOf(['a']))),
    client.send('Produce', 9, produceOf('nobody', batchOf(['x']))),
  ];
  client.send('Produce', 9, produceOf('t', batchOf(['b']), 0), true);
  answers.push(client.send('Produce', 9, produceOf('t', batchOf(['c']), 1)));
  const fetched = client.send('Fetch', 11, fetchOf('t', 0));
  const codes: (number | undefined)[] = [];
  for (const answer of answers)
    codes.push((await answer()).responses[0]?.partitionResponses[0]?.errorCode);
  assert.deepEqual(codes, [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE]);
  assert.equal(valuesIn((await fetched()).responses[0]?.partitions[0]?.records)[0], '0 a');
  await running.dispose();
});

test('trap 13: acks=0 with an error closes the connection, and main is told', async () => {
  const running = await startShard();
  const client = await running.connect();
  client.send('Produce', 9, produceOf('nobody', batchOf(['x']), 0), true);
  await client.raw.untilClosed();
  await eventually(() => running.messages.some(({ type }) => type === 'shard.closed'));
  await running.dispose();
});

test('a fetch that waits is woken by the flush, not by the write', async () => {
  const running = await startShard();
  await running.createTopic('t');
  const [consumer, producer] = [await running.connect(), await running.connect()];
  const fetched = consumer.send('Fetch', 11, fetchOf('t', 0, 60_000));
  running.disk.isHeld = true;
  await producer.call('Produce', 9, produceOf('t', batchOf(['a']), 1));
  const listed = await producer.call('ListOffsets', 7, {
    replicaId: -1,
    topics: [{ name: 't', partitions: [{ partitionIndex: 0, timestamp: -1n }] }],
  });
  assert.equal(listed.topics[0]?.partitions[0]?.offset, 0n);
  assert.equal(consumer.raw.frames.length, 0);
  running.disk.let();
  assert.deepEqual(valuesIn((await fetched()).responses[0]?.partitions[0]?.records), ['0 a']);
  await running.dispose();
});

test('a stop answers what waits: fetches with what there is, produce requests with the outcome of their flush', async () => {
  const running = await startShard();
  await running.createTopic('t');
  await running.createTopic('quiet');
  const [consumer, producer] = [await running.connect(), await running.connect()];
  const fetched = consumer.send('Fetch', 11, fetchOf('quiet', 0, 60_000));
  running.disk.isHeld = true;
  const stored = producer.send('Produce', 9, produceOf('t', batchOf(['a'])));
  // A third connection whose request has been served shows that the other two are in.
  const probe = await running.connect();
  await probe.call('Produce', 9, produceOf('t', batchOf(['b']), 1));
  const stopped = running.shard.stop(5_000);
  assert.equal((await fetched()).responses[0]?.partitions[0]?.errorCode, ErrorCode.NONE);
  assert.equal(producer.raw.frames.length, 0);
  running.disk.let();
  assert.equal((await stored()).responses[0]?.partitionResponses[0]?.errorCode, ErrorCode.NONE);
  await stopped;
  await eventually(() => running.messages.some(({ type }) => type === 'shard.stopped'));
  const last = running.messages.slice(-2);
  assert.deepEqual(
    last.map(({ type }) => type),
    ['shard.checkpoint', 'shard.stopped'],
    'the checkpoint comes before the word that all is well',
  );
  assert.deepEqual(last[1], { type: 'shard.stopped', clean: true });
  const { dirs } = last[0] as FromShard & { type: 'shard.checkpoint' };
  const point = dirs[0]?.partitions.find(({ topic }) => topic === 't')?.recoveryPoint;
  assert.equal(point, 2);
  await running.dispose();
});

test('a stop does not wait longer than it may for a flush that hangs', async () => {
  const running = await startShard();
  await running.createTopic('t');
  const client = await running.connect();
  running.disk.isHeld = true;
  client.send('Produce', 9, produceOf('t', batchOf(['a'])));
  const probe = await running.connect();
  await probe.call('Produce', 9, produceOf('t', batchOf(['b']), 1));
  const stopped = running.shard.stop(30);
  await client.raw.untilClosed();
  assert.equal(client.raw.frames.length, 0, 'no answer is better than a false one');
  running.disk.let();
  await stopped;
  await running.dispose();
});

test('a deleted topic is reported with its directory', async () => {
  const running = await startShard();
  await running.createTopic('t');
  const client = await running.connect();
  const waiting = client.send('Fetch', 11, fetchOf('t', 0, 60_000));
  const probe = await running.connect();
  await probe.call('Produce', 9, produceOf('nobody', batchOf(['b']), 1));
  await running.deleteTopic('t');
  const code = (await waiting()).responses[0]?.partitions[0]?.errorCode;
  assert.equal(code, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
  await eventually(() => running.messages.some(({ type }) => type === 'shard.deleted'));
  await running.dispose();
});

test('the last directory fails: main is told of the directory and of the end', async () => {
  const running = await startShard();
  await running.createTopic('t');
  const client = await running.connect();
  running.disk.failure = new DiskError('EIO', 'injected');
  const answer = await client.call('Produce', 9, produceOf('t', batchOf(['a'])));
  assert.equal(
    answer.responses[0]?.partitionResponses[0]?.errorCode,
    ErrorCode.KAFKA_STORAGE_ERROR,
  );
  await eventually(() => running.messages.some(({ type }) => type === 'shard.failed'));
  assert(running.messages.some(({ type }) => type === 'shard.dirFailed'));
  await running.dispose();
  await eventually(() => running.messages.some(({ type }) => type === 'shard.stopped'));
  assert.deepEqual(running.messages.at(-1), { type: 'shard.stopped', clean: false });
});

test.run();
