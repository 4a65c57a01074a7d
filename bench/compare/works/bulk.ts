/** raw W1, raw W5: what W5 and W1 do, but from the raw client, which leaves the broker to be the bottleneck. */
import { type BulkLoad, produceBulk } from '../bulk_client.ts';
import type { Figures } from '../measure.ts';
import { deleteTopic, makeTopic, withClient } from '../requests.ts';
import { measureProduce, TOPIC_CONFIGS } from './throughput.ts';
import type { RoundContext, SharedWork } from './work.ts';

const LOAD: BulkLoad = {
  messages: 524_288,
  messageBytes: 1_024,
  // As many as librdkafka puts into a batch of 1 MB.
  messagesPerBatch: 960,
  connections: 4,
  inFlight: 4,
  partitions: 1,
  acks: 1,
};

export const bulkWorks: readonly SharedWork[] = [
  work('raw W1', 'os', LOAD),
  work('raw W5', 'fsync', { ...LOAD, acks: -1 }),
];

function work(row: string, durability: 'os' | 'fsync', load: BulkLoad): SharedWork {
  return {
    kind: 'shared',
    rows: [row],
    durability,
    needs: 'produce',
    run: (context) => runBulk(row, load, context),
  };
}

async function runBulk(row: string, load: BulkLoad, context: RoundContext): Promise<Figures[]> {
  const { broker } = context;
  const topic = `${row.replace(' ', '-')}-${context.roundKey}`;
  const flushed = load.acks === -1 ? broker.spec.flushedTopicConfigs : {};
  const { partitions } = load;
  await makeTopic(broker.port, topic, { partitions, configs: { ...TOPIC_CONFIGS, ...flushed } });
  const figures = await measureProduce(row, context, topic, { ...load }, () =>
    produceBulk(broker.port, topic, load),
  );
  await withClient(broker.port, (client) => deleteTopic(client, topic));
  return [figures];
}
