/**
 * Groups of the client's consumers while leaders and coordinators go: each of three brokers is killed (kill -9) and comes
 * back, and the leaders move home. In both protocols every message is read at least once and in order, nobody begins behind
 * what was committed, and nothing is thrown at the readers.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import { Client, type Producer } from '../../net/client/client.ts';
import { ClientMember } from '../harness/client_member.ts';
import { Cluster } from '../harness/cluster.ts';
import { ClusterView } from '../harness/cluster_view.ts';
import { runScenario, scenarioOptions } from '../harness/scenario_options.ts';
import { WatchedGroup } from '../harness/watched_group.ts';

const options = scenarioOptions();
const kills = options.rounds ?? 3;
const topic = 'led';
const partitions = 6;
const backMs = 60_000;
const pauseMs = 4;
const settings = {
  'min.insync.replicas': 2,
  'broker.heartbeat.interval.ms': 300,
  'broker.session.timeout.ms': 2_000,
  'offsets.topic.replication.factor': 3,
  'offsets.topic.num.partitions': 3,
  'group.initial.rebalance.delay.ms': 100,
  'group.consumer.heartbeat.interval.ms': 500,
  'group.consumer.min.heartbeat.interval.ms': 500,
};
const kinds = [
  { protocol: 'classic', strategy: 'cooperative-sticky' },
  { protocol: 'consumer' },
] as const;

const test = suite('client, groups while leaders go');

/** Sends `partition-offset` to each partition in turn, and counts what has been acknowledged at that offset. */
class Numbering {
  /**
   * By partition. Not always in order: of two in flight the first may meet a leader that does not know yet that it is one,
   * and the second be taken, since the leader before had the first and passed it on.
   */
  readonly acknowledged: number[] = Array.from({ length: partitions }, () => 0);
  readonly #client: Client;
  readonly #run: Promise<void>;
  #isOver: boolean = false;
  #failure: unknown = null;

  constructor(bootstrap: string) {
    this.#client = new Client({ bootstrap });
    this.#run = this.#work();
  }

  async #work(): Promise<void> {
    await using producer = this.#client.producer();
    const sent: number[] = this.acknowledged.map(() => 0);
    for (let turn = 0; !this.#isOver && this.#failure === null; turn += 1) {
      const partition = turn % partitions;
      const number = sent[partition] ?? 0;
      sent[partition] = number + 1;
      this.#send(producer, partition, number).catch((error: unknown) => {
        this.#failure ??= error;
      });
      await sleep(pauseMs);
    }
  }

  async #send(producer: Producer, partition: number, number: number): Promise<void> {
    const { offset } = await producer.send({ topic, partition, value: `${partition}-${number}` });
    assert.equal(offset, number, `partition ${partition}: lost, doubled or out of order`);
    this.acknowledged[partition] = (this.acknowledged[partition] ?? 0) + 1;
  }

  /** Resolves when `count` more of each partition have been acknowledged, and offsets below which all is stored. */
  async progressed(count: number): Promise<number[]> {
    const goals = this.acknowledged.map((before) => before + count);
    const deadline = performance.now() + backMs;
    while (goals.some((goal, partition) => (this.acknowledged[partition] ?? 0) < goal)) {
      this.#assertHealthy();
      assert.ok(performance.now() < deadline, `${this.acknowledged}, and ${goals} were due`);
      await sleep(20);
    }
    return [...this.acknowledged];
  }

  /** Sends no more, and resolves when everything is acknowledged, with the ends. */
  async finish(): Promise<number[]> {
    this.#isOver = true;
    await this.#run;
    this.#assertHealthy();
    return [...this.acknowledged];
  }

  async close(): Promise<void> {
    this.#isOver = true;
    await this.#run.catch(() => undefined);
    await this.#client.close();
  }

  #assertHealthy(): void {
    if (this.#failure !== null) throw this.#failure;
  }
}

function startGroup(cluster: Cluster, kind: (typeof kinds)[number]): WatchedGroup {
  const { bootstrap } = cluster;
  const group = `of-${kind.protocol}`;
  const members = [0, 1].map(
    (at) =>
      new ClientMember(`${kind.protocol} ${at}`, {
        ...{ bootstrap, topic, group, ...kind },
        check: ({ partition, offset, value }) =>
          assert.equal(String(value), `${partition}-${offset}`),
      }),
  );
  return new WatchedGroup(cluster, members, { group, topic, partitions, backMs });
}

/** The broker dies while it leads, the groups go on without it, it comes back, and leads again. */
async function round(
  cluster: Cluster,
  view: ClusterView,
  numbering: Numbering,
  groups: readonly WatchedGroup[],
  victim: number,
): Promise<void> {
  await view.whole(backMs);
  await view.electPreferred();
  await numbering.progressed(20);
  await cluster.kill(victim);
  const ends = await numbering.progressed(20);
  for (const group of groups) await group.processedUntil(ends);
  await cluster.restart(victim);
}

test(`${kills} kills: everything is read, in order, and no position goes back`, async () => {
  await runScenario(options, async ({ dataDir, random }) => {
    const cluster = await Cluster.start({ settings, dataDir });
    const raw = await cluster.client(1);
    await raw.createTopic(topic, partitions, {}, 3);
    raw.close();
    const view = new ClusterView(cluster, [topic]);
    const numbering = new Numbering(cluster.bootstrap);
    const groups = kinds.map((kind) => startGroup(cluster, kind));
    try {
      const first = random(3);
      for (let kill = 0; kill < kills; kill += 1)
        await round(cluster, view, numbering, groups, ((first + kill) % 3) + 1);
      const ends = await numbering.finish();
      for (const group of groups) {
        await group.finish(ends);
        assert.ok(group.looks > kills, `${group.looks} looks at the positions`);
      }
    } catch (error) {
      for (const { output } of cluster.brokers) console.error(output.slice(-3_000));
      throw error;
    } finally {
      for (const group of groups) await group.close();
      await numbering.close();
      view.close();
      await cluster.dispose();
    }
  });
});

test.run();
