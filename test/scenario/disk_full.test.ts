/**
 * A real full disk (fault 7): a broker on a small tmpfs under load. While it is full producers get an error that they
 * may retry, consumers go on, and nothing acknowledged is lost; once there is space everything goes on without a
 * restart. The same with kill -9 while the disk is full.
 *
 *   node test/scenario/disk_full.test.ts [--seed N]      (as root: it mounts the tmpfs)
 */
import assert from 'node:assert/strict';
import { mkdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { errorName, isRetriable } from '../../net/protocol/errors.ts';
import { BrokerProcess } from '../harness/broker_process.ts';
import { Client, record } from '../harness/client.ts';
import { assertNoViolations, History, idOf, type Observed } from '../harness/history.ts';
import { Load, laneName, type Target } from '../harness/load.ts';
import { mountSmall, unmount, withOwnMounts } from '../harness/own_mounts.ts';
import { runScenario, type ScenarioRun, scenarioOptions } from '../harness/scenario_options.ts';
import { TailReader } from '../harness/tail_reader.ts';

const mebibyte = 1 << 20;
const diskBytes = 48 * mebibyte;
/** What the ballast leaves free at first: the load fills it within moments. */
const roomBytes = 2 * mebibyte;
const settings = {
  'log.segment.bytes': mebibyte,
  'log.index.interval.bytes': 512,
  'log.flush.offset.checkpoint.interval.ms': 300,
};
const targets: readonly Target[] = [
  { topic: 'orders', partition: 0 },
  { topic: 'orders', partition: 1 },
  { topic: 'clicks', partition: 0 },
];
const patienceMs = 60_000;

const options = scenarioOptions();
const test = suite('disk full');

/** A broker on a small disk, its load, and what must be true of it. */
class World {
  readonly broker: BrokerProcess;
  readonly history: History = new History();
  readonly loads: readonly Load[];
  readonly reader: TailReader;
  readonly #ballast: string;
  /** Grows with each comparison, so that one knows what was acknowledged before it began. */
  #era = 0;

  private constructor(broker: BrokerProcess, disk: string, { random }: ScenarioRun) {
    this.broker = broker;
    this.#ballast = join(disk, 'ballast');
    const { history } = this;
    this.loads = ['p0', 'p1'].map(
      (name) =>
        new Load({
          name,
          endpoint: () => broker,
          targets,
          history,
          random,
          pauseMsMax: 5,
          oneLargeIn: 40,
          now: () => this.#era,
        }),
    );
    this.reader = new TailReader(
      () => broker,
      targets,
      history,
      () => this.#era,
    );
  }

  static async start(run: ScenarioRun, disk: string): Promise<World> {
    mountSmall(disk, diskBytes);
    const dataDir = join(disk, 'data');
    mkdirSync(dataDir);
    const broker = await BrokerProcess.start({ dataDir, settings });
    const client = await Client.connect(broker);
    await client.createTopic('orders', 2);
    await client.createTopic('clicks', 1);
    await client.createTopic('extra', 1);
    client.close();
    return new World(broker, disk, run);
  }

  /** Takes away all space but a little, and waits until the load has used that up. */
  async fill(): Promise<void> {
    const { bavail, bsize } = statfsSync(join(this.#ballast, '..'));
    writeFileSync(this.#ballast, new Uint8Array(Math.max(0, bavail * bsize - roomBytes)));
    const refused = (): number => this.loads.reduce((sum, load) => sum + load.refusals.size, 0);
    for (const load of this.loads) load.refusals.clear();
    await this.until('a producer is told that the disk is full', () => refused() > 0);
  }

  free(): void {
    rmSync(this.#ballast);
  }

  async until(what: string, isSo: () => boolean): Promise<void> {
    const deadline = performance.now() + patienceMs;
    while (!isSo()) {
      this.assertHealthy();
      assert(performance.now() < deadline, `${what}: not within ${patienceMs / 1000} s`);
      await sleep(20);
    }
  }

  assertHealthy(): void {
    for (const load of this.loads) load.assertHealthy();
    this.reader.assertHealthy();
    assert(this.broker.isRunning, `the broker ended:\n${this.broker.output}`);
  }

  /** Everything unacknowledged gets through, and the logs are what they must be. */
  async settle(): Promise<void> {
    await Promise.all(this.loads.map((load) => load.drain()));
    await this.compare();
    assert.equal(this.history.count('unknown'), 0);
  }

  /** All that was acknowledged until now is there; the load may go on meanwhile. */
  async compare(): Promise<void> {
    const era = this.#era;
    this.#era += 1;
    const client = await Client.connect(this.broker);
    for (const { topic, partition } of targets) {
      const observed: Observed[] = [];
      await client.readEach(topic, partition, ({ offset, value }) =>
        observed.push({ offset, id: idOf(value) }),
      );
      assertNoViolations(this.history.check(laneName({ topic, partition }), observed, era));
    }
    client.close();
  }

  async end(): Promise<void> {
    await Promise.all(this.loads.map((load) => load.stop()));
    await this.broker.dispose();
    await this.reader.stop();
  }
}

async function inWorld(body: (world: World) => Promise<void>): Promise<void> {
  await runScenario(options, async (run) => {
    const disk = join(run.dataDir, 'disk');
    const world = await World.start(run, disk);
    try {
      await body(world);
    } catch (error) {
      console.error(world.broker.output);
      throw error;
    } finally {
      await world.end();
    }
    unmount(disk);
  });
}

test('producers are told to try again, consumers go on, and space is all that it takes', async () => {
  await inWorld(async (world) => {
    await sleep(500);
    await world.fill();
    const client = await Client.connect(world.broker);
    for (const acks of [-1, 1] as const) await assertRefused(client, acks);
    // Everything that was acknowledged can be read while the disk is full.
    await world.compare();
    await sleep(1_000);
    world.assertHealthy();
    assert.equal((await client.metadata()).topics.length, 3);
    world.free();
    await world.settle();
    await client.produceOne('extra', 0, [record('afterwards')]);
    await client.createTopic('made-afterwards', 1);
    for (const load of world.loads) load.resume();
    client.close();
    await world.fill();
    world.free();
    await world.settle();
    const exit = await world.broker.stop();
    assert.deepEqual(exit, { code: 0, signal: null });
    await world.broker.restart();
    await world.settle();
  });
});

test('a topic that cannot be created for lack of space is an error, and is created later', async () => {
  await inWorld(async (world) => {
    await world.fill();
    const client = await Client.connect(world.broker);
    let created = 0;
    try {
      for (; created < 50; created += 1) await client.createTopic(`squeezed-${created}`, 5);
    } catch (error) {
      assert.match(String(error), /squeezed/);
    }
    world.assertHealthy();
    world.free();
    await world.settle();
    await client.createTopic('made-afterwards', 5);
    const { topics } = await client.metadata();
    const names = new Set(topics.map(({ name }) => name));
    for (let index = 0; index < created; index += 1)
      assert(names.has(`squeezed-${index}`), `squeezed-${index} was acknowledged and is gone`);
    client.close();
  });
});

test('kill -9 while the disk is full loses nothing, and the next start says what is wrong or works', async () => {
  await inWorld(async (world) => {
    await sleep(300);
    await world.fill();
    await world.broker.kill();
    const started = await world.broker.restart().then(
      () => true,
      (error: unknown) => {
        assert.match(String(error), /no space|disk.*full/i);
        return false;
      },
    );
    console.log(`a start on the full disk ${started ? 'works' : 'is refused'}`);
    if (started) {
      await world.compare();
      await world.broker.kill();
    }
    world.free();
    await world.broker.restart();
    await world.settle();
  });
});

/** A producer without idempotence gets a retriable error, and its connection stays. */
async function assertRefused(client: Client, acks: -1 | 1): Promise<void> {
  const batch = [{ value: new Uint8Array(200_000), timestamp: BigInt(Date.now()) }];
  for (let attempt = 0; attempt < 30; attempt += 1) {
    const [answer] = await client.produce([{ topic: 'extra', partition: 0, batch }], { acks });
    const errorCode = answer?.errorCode ?? ErrorCode.NONE;
    if (errorCode === ErrorCode.NONE) continue;
    assert(isRetriable(errorCode), `acks=${acks}: ${errorName(errorCode)} is not retriable`);
    return;
  }
  assert.fail(`acks=${acks}: 6 MB went onto a full disk`);
}

withOwnMounts(() => test.run());
