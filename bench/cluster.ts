/**
 * Three brokers on this machine, of Millrace or of Kafka: how long partitions take no records when one is killed, what
 * acks=all costs and how long it takes, and how fast a broker that was down catches up.
 *
 *   node bench/cluster.ts --broker kafka --works failover,rdkafka,load,latency,catch-up [--trials 5] [--durability os]
 *     [--end SIGSTOP] [--roles "the controller"] [--session 3000] [--seconds 300] [--missed-mib 5120]
 *   node bench/cluster.ts --works partitions     (or one-topic: 10,000 partitions in 100 topics, or in one; about five minutes)
 *
 * `--end`, `--roles`: what happens to which broker in the first two works, kill -9 of both roles in turn without them.
 * `--seconds`: no trial begins later than so long after the start.
 * `--session`: broker.session.timeout.ms, with a heartbeat six times in it; without it the brokers' own, which is 9 s.
 * `--durability fsync` is Millrace as it is shipped, and Kafka with flush.messages=1 on the topic; `os` is Kafka as it is
 * shipped, and Millrace with log.durability=os. Kafka's JVMs have the options of its own start scripts.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { kafkaLauncher } from '../test/compat/kafka_broker.ts';
import { Cluster } from '../test/harness/cluster.ts';
import { ClusterView } from '../test/harness/cluster_view.ts';
import { catchUp } from './cluster/catch_up.ts';
import { ends, failoverOfRawClient, failoverOfRdkafka, roles } from './cluster/failover.ts';
import { manyPartitions } from './cluster/partitions.ts';
import { latency, load } from './cluster/replicated_load.ts';

export interface Bench {
  readonly cluster: Cluster;
  readonly view: ClusterView;
  readonly topic: string;
  readonly partitions: number;
  readonly trials: number;
  /** By `performance.now()`: no trial of a failover begins later. */
  readonly endsAtMs: number;
  /** One of `ends`. */
  readonly end: string;
  /** Of `roles`, those that are tried. */
  readonly roles: readonly string[];
  /** What is written while a broker is down. */
  readonly missedMiB: number;
  /** Where the payload goes. */
  readonly dir: string;
}

const works: Readonly<Record<string, (bench: Bench) => Promise<void>>> = {
  failover: failoverOfRawClient,
  rdkafka: failoverOfRdkafka,
  load,
  latency,
  'catch-up': catchUp,
  partitions: ({ cluster }) => manyPartitions(cluster, { topics: 100, partitionsPerTopic: 100 }),
  'one-topic': ({ cluster }) => manyPartitions(cluster, { topics: 1, partitionsPerTopic: 10_000 }),
};
/** Each of the others wants a cluster that was not used before. */
const usual = 'failover,rdkafka,load,latency,catch-up';
const jvm = [
  ...['-Xmx1G', '-Xms1G', '-server', '-XX:+UseG1GC', '-XX:MaxGCPauseMillis=20'],
  ...['-XX:InitiatingHeapOccupancyPercent=35', '-XX:+ExplicitGCInvokesConcurrent'],
];
const topic = 'measured';
const partitions = 6;
const { values } = parseArgs({
  options: {
    broker: { type: 'string', default: 'millrace' },
    works: { type: 'string', default: usual },
    trials: { type: 'string', default: '5' },
    'missed-mib': { type: 'string', default: '5120' },
    durability: { type: 'string', default: 'fsync' },
    end: { type: 'string', default: 'kill -9' },
    roles: { type: 'string', default: roles.join(',') },
    session: { type: 'string' },
    seconds: { type: 'string', default: 'Infinity' },
  },
});
const isKafka = values.broker === 'kafka';
const isFlushed = values.durability === 'fsync';
const settings = {
  'min.insync.replicas': 2,
  'offsets.topic.replication.factor': 3,
  ...(isKafka ? {} : { 'log.durability': values.durability }),
  ...(values.session === undefined ? {} : sessionOf(Number(values.session))),
};
const chosen = values.works.split(',');
for (const work of chosen)
  if (works[work] === undefined)
    throw new Error(`--works ${work}: there are ${Object.keys(works).join(', ')}`);
if (ends[values.end] === undefined)
  throw new Error(`--end ${values.end}: there are ${Object.keys(ends).join(', ')}`);
const chosenRoles = values.roles.split(',');
for (const role of chosenRoles)
  if (!roles.includes(role)) throw new Error(`--roles ${role}: there are ${roles.join(', ')}`);

const dataDir = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
const launcher = isKafka ? { launcher: () => kafkaLauncher(jvm) } : {};
const cluster = await Cluster.start({ settings, dataDir, ...launcher });
const view = new ClusterView(cluster, [topic]);
try {
  const admin = await cluster.client(1);
  const configs = isKafka && isFlushed ? { 'flush.messages': 1 } : {};
  await admin.createTopic(topic, partitions, configs, 3);
  admin.close();
  console.log(`${values.broker}, durability ${values.durability}`);
  const bench: Bench = {
    ...{ cluster, view, topic, partitions, trials: Number(values.trials), dir: dataDir },
    ...{ endsAtMs: Number(values.seconds) * 1_000, end: values.end, roles: chosenRoles },
    missedMiB: Number(values['missed-mib']),
  };
  for (const work of chosen) {
    await view.whole(120_000);
    await works[work]?.(bench);
  }
} finally {
  view.close();
  await cluster.dispose();
  rmSync(dataDir, { recursive: true });
}

function sessionOf(timeoutMs: number): Record<string, number> {
  return {
    'broker.session.timeout.ms': timeoutMs,
    'broker.heartbeat.interval.ms': timeoutMs / 6,
  };
}
