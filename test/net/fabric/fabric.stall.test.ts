/** Two shards on this thread, each with a disk of its own whose flushes can be held: what one does while the other is behind. */
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readlinkSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import { NodeDisk, nodeClock, nodeRandom } from '../../../engine/node_ports.ts';
import type { DiskError } from '../../../engine/ports.ts';
import { linkLimits } from '../../../engine/thread/link.ts';
import { createFabric } from '../../../net/fabric/fabric_memory.ts';
import { PartitionPlacer } from '../../../net/fabric/partition_placer.ts';
import { LevelLogger } from '../../../net/logger.ts';
import { Acceptor } from '../../../net/server/acceptor.ts';
import { ConnectionCounts } from '../../../net/server/connection_counts.ts';
import { Shard } from '../../../net/shard.ts';
import type { FromShard } from '../../../net/shard_messages.ts';
import { Client, record } from '../../harness/client.ts';
import { splitMix } from '../../harness/split_mix.ts';
import { clusterId, newTopic, registration } from '../../replication/metadata/fixtures.ts';
import { SimulatedStore } from '../../replication/raft/simulated_store.ts';
import { SimPageCache } from '../../sim/page_cache.ts';
import { newHost, portPair } from '../cluster_fixture.ts';
import { configOf } from '../data_path/shard_world.ts';
import { eventually, libc } from '../server/harness.ts';

const test = suite('a shard that is behind');

class HeldDisk extends NodeDisk {
  isHeld: boolean = false;
  readonly #held: (() => void)[] = [];

  override flush(fd: number, done: (error: DiskError | null) => void): void {
    const run = (): void => super.flush(fd, done);
    if (this.isHeld) this.#held.push(run);
    else run();
  }

