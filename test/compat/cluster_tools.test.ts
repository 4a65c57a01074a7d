/**
 * Kafka's tools for clusters, the same commands against three brokers of Millrace and of Kafka (KRaft, combined roles):
 * moving partitions, elections, the quorum, what is under-replicated, and brokers that go. What they print is the same but
 * for the lines that `cluster_tools_steps.ts` has a reason for.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { differences, steps } from './cluster_tools_steps.ts';
import { comparisonSuite, type Tools, type Verb } from './tool_comparison.ts';

const pathOf = (tools: Tools, name: string): string => join(tools.dir, `${name}.json`);

/** A file for the tools, which steps name `@name`. */
const file: Verb = async (tools, _, [name = '', content = '']) => {
  writeFileSync(pathOf(tools, name), content);
  return [];
};

const kill: Verb = async (_, { cluster }, [id]) => {
  await cluster?.kill(Number(id));
  return [];
};

const start: Verb = async (_, { cluster }, [id]) => {
  await cluster?.restart(Number(id));
  return [];
};

/** With SIGTERM: whatever it leads goes to others. */
const stop: Verb = async (_, { cluster }, [id]) => {
  await cluster?.stop(Number(id));
  return [];
};

const withFiles =
  (tool: string): Verb =>
  (tools, broker, args) =>
    tools.run(
      broker,
      tool,
      args.map((one) => (one.startsWith('@') ? pathOf(tools, one.slice(1)) : one)),
    );

/** Which brokers are in a set of replicas: Kafka's leaders tell it in no particular order. */
const sorted = (list: string): string => list.split(',').sort().join(',');

/**
 * Of the quorum only what is there: how far it is, and who leads it, is another matter with each run; and so is where the
 * tool begins to deal out brokers when it makes a plan (the plan is the one that has no log directories yet).
 */
function normalised(line: string): string {
  return line
    .replaceAll(/[\w./-]+\/(\w+)\.json/g, '@$1')
    .replaceAll(/(?<![\w-])(?=[\w-]*[A-Z\d])[\w-]{22}(?![\w-])/g, '<id>')
    .replace(
      /^((?:LeaderId|LeaderEpoch|HighWatermark|MaxFollowerLag|MaxFollowerLagTimeMs):).*/,
      '$1 <number>',
    )
    .replace(/^\{"version":1,"partitions":\[.*"any".*/, (plan) =>
      plan.replaceAll(
        /"replicas":\[[\d,]*\]/g,
        (replicas) => `${replicas.split(',').length} replicas`,
      ),
    )
    .replace(/(Isr: )([\d,]+)/, (_, isr: string, ids: string) => `${isr}${sorted(ids)}`)
    .replace(/^\d\s+<id>.*(Leader|Follower|Observer)\s*$/, '<node> $1')
    .replaceAll(/\s+/g, ' ')
    .trim();
}

comparisonSuite('cluster tools', {
  brokers: 3,
  settings: {
    'offsets.topic.replication.factor': 3,
    'broker.heartbeat.interval.ms': 500,
    'broker.session.timeout.ms': 3_000,
  },
  steps,
  differences,
  verbs: {
    file,
    kill,
    stop,
    start,
    'kafka-reassign-partitions': withFiles('kafka-reassign-partitions'),
    'kafka-leader-election': withFiles('kafka-leader-election'),
  },
  normalised,
  isUnordered: true,
  settling: /--describe|describe --|--verify|--list$|list-endpoints/,
}).run();
