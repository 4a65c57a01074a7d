import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { NodeDisk } from '../../engine/node_ports.ts';
import { DiskError } from '../../engine/ports.ts';
import { type Broker, type BrokerSeams, startBroker } from '../../net/broker.ts';
import { LevelLogger } from '../../net/logger.ts';
import { batchOf, valuesIn } from './data_path/requests.ts';
import { configOf } from './data_path/shard_world.ts';
import { SocketClient } from './data_path/socket_client.ts';

const test = suite('broker');

const dirs: string[] = [];
/** What a failed test leaves running would keep its process alive. */
const running = new Set<Broker>();

function newDir(): string {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-broker-'));
  dirs.push(dir);
  return dir;
}

test.after(async () => {
  for (const broker of running) await broker.stop().catch(() => undefined);
  for (const dir of dirs) rmSync(dir, { recursive: true, force: true });
});

async function start(
  logDirs: readonly string[],
  settings: readonly string[] = [],
  seams?: BrokerSeams,
): Promise<Broker> {
  const config = configOf([
    'listeners=PLAINTEXT://127.0.0.1:0',
    ...settings,
    `log.dirs=${logDirs.join(',')}`,
  ]);
  const logger = new LevelLogger(
    { format: 'text', level: 'fatal' },
    () => {},
    () => 0,
  );
  const broker = await startBroker(config, logger, seams);
  running.add(broker);
  return broker;
}

async function stop(broker: Broker): Promise<void> {
  running.delete(broker);
  await broker.stop();
}

async function produce(
  client: SocketClient,
  topic: string,
  value: string,
): Promise<number | undefined> {
  await client.call('Metadata', 9, { topics: [{ name: topic }] });
  const answer = await client.call('Produce', 9, {
    acks: -1,
    timeoutMs: 5_000,
    topicData: [{ name: topic, partitionData: [{ index: 0, records: batchOf([value]) }] }],
  });
  return answer.responses[0]?.partitionResponses[0]?.errorCode;
}

/** Waits: after an unclean stop there is nothing to see before the flush of what was kept. */
async function read(client: SocketClient, topic: string): Promise<string[]> {
  const answer = await client.call('Fetch', 11, {
    maxWaitMs: 10_000,
    minBytes: 1,
    sessionEpoch: -1,
    topics: [
      { topic, partitions: [{ partition: 0, fetchOffset: 0n, partitionMaxBytes: 1_000_000 }] },
    ],
  });
  return valuesIn(answer.responses[0]?.partitions[0]?.records);
}

test('stopped and started again: clean, with all records, over two directories and two listeners', async () => {
  const logDirs = [newDir(), newDir()];
  const settings = [
    'listeners=A://127.0.0.1:0,B://127.0.0.1:0',
    'listener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT',
  ];
  const first = await start(logDirs, settings);
  const client = await SocketClient.connect(first.address.port);
  for (const topic of ['one', 'two', 'three'])
    assert.equal(await produce(client, topic, `v ${topic}`), ErrorCode.NONE);
  const { brokers } = await client.call('Metadata', 9, { topics: null });
  assert.equal(
    brokers[0]?.port,
    first.address.port,
    'clients of a listener are sent to that listener',
  );
  await stop(first);
  for (const dir of logDirs) {
    assert(existsSync(join(dir, '.kafka_cleanshutdown')), dir);
    assert(
      readdirSync(dir).some((name) => /^(one|two|three)-0$/.test(name)),
      `${dir} has its part`,
    );
  }
  const second = await start(logDirs, settings);
  const again = await SocketClient.connect(second.address.port);
  for (const topic of ['one', 'two', 'three'])
    assert.deepEqual(await read(again, topic), [`0 v ${topic}`]);
  const epochs = await again.call('Metadata', 9, { topics: [{ name: 'one' }] });
  assert.equal(
    epochs.topics[0]?.partitions[0]?.leaderEpoch,
    0,
    'a clean stop needs no new leader epoch',
  );
  await stop(second);
});

test('a second broker on the same directory is told so and disturbs nobody', async () => {
  const dir = newDir();
  const broker = await start([dir]);
  const client = await SocketClient.connect(broker.address.port);
  await produce(client, 't', 'a');
  await assert.rejects(start([dir]), /is in use by process \d+/);
  await assert.rejects(start([newDir(), dir]), /is in use by process \d+/);
  assert.equal(await produce(client, 't', 'b'), ErrorCode.NONE);
  assert.deepEqual(await read(client, 't'), ['0 a', '1 b']);
  await stop(broker);
});

test('a port that is taken: the start fails, and the directory is free again', async () => {
  const dir = newDir();
  const squatter = createServer().listen(0, '127.0.0.1');
  await new Promise<void>((resolve) => squatter.once('listening', resolve));
  const { port } = squatter.address() as { port: number };
  await assert.rejects(start([dir], [`listeners=PLAINTEXT://127.0.0.1:${port}`]), {
    code: 'EADDRINUSE',
  });
  squatter.close();
  const broker = await start([dir], [`listeners=PLAINTEXT://127.0.0.1:${port}`]);
  assert.equal(broker.address.port, port);
  await stop(broker);
});

test('a connection that comes before the logs are open waits, and is served then', async () => {
  const dir = newDir();
  const before = await start([dir]);
  const { port } = before.address;
  const client = await SocketClient.connect(port);
  await produce(client, 't', 'a');
  await stop(before);
  const starting = start([dir], [`listeners=PLAINTEXT://127.0.0.1:${port}`]);
  let early: SocketClient | null = null;
  for (let attempt = 0; early === null && attempt < 1_000; attempt += 1)
    early = await SocketClient.connect(port).catch(async () => {
      await new Promise((resolve) => setTimeout(resolve, 2));
      return null;
    });
  assert(early !== null);
  assert.deepEqual(await read(early, 't'), ['0 a'], 'never an unknown topic');
  await stop(await starting);
});

/** A disk whose flushes fail from some moment on. */
class FailingDisk extends NodeDisk {
  isBroken: boolean = false;

  override flush(fd: number, done: Parameters<NodeDisk['flush']>[1]): void {
    super.flush(fd, (error) => done(this.isBroken ? new DiskError('EIO', 'injected') : error));
  }
}

test('the metadata log fails: the broker says why it must end, and the next start serves again', async () => {
  const dir = newDir();
  const disk = new FailingDisk();
  const broker = await start([dir], [], { disk });
  const client = await SocketClient.connect(broker.address.port);
  assert.equal(await produce(client, 't', 'a'), ErrorCode.NONE);
  disk.isBroken = true;
  client.send('Metadata', 9, { topics: [{ name: 'new' }] });
  const reason = await broker.failed;
  assert.match(reason.message, /metadata log failed/);
  disk.isBroken = false;
  await assert.rejects(stop(broker));
  const again = await start([dir]);
  assert.deepEqual(await read(await SocketClient.connect(again.address.port), 't'), ['0 a']);
  await stop(again);
});

test.run();