  let(): void {
    this.isHeld = false;
    for (const run of this.#held.splice(0)) run();
  }
}

interface World {
  /** Of shard 1, which owns partition 1 of topic t. */
  readonly disk: HeldDisk;
  /** Of both. */
  readonly pageCache: SimPageCache;
  readonly logPath: string;
  /** On shard 0, which owns partition 0. */
  connect(): Promise<Client>;
  close(): Promise<void>;
}

async function start(settings: readonly string[] = []): Promise<World> {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-fabric-'));
  const config = configOf([`log.dirs=${dir}`, ...settings]);
  const host = newHost(new SimulatedStore(splitMix(1)));
  await host.start();
  await host.request(registration(1));
  const topics = [newTopic('t', { numPartitions: 2 })];
  await host.request({ type: 'createTopics', topics, validateOnly: false });
  const placed = new PartitionPlacer(2).follow(host.image.snapshot());
  const logger = new LevelLogger(
    { format: 'text', level: 'fatal' },
    () => {},
    () => 0,
  );
  let drained = 0;
  const pageCache = new SimPageCache();
  const disk = new HeldDisk(pageCache);
  const shards: Shard[] = [];
  for (const fabric of createFabric(2)) {
    const [hostPort, port] = portPair();
    const logDir = {
      path: dir,
      cleanShutdown: false,
      afterPowerLoss: false,
      dropCache: false,
      partitions: new Map(),
    };
    const shard = new Shard({
      data: { config, clusterId, logDirs: [logDir] },
      ports: {
        disk: fabric.shard === 1 ? disk : new NodeDisk(),
        pageCache,
        clock: nodeClock,
        random: nodeRandom,
      },
      logger,
      port,
      fabric,
    });
    shards.push(shard);
    hostPort.on('message', (message) => {
      if ((message as FromShard).type !== 'shard.drained') return;
      drained += 1;
      if (drained === 2) for (const one of shards) one.closeLogs();
    });
    shard.place(placed);
    await host.attach(hostPort);
    await shard.ready;
  }
  // Ports of the fabric must keep nothing alive, so the listener has to.
  const acceptor = await Acceptor.listen({
    listener: 'PLAINTEXT',
    host: '127.0.0.1',
    port: 0,
    counts: new ConnectionCounts({ connectionsMax: 100, connectionsPerIpMax: 100 }),
    log: logger,
    delivery: {
      type: 'descriptor',
      dup: libc.dup,
      deliver: (fd, origin) => shards[0]!.adopt(fd, origin),
    },
  });
  const clients: Client[] = [];
  return {
    disk,
    pageCache,
    logPath: join(dir, 't-1', '00000000000000000000.log'),
    connect: async () => {
      const client = await Client.connect({ host: '127.0.0.1', port: acceptor.port });
      clients.push(client);
      await client.topicId('t');
      return client;
    },
    close: async () => {
      disk.let();
      for (const client of clients) client.close();
      await acceptor.close();
      await Promise.all(shards.map((shard) => shard.stop(1_000)));
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** Waits until the size of a file has not changed for a while, and returns it. */
async function settledSize(path: string): Promise<number> {
  let last = -1;
  for (let unchanged = 0; unchanged < 5; ) {
    await sleep(100);
    const { size } = statSync(path);
    unchanged = size === last ? unchanged + 1 : 0;
    last = size;
  }
  return last;
}

test('its flush hangs: others stop taking produce requests, go on fetching, and lose nothing', async () => {
  const world = await start();
  const clients = [];
  for (let k = 0; k < 8; k += 1) clients.push(await world.connect());
  const reader = await world.connect();
  assert.equal(await clients[0]!.produceOne('t', 0, [record('before')]), 0);
  assert.equal(await clients[0]!.produceOne('t', 1, [record('before')]), 0);
  const batchBytes = statSync(world.logPath).size;
  world.disk.isHeld = true;
  const each = 250;
  const sent = clients.map((client) =>
    Array.from({ length: each }, () => client.produceOne('t', 1, [record('during')])),
  );
  const batches = (await settledSize(world.logPath)) / batchBytes;
  // Half of the room for answers is for such requests; each of them has had one of its two answers.
  assert(batches <= 1 + linkLimits.slots / 2, `${batches} batches were taken`);
  assert(batches > linkLimits.slots / 4, `only ${batches} batches were taken`);
  // Reading goes on, here and there.
  assert.equal((await reader.readAll('t', 0)).length, 1);
  assert.equal((await reader.readAll('t', 1)).length, 1);
  world.disk.let();
  const offsets = await Promise.all(sent.flat());
  assert.deepEqual(
    [...offsets].sort((a, b) => a - b),
    Array.from({ length: clients.length * each }, (_, k) => k + 1),
  );
  for (const [k, mine] of sent.entries()) {
    const got = await Promise.all(mine);
    for (let at = 1; at < got.length; at += 1)
      assert(got[at]! > got[at - 1]!, `connection ${k}: out of order`);
  }
  assert.equal((await reader.readAll('t', 1)).length, 1 + clients.length * each);
  await world.close();
});

test('what is written needs no flush to make room in memory for the next', async () => {
  // 8 MB for both shards, so 4 for the one with the connections.
  const world = await start([
    'queued.max.request.bytes=8388608',
    'socket.request.max.bytes=4194304',
  ]);
  const clients = [await world.connect(), await world.connect()];
  await clients[0]!.produceOne('t', 1, [record('before')]);
  world.disk.isHeld = true;
  const value = 'x'.repeat(500_000);
  const sent = clients.flatMap((client) =>
    Array.from({ length: 40 }, () => client.produceOne('t', 1, [record(value)])),
  );
  // The batches leave memory when they are written, so all that 40 MB need is a flush.
  await eventually(() => statSync(world.logPath).size > sent.length * value.length);
  world.disk.let();
  assert.equal(new Set(await Promise.all(sent)).size, 80);
  await world.close();
});

test('connections that end in the middle of anything give back what they hold there', async () => {
  const world = await start();
  const value = 'y'.repeat(100_000);
  const steady = await world.connect();
  for (let k = 0; k < 30; k += 1) await steady.produceOne('t', 1, [record(value)]);
  for (let round = 0; round < 20; round += 1) {
    const client = await world.connect();
    // Far more than the socket takes: the rest is a pinned range of the other shard's file.
    const fetched = client.fetch([{ topic: 't', partition: 1, offset: 0, maxBytes: 5_000_000 }]);
    const polled = await world.connect();
    const waiting = polled.fetch([{ topic: 't', partition: 1, offset: 30 }], {
      maxWaitMs: 20_000,
    });
    if (round % 2 === 0) await sleep(round);
    client.close();
    polled.close();
    await Promise.allSettled([fetched, waiting]);
  }
  // All of it still works, and the topic's files can be closed: nothing of them is pinned.
  assert.equal((await steady.readAll('t', 1)).length, 30);
  await world.close();
  await eventually(() => openFiles('t-1') === 0);
});

function openFiles(part: string): number {
  let count = 0;
  for (const fd of readdirSync('/proc/self/fd'))
    try {
      if (readlinkSync(`/proc/self/fd/${fd}`).includes(`/${part}/`)) count += 1;
    } catch {
      // It was the one for the listing.
    }
  return count;
}

test('what it has to find for a fetch is not in the page cache: everybody else goes on', async () => {
  const world = await start();
  const { pageCache } = world;
  const [cold, other] = [await world.connect(), await world.connect()];
  const value = 'x'.repeat(20_000);
  for (let k = 0; k < 60; k += 1) await cold.produceOne('t', 1, [record(`${k} ${value}`)]);
  await other.produceOne('t', 0, [record('here')]);
  // The log knows the places of its last batches by heart, but not of the first.
  pageCache.dropFile(statSync(world.logPath).ino);
  const fetching = cold.fetchOne('t', 1, 3, { partitionMaxBytes: 100_000 });
  await eventually(() => pageCache.fills.length === 1);
  assert.equal(await other.produceOne('t', 1, [record('there')]), 60);
  assert.equal(await other.produceOne('t', 0, [record('here')]), 1);
  assert.equal((await other.readAll('t', 0)).length, 2);
  assert.equal((await other.listOffset('t', 1, -1)).offset, 61);
  assert.equal(pageCache.fills.length, 1, 'it is still awaited');
  pageCache.isFast = true;
  pageCache.endFills();
  const { records } = await fetching;
  assert(records !== null && records.length > 60_000);
  assert.equal((await cold.readAll('t', 1)).length, 61);
  await world.close();
});

test('what it is being asked for is not in the page cache when the connection goes', async () => {
  const world = await start();
  const { pageCache } = world;
  const [cold, other] = [await world.connect(), await world.connect()];
  for (let k = 0; k < 60; k += 1) await cold.produceOne('t', 1, [record('x'.repeat(20_000))]);
  pageCache.dropFile(statSync(world.logPath).ino);
  cold.fetchOne('t', 1, 3).catch(() => {});
  await eventually(() => pageCache.fills.length === 1);
  cold.close();
  assert.equal(await other.produceOne('t', 1, [record('there')]), 60);
  pageCache.isFast = true;
  pageCache.endFills();
  assert.equal((await other.readAll('t', 1)).length, 61);
  await world.close();
  const open = readdirSync('/proc/self/fd').map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`);
    } catch {
      return '';
    }
  });
  assert.deepEqual(
    open.filter((path) => path.startsWith(world.logPath)),
    [],
  );
});

test.run();
