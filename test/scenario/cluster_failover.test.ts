/**
 * How long partitions take no records when a broker dies, stops, or falls silent, as a raw client sees it that retries
 * at once: the last acknowledgement before to the first one after. Prints the gaps, by what the broker was: the leader of
 * the partition or not, the active controller or not. Asserted is only that service comes back.
 *
 *   node test/scenario/cluster_failover.test.ts [--rounds 20] [--only KIND]
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import { Cluster } from '../harness/cluster.ts';
import { ClusterView } from '../harness/cluster_view.ts';
import { GapProbe } from '../harness/gap_probe.ts';
import { runScenario, type ScenarioRun, scenarioOptions } from '../harness/scenario_options.ts';

const options = scenarioOptions();
const rounds = options.rounds ?? 2;
const topic = 'probed';
const partitions = 6;
/** Generous: the machine may be busy with something else. */
const backMs = 60_000;
const settings = {
  'min.insync.replicas': 2,
  'broker.heartbeat.interval.ms': 500,
  'broker.session.timeout.ms': 3_000,
};

const kinds: Readonly<Record<string, (cluster: Cluster, id: number) => Promise<void>>> = {
  'kill -9': (cluster, id) => cluster.kill(id),
  SIGTERM: async (cluster, id) => {
    assert.deepEqual(await cluster.stop(id), { code: 0, signal: null });
    // Also when it led the quorum since before the others restarted, and so has called none of them.
    assert.doesNotMatch(cluster.broker(id).output, /leadership stays where it is/);
  },
  SIGSTOP: async (cluster, id) => cluster.pause(id),
};
const chosen = Object.keys(kinds).filter((kind) => kind === (options.only ?? kind));
assert(chosen.length > 0, `--only takes one of ${Object.keys(kinds).join(', ')}`);

class Gaps {
  readonly #gaps = new Map<string, number[]>();

  add(what: string, gap: number): void {
    this.#gaps.set(what, [...(this.#gaps.get(what) ?? []), gap]);
  }

  print(): void {
    for (const [what, gaps] of this.#gaps) {
      const sorted = gaps.toSorted((a, b) => a - b).map(Math.round);
      console.log(
        `${what}: median ${sorted[sorted.length >> 1]} ms, max ${sorted.at(-1)} ms (${sorted.join(' ')})`,
      );
    }
  }

  count(what: string): number {
    return this.#gaps.get(what)?.length ?? 0;
  }
}

const test = suite('failover');

test(`partitions are served again after ${rounds} rounds each of ${chosen.join(', ')}`, async () => {
  await runScenario(options, async (run) => {
    const cluster = await Cluster.start({ settings, dataDir: run.dataDir });
    try {
      await allRounds(cluster, run);
    } catch (error) {
      for (const { output } of cluster.brokers) console.error(output.slice(-6_000));
      throw error;
    } finally {
      await cluster.dispose();
    }
  });
});

async function allRounds(cluster: Cluster, { random }: ScenarioRun): Promise<void> {
  const admin = await cluster.client(1);
  await admin.createTopic(topic, partitions, {}, 3);
  admin.close();
  const view = new ClusterView(cluster, [topic]);
  const probes = Array.from(
    { length: partitions },
    (_, partition) => new GapProbe(cluster, { topic, partition }),
  );
  const gaps = new Gaps();
  try {
    for (const kind of chosen)
      for (let round = 0; round < rounds; round += 1)
        for (const role of ['controller', 'other'] as const) {
          await view.whole(backMs);
          await view.electPreferred();
          const controller = await cluster.controller();
          const others = cluster.ids.filter((id) => id !== controller);
          const victim = role === 'controller' ? controller : others[random(2)]!;
          await oneTrial(cluster, kind, victim, role, probes, gaps);
        }
  } finally {
    await Promise.all(probes.map((probe) => probe.stop()));
    view.close();
    gaps.print();
  }
  for (const kind of chosen)
    for (const role of ['controller', 'other'])
      assert(gaps.count(`${kind}, ${role}, its own partitions`) >= rounds);
}

async function oneTrial(
  cluster: Cluster,
  kind: string,
  victim: number,
  role: string,
  probes: readonly GapProbe[],
  gaps: Gaps,
): Promise<void> {
  const served = (): Promise<unknown> =>
    Promise.all(probes.map((probe) => probe.acknowledged(10, backMs)));
  await served();
  const led = new Set(probes.filter(({ leaderId }) => leaderId === victim));
  await sleep(100);
  const at = performance.now();
  await kinds[kind]!(cluster, victim);
  await served();
  for (const probe of probes) {
    const whose = led.has(probe) ? 'its own partitions' : "others' partitions";
    gaps.add(`${kind}, ${role}, ${whose}`, probe.gapSince(at));
  }
  if (kind === 'SIGSTOP') cluster.resume(victim);
  else await cluster.restart(victim);
}

test.run();
