/**
 * cold: what a reader that catches up from offset 0, from the disk, does to those at the tail of the same partition:
 * a producer of 1,000 messages a second and a consumer that waits for them.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Histogram } from '../../../tools/histogram.ts';
import { BATCH_HEADER_BYTES, BatchField, buildBatch } from '../batch.ts';
import { RunningBroker, settle } from '../broker.ts';
import { produceBulk } from '../bulk_client.ts';
import { run, sleep } from '../children.ts';
import { drainCommand } from '../kcat.ts';
import { sync } from '../machine.ts';
import type { Figures, Values } from '../measure.ts';
import { readMachineTime } from '../proc.ts';
import {
  endOffsets,
  fetchedRecords,
  fetchFrame,
  makeTopic,
  produceError,
  produceFrame,
  withClient,
} from '../requests.ts';
import { WireClient } from '../wire_client.ts';
import type { LifeContext, LifeWork } from './work.ts';

const ROW = 'cold reader';
const TOPIC = 'backlog';
/** 2 GiB. */
const BACKLOG = { messages: 2_097_152, messageBytes: 1_024, messagesPerBatch: 960 };
const PER_SECOND = 1_000;
const VALUE_BYTES = 100;
/** The shortest time that a tail is measured for. */
const TAIL_MS = 8_000;
const GRACE_MS = 10_000;
const FETCH_WAIT_MS = 500;
const FETCH_BYTES = 1_048_576;
const READER_TIMEOUT_MS = 120_000;

export const coldReaderWorks: readonly LifeWork[] = [
  { kind: 'life', rows: [ROW], rehearse: async () => {}, run: runCold },
];

async function runCold({ spec, launch, log }: LifeContext): Promise<Figures[]> {
  if (!spec.can.fetch) return [];
  const broker = await RunningBroker.place(spec, launch);
  try {
    broker.start('os');
    await broker.waitUntilAnswers();
    await makeTopic(broker.port, TOPIC, { partitions: 1 });
    const bulk = { ...BACKLOG, connections: 2, inFlight: 2, partitions: 1, acks: 1 } as const;
    await produceBulk(broker.port, TOPIC, bulk);
    // Not counted: compiles the tail's code.
    await tail(broker, async () => sleep(TAIL_MS));
    const values = await pair(broker);
    log(`${spec.name}: 2 GiB written, tail measured twice`);
    return [{ work: ROW, values, bottleneck: null }];
  } finally {
    await broker.discard();
  }
}

async function pair(broker: RunningBroker): Promise<Values> {
  await settle([broker]);
  await sync();
  const alone = await tail(broker, async () => sleep(TAIL_MS));
  await dropFromPageCache(join(broker.place.directory, 'data'));
  let readerMs = 0;
  const before = readMachineTime();
  const beside = await tail(broker, async () => {
    // Behind the tail's client in the queue for their CPU: it is the broker that is measured.
    const argv = [
      'nice',
      '-n',
      '19',
      ...drainCommand(broker.port, TOPIC),
      '-c',
      String(BACKLOG.messages),
    ];
    readerMs = await run(argv, { timeoutMs: READER_TIMEOUT_MS });
  });
  return {
    readerMiBPerSecond: (BACKLOG.messages * BACKLOG.messageBytes) / 1_024 ** 2 / (readerMs / 1_000),
    produceP99Ms: alone.produce.percentile(99),
    produceP99BesideMs: beside.produce.percentile(99),
    consumeP99Ms: alone.consume.percentile(99),
    consumeP99BesideMs: beside.consume.percentile(99),
    produceMaxBesideMs: beside.produce.maxMs,
    consumeMaxBesideMs: beside.consume.maxMs,
    stolenPercent: ((readMachineTime().stolenMs - before.stolenMs) / readerMs) * 100,
  };
}

/** Whole files, by the kernel's advice, and not the page cache of everybody on the machine. */
async function dropFromPageCache(directory: string): Promise<void> {
  await sync();
  const names = readdirSync(directory, { recursive: true, encoding: 'utf8' });
  for (const name of names.filter((one) => one.endsWith('.log')))
    await run(['dd', `if=${join(directory, name)}`, 'iflag=nocache', 'count=0', 'status=none'], {
      timeoutMs: READER_TIMEOUT_MS,
    });
}

interface Tail {
  /** From when a message was due to its acknowledgement, and to its arrival at the consumer. */
  produce: Histogram;
  consume: Histogram;
}

/** Produces and consumes at the tail for as long as `meanwhile` runs. */
async function tail(broker: RunningBroker, meanwhile: () => Promise<void>): Promise<Tail> {
  const { port } = broker;
  const [end] = await withClient(port, (client) => endOffsets(client, TOPIC, 1));
  const producer = await WireClient.connect(port);
  const consumer = await WireClient.connect(port);
  const result: Tail = { produce: new Histogram(), consume: new Histogram() };
  let failure: Error | null = null;
  const fail = (error: Error): void => {
    failure ??= error;
  };
  producer.onFailure(fail);
  consumer.onFailure(fail);
  const started = performance.now();
  const dueAt = (index: number): number => started + (index * 1_000) / PER_SECOND;
  const first = end as number;
  consume(consumer, first, fail, (offset) => {
    result.consume.record(performance.now() - dueAt(offset - first));
  });
  const frame = produceFrame(TOPIC, 0, buildBatch(1, VALUE_BYTES, Date.now()), 1);
  let sent = 0;
  const send = (): void => {
    for (; dueAt(sent) <= performance.now(); sent += 1) {
      const due = dueAt(sent);
      producer.send(Buffer.from(frame), (body) => {
        const code = produceError(body);
        if (code === 0) result.produce.record(performance.now() - due);
        else fail(new Error(`produce failed with error ${code}`));
      });
    }
  };
  const timer = setInterval(send, 1);
  try {
    await meanwhile();
  } finally {
    clearInterval(timer);
  }
  for (
    const giveUpAt = performance.now() + GRACE_MS;
    failure === null && performance.now() < giveUpAt;
  ) {
    if (result.consume.count >= sent && result.produce.count >= sent) break;
    await sleep(1);
  }
  producer.close();
  consumer.close();
  if (failure !== null) throw failure as Error;
  if (result.consume.count < sent)
    throw new Error(`${sent - result.consume.count} messages did not arrive`);
  return result;
}

/** Fetches from `offset` on for as long as the connection lives; messages are batches of one record. */
function consume(
  client: WireClient,
  offset: number,
  fail: (error: Error) => void,
  onMessage: (offset: number) => void,
): void {
  client.send(fetchFrame(TOPIC, offset, FETCH_WAIT_MS, FETCH_BYTES), (body) => {
    const { code, records } = fetchedRecords(body);
    if (code !== 0) return fail(new Error(`fetch failed with error ${code}`));
    let next = offset;
    for (let at = 0; records.length - at >= BATCH_HEADER_BYTES; ) {
      onMessage(next);
      next += 1;
      at += records.readInt32BE(at + BatchField.length) + BatchField.leaderEpoch;
    }
    consume(client, next, fail, onMessage);
  });
}
