/** W4: latency of small requests on one connection, with and without a flush before the answer. */
import { settle } from '../broker.ts';
import { type LatencyResult, oneInFlight, openLoop, type Target } from '../latency_client.ts';
import { sync } from '../machine.ts';
import { bottleneckOf, type Figures, measure, shares } from '../measure.ts';
import { deleteTopic, makeTopic, withClient } from '../requests.ts';
import type { RoundContext, SharedWork } from './work.ts';

const REQUESTS = 10_000;
const LIMIT_MS = 10_000;
const RATE_PER_SECOND = 10_000;
const RATE_SECONDS = 6;
const GRACE_MS = 10_000;

type Client = (target: Target) => Promise<LatencyResult>;

const closed: Client = (target) => oneInFlight(target, REQUESTS, LIMIT_MS);
const open: Client = (target) => openLoop(target, RATE_PER_SECOND, RATE_SECONDS, GRACE_MS);

export const latencyWorks: readonly SharedWork[] = [
  work('W4 one in flight', 'os', closed),
  work('W4 10,000/s', 'os', open),
  work('W4 one in flight, flushed', 'fsync', closed),
  work('W4 10,000/s, flushed', 'fsync', open),
];

function work(row: string, durability: 'os' | 'fsync', client: Client): SharedWork {
  return {
    kind: 'shared',
    rows: [row],
    durability,
    needs: 'produce',
    run: (context) => runLatency(row, durability, 1, context, client),
  };
}

/** Runs the client on a fresh topic and says how long its requests took, and what they cost. */
export async function runLatency(
  row: string,
  durability: 'os' | 'fsync',
  partitions: number,
  context: RoundContext,
  client: Client,
): Promise<Figures[]> {
  const { broker } = context;
  const topic = `${row.split(' ')[0]}-${context.roundKey}`;
  const configs = durability === 'fsync' ? broker.spec.flushedTopicConfigs : {};
  await makeTopic(broker.port, topic, { partitions, configs });
  await settle(context.running);
  await sync();
  const results: LatencyResult[] = [];
  const cost = await measure(broker, async () => {
    const acks = durability === 'fsync' ? -1 : 1;
    const result = await client({ port: broker.port, topic, partitions, acks });
    results.push(result);
    return result.wallMs;
  });
  const [result] = results;
  if (result === undefined) throw new Error('no result');
  await withClient(broker.port, (connection) => deleteTopic(connection, topic));
  const { histogram } = result;
  const values = {
    p50Ms: histogram.percentile(50),
    p99Ms: histogram.percentile(99),
    p999Ms: histogram.percentile(99.9),
    maxMs: histogram.maxMs,
    answeredPerSecond: result.answered / (result.wallMs / 1_000),
    unanswered: result.unanswered,
    serverCpuMsPer1000: (cost.serverCpuMs / Math.max(1, result.answered)) * 1_000,
    ...shares(cost),
  };
  // The open-loop client spins on its CPU, so its share says nothing about who held up whom.
  const bottleneck = client === open ? null : bottleneckOf(cost);
  return [{ work: row, values, bottleneck }];
}
