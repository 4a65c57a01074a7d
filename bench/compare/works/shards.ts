/**
 * S: the same load on brokers with different numbers of shards (`--brokers millrace@1,millrace@2,millrace@4`): W1's
 * messages to six partitions from four kcats at once, so that connections and partitions are spread over the shards,
 * and requests one at a time to the six partitions in turn.
 */
import { produce } from '../kcat.ts';
import { oneInFlight } from '../latency_client.ts';
import type { Figures } from '../measure.ts';
import { preparePayload } from '../payload.ts';
import { deleteTopic, makeTopic, withClient } from '../requests.ts';
import { runLatency } from './latency.ts';
import { measureProduce, TOPIC_CONFIGS } from './throughput.ts';
import type { RoundContext, SharedWork } from './work.ts';

const PARTITIONS = 6;
const CLIENTS = 4;
const MESSAGES = 524_288;
const MESSAGE_BYTES = 1_024;
const REQUESTS = 12_000;
const LIMIT_MS = 10_000;

export const shardWorks: readonly SharedWork[] = [
  spreadWork('S 1 MB', 1_000_000),
  spreadWork('S 8 KB', 8_192),
  {
    kind: 'shared',
    rows: ['S one in flight'],
    durability: 'os',
    needs: 'produce',
    run: (context) =>
      runLatency('S one in flight', 'os', PARTITIONS, context, (target) =>
        oneInFlight(target, REQUESTS, LIMIT_MS),
      ),
  },
];

function spreadWork(row: string, batchBytes: number): SharedWork {
  return {
    kind: 'shared',
    rows: [row],
    durability: 'os',
    needs: 'produce',
    run: (context) => runSpread(row, batchBytes, context),
  };
}

async function runSpread(
  row: string,
  batchBytes: number,
  context: RoundContext,
): Promise<Figures[]> {
  const { broker } = context;
  const topic = `${row.replaceAll(' ', '-')}-${context.roundKey}`;
  await makeTopic(broker.port, topic, { partitions: PARTITIONS, configs: TOPIC_CONFIGS });
  const amount = { messages: MESSAGES, messageBytes: MESSAGE_BYTES, partitions: PARTITIONS };
  const figures = await measureProduce(row, context, topic, amount, () =>
    produceSpread(broker.port, topic, batchBytes, context.scratch),
  );
  await withClient(broker.port, (client) => deleteTopic(client, topic));
  return [figures];
}

/** All messages of the work, to six partitions, from four processes at once. */
export async function produceSpread(
  port: number,
  topic: string,
  batchBytes: number,
  scratch: string,
): Promise<undefined> {
  const payload = preparePayload(scratch, MESSAGES / CLIENTS, MESSAGE_BYTES);
  const options = { acks: 1, batchBytes, partitions: PARTITIONS } as const;
  const running = Array.from({ length: CLIENTS }, () => produce(port, topic, payload, options));
  await Promise.all(running);
  return undefined;
}
