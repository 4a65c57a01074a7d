/**
 * W1, W2a, W2b, W5: kcat produces a prepared file; W3: kcat drains what W1 and W2b wrote, warm. A fresh
 * topic each round, deleted behind it.
 */
import { settle } from '../broker.ts';
import { drain, drainCommand, type ProduceOptions, produce, produceCommand } from '../kcat.ts';
import { sync, warmPageCache } from '../machine.ts';
import { bottleneckOf, type Figures, measure, throughputValues } from '../measure.ts';
import { type Payload, preparePayload } from '../payload.ts';
import { deleteTopic, endOffsets, makeTopic, withClient } from '../requests.ts';
import type { RoundContext, SharedWork } from './work.ts';

/** 512 MiB: what a round writes must fit what the host lets lie free, see `warmPageCache`. */
const MESSAGES_1K = 524_288;
const MESSAGES_100 = 2_621_440;
/** The memory that a round touches beyond its payload. */
const WARM_FACTOR = 1.3;
export const TOPIC_CONFIGS = { 'file.delete.delay.ms': '1000' };

interface Load extends ProduceOptions {
  row: string;
  messages: number;
  messageBytes: number;
  durability: 'os' | 'fsync';
  /** The row for reading it back, or null when nobody asks for that. */
  drainRow: string | null;
}

const W1: Load = {
  row: 'W1',
  messages: MESSAGES_1K,
  messageBytes: 1_024,
  partitions: 1,
  acks: 1,
  batchBytes: 1_000_000,
  durability: 'os',
  drainRow: 'W3 of W1',
};
const MANY_SMALL: Load = {
  ...W1,
  row: 'W2a',
  messages: MESSAGES_100,
  messageBytes: 100,
  partitions: 6,
  batchBytes: 8_192,
  drainRow: null,
};
const MANY_LARGE: Load = {
  ...MANY_SMALL,
  row: 'W2b',
  batchBytes: 1_000_000,
  drainRow: 'W3 of W2b',
};
const FLUSHED: Load = { ...W1, row: 'W5', acks: -1, durability: 'fsync', drainRow: null };

export const throughputWorks: readonly SharedWork[] = [W1, MANY_SMALL, MANY_LARGE, FLUSHED].map(
  (load) => ({
    kind: 'shared',
    rows: load.drainRow === null ? [load.row] : [load.row, load.drainRow],
    durability: load.durability,
    needs: 'produce',
    run: (context) => runLoad(load, context),
  }),
);

/** Produces `mib` MiB like W1 and throws the topic away: the part of a JVM's life that does not count. */
export async function warmUp(context: RoundContext, mib: number): Promise<void> {
  const rounds = Math.ceil(mib / ((MESSAGES_1K * W1.messageBytes) / 1_024 ** 2));
  for (let round = 0; round < rounds; round += 1)
    await runLoad(W1, { ...context, roundKey: `${context.roundKey}-${round}`, rehearsal: false });
}

async function runLoad(load: Load, context: RoundContext): Promise<Figures[]> {
  const { broker } = context;
  const topic = `${load.row}-${context.roundKey}`;
  const payload = preparePayload(context.scratch, load.messages, load.messageBytes);
  const flushed = load.durability === 'fsync' ? broker.spec.flushedTopicConfigs : {};
  await makeTopic(broker.port, topic, {
    partitions: load.partitions,
    configs: { ...TOPIC_CONFIGS, ...flushed },
  });
  const figures = [await runProduce(load, context, topic, payload)];
  if (load.drainRow !== null && broker.spec.can.fetch)
    figures.push(await runDrain(load.drainRow, context, topic, payload));
  await withClient(broker.port, (client) => deleteTopic(client, topic));
  return figures;
}

async function runProduce(
  load: Load,
  context: RoundContext,
  topic: string,
  payload: Payload,
): Promise<Figures> {
  const { port } = context.broker;
  const amount = { ...payload, partitions: load.partitions };
  const figures = await measureProduce(load.row, context, topic, amount, () =>
    produce(port, topic, payload, load),
  );
  return { ...figures, command: produceCommand(port, topic, payload, load).join(' ') };
}

interface Amount {
  messages: number;
  messageBytes: number;
  partitions: number;
}

/**
 * Measures `work`, which fills a fresh topic, and checks that all is there afterwards. `work` may return the wall time
 * that counts.
 */
export async function measureProduce(
  row: string,
  context: RoundContext,
  topic: string,
  amount: Amount,
  work: () => Promise<number | undefined>,
): Promise<Figures> {
  const { broker } = context;
  const mib = (amount.messages * amount.messageBytes) / 1_024 ** 2;
  await settle(context.running);
  await sync();
  warmPageCache(context.scratch, Math.ceil(mib * WARM_FACTOR));
  const cost = await measure(broker, work);
  const rssMiB = broker.rssMiB();
  const ends = await withClient(broker.port, (client) =>
    endOffsets(client, topic, amount.partitions),
  );
  const stored = ends.reduce((sum, end) => sum + end, 0);
  if (stored !== amount.messages)
    throw new Error(`${broker.spec.name} holds ${stored} of ${amount.messages} messages`);
  const values = { ...throughputValues(cost, amount.messages, mib), rssMiB };
  return { work: row, values, bottleneck: bottleneckOf(cost) };
}

async function runDrain(
  row: string,
  context: RoundContext,
  topic: string,
  payload: Payload,
): Promise<Figures> {
  const { broker } = context;
  await settle(context.running);
  await sync();
  let bytes = 0;
  const count = context.rehearsal ? (chunk: number) => (bytes += chunk) : undefined;
  const cost = await measure(broker, () => drain(broker.port, topic, count));
  const due = payload.messages * (payload.messageBytes + 1);
  if (context.rehearsal && bytes !== due)
    throw new Error(`${broker.spec.name}: ${bytes} of ${due} bytes came back from ${topic}`);
  const values = {
    ...throughputValues(cost, payload.messages, payload.mib),
    rssMiB: broker.rssMiB(),
  };
  const command = drainCommand(broker.port, topic).join(' ');
  return { work: row, values, bottleneck: bottleneckOf(cost), command };
}
