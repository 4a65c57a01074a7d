/**
 * One measurement of one library in a process of its own: `child.ts LIBRARY WORK PACKAGES BOOTSTRAP TOPIC`, which prints its
 * figures as JSON. A quarter of the work is done before, and does not count.
 */
import { type LibraryName, libraryNames, openLibrary, type Sender } from './libraries.ts';
import { readWith } from './readers.ts';
import { type ConsumerWork, consumerWorks, type ProducerWork, producerWorks } from './works.ts';

export interface Figures {
  readonly messages: number;
  readonly seconds: number;
  readonly cpuSeconds: number;
  /** Of single messages, in microseconds; empty for batches. */
  readonly latenciesUs: readonly number[];
}

async function sendGroups(sender: Sender, work: ProducerWork, groups: number): Promise<void> {
  const values = Array.from({ length: work.group }, () => Buffer.alloc(work.bytes, 'abcdefgh'));
  let left = groups;
  const lane = async (): Promise<void> => {
    for (; left > 0; ) {
      left -= 1;
      await sender.sendAll(values);
    }
  };
  await Promise.all(Array.from({ length: work.lanes }, lane));
}

async function sendSingles(sender: Sender, work: ProducerWork, count: number): Promise<number[]> {
  const value = Buffer.alloc(work.bytes, 'abcdefgh');
  const latenciesUs: number[] = [];
  for (let at = 0; at < count; at += 1) {
    const begun = performance.now();
    await sender.sendOne(value);
    latenciesUs.push((performance.now() - begun) * 1_000);
  }
  return latenciesUs;
}

/** The places that a measurement needs: `child.ts LIBRARY WORK` and these. */
type Places = readonly [packages: string, bootstrap: string, topic: string];

async function produce(library: LibraryName, work: ProducerWork, places: Places): Promise<Figures> {
  const sender = await openLibrary(library, ...places);
  const run = async (count: number): Promise<number[]> => {
    if (work.group === 1) return sendSingles(sender, work, count);
    await sendGroups(sender, work, count);
    return [];
  };
  await run(Math.ceil(work.count / 4));
  const cpu = process.cpuUsage();
  const begun = performance.now();
  const latenciesUs = await run(work.count);
  const seconds = (performance.now() - begun) / 1_000;
  const { user, system } = process.cpuUsage(cpu);
  await sender.close();
  const messages = work.count * work.group;
  return { messages, seconds, cpuSeconds: (user + system) / 1e6, latenciesUs };
}

async function consume(library: LibraryName, work: ConsumerWork, places: Places): Promise<Figures> {
  const notCounted = Math.floor(work.count / 4);
  let seen = 0;
  let bytes = 0;
  let begun = 0;
  let cpu = process.cpuUsage();
  let figures: Figures | null = null;
  await readWith(library, ...places, (value) => {
    seen += 1;
    bytes += value.length;
    if (seen === notCounted) {
      cpu = process.cpuUsage();
      begun = performance.now();
    }
    if (seen < work.count || figures !== null) return figures === null;
    const seconds = (performance.now() - begun) / 1_000;
    const { user, system } = process.cpuUsage(cpu);
    const cpuSeconds = (user + system) / 1e6;
    figures = { messages: seen - notCounted, seconds, cpuSeconds, latenciesUs: [] };
    return false;
  });
  if (figures === null || bytes !== work.bytes * work.count)
    throw new Error(`${seen} messages with ${bytes} bytes`);
  return figures;
}

async function main([libraryName, workName, ...rest]: readonly string[]): Promise<void> {
  const [packages = '', bootstrap = '', topic = ''] = rest;
  const places = [packages, bootstrap, topic] as const;
  const library = libraryNames.find((name) => name === libraryName);
  const produced = producerWorks.find(({ name }) => name === workName);
  const consumed = consumerWorks.find(({ name }) => name === workName);
  let figures: Figures;
  if (library !== undefined && produced !== undefined)
    figures = await produce(library, produced, places);
  else if (library !== undefined && consumed !== undefined)
    figures = await consume(library, consumed, places);
  else throw new Error(`${libraryName} ${workName}: no such library or work`);
  process.stdout.write(`${JSON.stringify(figures)}\n`);
}

main(process.argv.slice(2)).then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`${String(error)}\n`);
    process.exit(1);
  },
);
