/** Gaps when a broker is killed, stops or falls silent, by whether it is the controller and whether it leads the partition. */
import { setTimeout as sleep } from 'node:timers/promises';
import { startPython } from '../../test/compat/peers/program_peer.ts';
import { StreamProducer } from '../../test/compat/stream_producer.ts';
import type { Cluster } from '../../test/harness/cluster.ts';
import { GapProbe } from '../../test/harness/gap_probe.ts';
import type { Bench } from '../cluster.ts';

const backMs = 120_000;
/** Short ones: what a client adds by waiting is not what is measured. */
const shortBackOffs = {
  'retry.backoff.ms': 10,
  'retry.backoff.max.ms': 50,
  'reconnect.backoff.ms': 10,
  'reconnect.backoff.max.ms': 50,
  'topic.metadata.refresh.fast.interval.ms': 20,
  'linger.ms': 0,
};

/** What happens to a broker, and what has it serve again. */
interface End {
  readonly begin: (cluster: Cluster, id: number) => unknown;
  readonly undo: (cluster: Cluster, id: number) => unknown;
}

export const ends: Readonly<Record<string, End>> = {
  'kill -9': {
    begin: (cluster, id) => cluster.kill(id),
    undo: (cluster, id) => cluster.restart(id),
  },
  SIGTERM: {
    begin: (cluster, id) => cluster.stop(id),
    undo: (cluster, id) => cluster.restart(id),
  },
  SIGSTOP: {
    begin: (cluster, id) => cluster.pause(id),
    undo: (cluster, id) => cluster.resume(id),
  },
};

export const roles: readonly string[] = ['a broker', 'the controller'];

/** For each role in turn; tells of the gaps that `gapsOf` finds by partition. */
async function trials(
  { cluster, view, topic, partitions, trials: count, endsAtMs, end, roles: chosen }: Bench,
  served: () => Promise<void>,
  gapsOf: (atMs: number) => number[],
): Promise<Map<string, number[]>> {
  const found = new Map<string, number[]>();
  for (let trial = 0; trial < count; trial += 1)
    for (const role of chosen) {
      if (performance.now() >= endsAtMs) return found;
      await view.whole(backMs);
      await view.electPreferred();
      await view.refresh();
      const controller = await cluster.controller();
      const other = cluster.ids.find((id) => id !== controller) ?? 1;
      const victim = role === 'the controller' ? controller : other;
      await served();
      const leads = Array.from(
        { length: partitions },
        (_, partition) => view.partition({ topic, partition })?.leaderId === victim,
      );
      await sleep(200);
      const at = performance.now();
      await ends[end]?.begin(cluster, victim);
      await served();
      for (const [partition, gap] of gapsOf(at).entries()) {
        const what = `${role}, ${leads[partition] ? 'its own' : "others'"} partitions`;
        found.set(what, [...(found.get(what) ?? []), gap]);
      }
      await ends[end]?.undo(cluster, victim);
    }
  return found;
}

function print(end: string, client: string, found: ReadonlyMap<string, number[]>): void {
  for (const [what, gaps] of found) {
    const sorted = gaps.toSorted((a, b) => a - b).map(Math.round);
    console.log(
      `${end} of ${what}, ${client}: median ${sorted[sorted.length >> 1]} ms, max ${sorted.at(-1)} ms (${sorted.join(' ')})`,
    );
  }
}

/** A raw client that retries at once. */
export async function failoverOfRawClient(bench: Bench): Promise<void> {
  const { cluster, topic, partitions } = bench;
  const probes = Array.from(
    { length: partitions },
    (_, partition) => new GapProbe(cluster, { topic, partition }),
  );
  const served = async (): Promise<void> => {
    await Promise.all(probes.map((probe) => probe.acknowledged(10, backMs)));
  };
  try {
    print(
      bench.end,
      'raw client',
      await trials(bench, served, (at) => probes.map((probe) => probe.gapSince(at))),
    );
  } finally {
    await Promise.all(probes.map((probe) => probe.stop()));
  }
}

/** librdkafka with an idempotent producer and short back-offs, a record for each partition every 12 ms. */
export async function failoverOfRdkafka(bench: Bench): Promise<void> {
  const { cluster, topic, partitions } = bench;
  const { bootstrap } = cluster;
  const options = { bootstrap, topic, partitions, pauseMs: 2, settings: shortBackOffs };
  const producer = new StreamProducer(await startPython(), options);
  const served = (): Promise<void> => producer.progressed(20, backMs);
  try {
    const gapsOf = (at: number): number[] => producer.gapsSince(performance.timeOrigin + at);
    print(bench.end, 'librdkafka with short back-offs', await trials(bench, served, gapsOf));
    await producer.finish();
  } finally {
    await producer.close();
  }
}
