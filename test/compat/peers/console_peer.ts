/** Kafka's console tools, run in the JVM of the Java program. Their producer sends text, and they read anything. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  CONSUME_TIMEOUT_MS,
  type Hex,
  type Limits,
  type Mode,
  type Peer,
  type PeerRecord,
  type ReadRecord,
  UNANSWERED_MS,
  type Wanted,
} from './peer.ts';
import { type Program, startJava } from './program_peer.ts';

const tools = {
  topics: 'org.apache.kafka.tools.TopicCommand',
  producer: 'org.apache.kafka.tools.ConsoleProducer',
  consumer: 'org.apache.kafka.tools.consumer.ConsoleConsumer',
};

/** Strings that the data set keeps out of keys, values and headers; the tools read some as regular expressions. */
const afterField = '<field-end>';
const afterRecord = '<record-end>';
const betweenHeaders = '<next-header>';
const nullText = '<null>';

/** Standard input of a tool; it ends so many milliseconds late. */
interface Input {
  readonly path: string;
  readonly holdMs: number;
}

class ConsolePeer implements Peer {
  readonly name = 'console tools';
  readonly limits: Limits = { stampsItself: true, textOnly: true, onePartition: true };
  readonly #program: Program;
  readonly #bootstrap: string;
  readonly #input: string;
  readonly #output: string;

  constructor(program: Program, bootstrap: string) {
    this.#program = program;
    this.#bootstrap = bootstrap;
    this.#input = join(program.dir, 'tool-input');
    this.#output = join(program.dir, 'tool-output');
  }

  async #run(tool: keyof typeof tools, args: readonly string[], input?: Input): Promise<Buffer> {
    try {
      const errors = await this.#program.run({
        command: 'tool',
        class: tools[tool],
        args: ['--bootstrap-server', this.#bootstrap, ...args],
        input: input?.path ?? null,
        holdInputMs: input?.holdMs ?? 0,
        output: this.#output,
      });
      // The console producer exits with 0 even when it could not deliver: it only logs that.
      if (/\bERROR\b/.test(errors)) throw new Error(errors);
    } catch (error) {
      throw new Error(`${readFileSync(this.#output, 'utf8').slice(-5_000)}${error}`);
    }
    return readFileSync(this.#output);
  }

  async create(topic: string, partitions: number): Promise<void> {
    const shape = ['--partitions', String(partitions), '--replication-factor', '1'];
    await this.#run('topics', ['--create', '--topic', topic, ...shape]);
  }

  async produce(
    topic: string,
    _partition: number,
    mode: Mode,
    records: readonly PeerRecord[],
  ): Promise<void> {
    writeFileSync(this.#input, records.map((record) => `${lineOf(record)}\n`).join(''));
    const properties = [
      'parse.key=true',
      'parse.headers=true',
      `headers.delimiter=${afterField}`,
      `headers.separator=${betweenHeaders}`,
      'headers.key.separator=:',
      `key.separator=${afterField}`,
      `null.marker=${nullText}`,
    ];
    const settings = [`acks=${mode.acks}`, `enable.idempotence=${mode.idempotent}`];
    const args = ['--topic', topic, '--compression-codec', mode.codec];
    args.push(...properties.flatMap((property) => ['--reader-property', property]));
    args.push(...settings.flatMap((setting) => ['--command-property', setting]));
    const holdMs = mode.acks === '0' ? UNANSWERED_MS : 0;
    await this.#run('producer', args, { path: this.#input, holdMs });
  }

  async consume(wanted: readonly Wanted[]): Promise<ReadRecord[]> {
    const records: ReadRecord[] = [];
    const properties = [
      'print.timestamp=true',
      'print.offset=true',
      'print.headers=true',
      'print.key=true',
      `key.separator=${afterField}`,
      `line.separator=${afterRecord}`,
      `headers.separator=${betweenHeaders}`,
      `null.literal=${nullText}`,
    ];
    const common = properties.flatMap((property) => ['--formatter-property', property]);
    common.push('--timeout-ms', String(CONSUME_TIMEOUT_MS));
    for (const [topic, partition, count] of wanted) {
      const place = ['--topic', topic, '--partition', String(partition), '--offset', 'earliest'];
      const args = [...common, ...place, '--max-messages', String(count)];
      // One character a byte, so that splitting at the separators leaves all bytes as they are.
      const lines = (await this.#run('consumer', args)).toString('latin1').split(afterRecord);
      for (const line of lines.slice(0, -1)) records.push({ topic, partition, ...parse(line) });
    }
    return records;
  }

  async close(): Promise<void> {
    await this.#program.close();
  }
}

const text = (hex: Hex): string =>
  hex === null ? nullText : Buffer.from(hex, 'hex').toString('utf8');

function lineOf({ key, value, headers }: PeerRecord): string {
  const pairs = headers.map(([name, content]) => `${name}:${text(content)}`);
  const prefix = pairs.length === 0 ? nullText : pairs.join(betweenHeaders);
  return [prefix, text(key), text(value)].join(afterField);
}

const hexOf = (latin1: string): Hex =>
  latin1 === nullText ? null : Buffer.from(latin1, 'latin1').toString('hex');

/** `CreateTime:1`, `Offset:2`, headers, key and value, one after another. */
function parse(line: string): Omit<ReadRecord, 'topic' | 'partition'> {
  const [timestamp = '', offset = '', headers = '', key = '', value = ''] = line.split(afterField);
  const pairs = headers === 'NO_HEADERS' ? [] : headers.split(betweenHeaders);
  return {
    timestamp: Number(timestamp.split(':')[1]),
    offset: Number(offset.split(':')[1]),
    headers: pairs.map((pair) => {
      const colon = pair.indexOf(':');
      return [pair.slice(0, colon), hexOf(pair.slice(colon + 1))];
    }),
    key: hexOf(key),
    value: hexOf(value),
  };
}

export async function consolePeer(bootstrap: string): Promise<Peer> {
  return new ConsolePeer(await startJava(), bootstrap);
}
