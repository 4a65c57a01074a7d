/**
 * Compares `millrace/client` with the clients that its users would pick otherwise: kafkajs and @platformatic/kafka, against
 * the same broker in one run, round by round in turn. Messages for each second of the client's CPU, produced and consumed,
 * and latency of single messages.
 *
 *   node bench/clients.ts [--rounds N] [--broker millrace|kafka] [--packages DIR] [--works "produce 100 B,…"]
 *
 * The others are installed by `node test/compat/peers/install.ts`. The broker has CPU 0, the clients CPU 1; it answers
 * acks=all when the operating system has the records (log.durability=os), since a disk's time would hide the client's.
 */
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { Client as OwnClient } from '../net/client/client.ts';
import { kafkaLauncher } from '../test/compat/kafka_broker.ts';
import { installNode } from '../test/compat/peers/install.ts';
import { BrokerProcess } from '../test/harness/broker_process.ts';
import { Client } from '../test/harness/client.ts';
import type { Figures } from './clients/child.ts';
import { type LibraryName, libraryNames } from './clients/libraries.ts';
import { type ConsumerWork, consumerWorks, producerWorks } from './clients/works.ts';
import { outputOf, run } from './compare/children.ts';
import { median, medianRatio, type RoundValue, spreadPercent } from './compare/stats.ts';
import { formatNumber, renderTable } from './compare/table.ts';

const brokerCpu = '0';
const clientCpu = '1';

interface Row {
  readonly perCpuSecond: RoundValue[];
  readonly perSecond: RoundValue[];
  readonly p50Us: RoundValue[];
  readonly p99Us: RoundValue[];
}

function rank(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

async function startBroker(kind: string): Promise<BrokerProcess> {
  const broker = await (kind === 'kafka'
    ? BrokerProcess.start({ launcher: kafkaLauncher() })
    : BrokerProcess.start({ settings: { 'log.durability': 'os', 'num.shards': 1 } }));
  const pin = ['taskset', '-a', '-c', '-p', brokerCpu, String(broker.pid)];
  await run(pin, { timeoutMs: 10_000 });
  return broker;
}

/** What consumers are to read, all of it in the page cache. */
async function fill(broker: BrokerProcess, topic: string, work: ConsumerWork): Promise<void> {
  await using client = new OwnClient({ bootstrap: broker.bootstrap });
  await using producer = client.producer();
  const value = Buffer.alloc(work.bytes, 'abcdefgh');
  const group = 1_000;
  for (let left = work.count; left > 0; left -= group)
    await Promise.all(Array.from({ length: group }, () => producer.send({ topic, value })));
}

async function measure(
  broker: BrokerProcess,
  library: LibraryName,
  work: string,
  packages: string,
  topic: string,
): Promise<Figures> {
  const raw = await Client.connect(broker);
  await raw.createTopic(topic);
  raw.close();
  const consumed = consumerWorks.find(({ name }) => name === work);
  if (consumed !== undefined) await fill(broker, topic, consumed);
  const child = join(import.meta.dirname, 'clients/child.ts');
  const args = [library, work, packages, broker.bootstrap, topic];
  const command = ['taskset', '-c', clientCpu, process.execPath, child, ...args];
  return JSON.parse(await outputOf(command, { timeoutMs: 120_000 })) as Figures;
}

function report(rows: ReadonlyMap<string, ReadonlyMap<LibraryName, Row>>): string {
  const lines: string[][] = [];
  for (const [work, byLibrary] of rows) {
    const base = byLibrary.get('millrace/client');
    for (const [library, row] of byLibrary) {
      const middle = (values: readonly RoundValue[]): string =>
        formatNumber(median(values.map(({ value }) => value)));
      const noise = spreadPercent(row.perCpuSecond.map(({ value }) => value));
      lines.push([
        `${work}, ${library}`,
        middle(row.perCpuSecond),
        formatNumber(noise),
        formatNumber(medianRatio(base?.perCpuSecond ?? [], row.perCpuSecond)),
        middle(row.perSecond),
        middle(row.p50Us),
        middle(row.p99Us),
      ]);
    }
  }
  const header = ['', 'messages/CPU s', 'noise %', 'millrace ÷', 'messages/s', 'p50 µs', 'p99 µs'];
  return renderTable(header, lines);
}

async function main(): Promise<void> {
  const string = { type: 'string' } as const;
  const { values } = parseArgs({
    options: { rounds: string, broker: string, packages: string, works: string },
  });
  const packages = values.packages ?? dirname((await installNode('kafkajs')).program);
  const wanted =
    values.works?.split(',') ?? [...producerWorks, ...consumerWorks].map(({ name }) => name);
  const broker = await startBroker(values.broker ?? 'millrace');
  const rows = new Map<string, Map<LibraryName, Row>>();
  try {
    for (let round = 0; round <= Number(values.rounds ?? 3); round += 1)
      for (const work of wanted)
        for (const library of libraryNames) {
          const topic = `${work}-${library}-${round}`.replaceAll(/[^a-z0-9-]/g, '_');
          const figures = await measure(broker, library, work, packages, topic);
          // The first round warms the machine and does not count.
          if (round === 0) continue;
          const byLibrary = rows.get(work) ?? new Map<LibraryName, Row>();
          rows.set(work, byLibrary);
          const row = byLibrary.get(library) ?? {
            ...{ perCpuSecond: [], perSecond: [], p50Us: [], p99Us: [] },
          };
          byLibrary.set(library, row);
          const key = String(round);
          const { messages, cpuSeconds, seconds, latenciesUs } = figures;
          row.perCpuSecond.push({ key, value: messages / cpuSeconds });
          row.perSecond.push({ key, value: messages / seconds });
          row.p50Us.push({ key, value: rank(latenciesUs, 0.5) });
          row.p99Us.push({ key, value: rank(latenciesUs, 0.99) });
        }
  } finally {
    await broker.dispose();
  }
  process.stdout.write(`${report(rows)}\n`);
}

await main();
