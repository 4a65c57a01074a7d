/** kcat, the distribution's: an older librdkafka, and the client that most people try first. */
import { spawn } from 'node:child_process';
import { installKcat } from './install.ts';
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

/** Byte strings that the data set keeps out of keys, values and headers. */
const betweenKeyAndValue = '|key-value|';
const afterRecord = '|record-end|';
const afterHeaders = '|headers-end|';

/**
 * Runs kcat with `input`, which ends `holdMs` late; resolves to its output, throws with its error output if it fails or
 * takes too long.
 */
export function kcat(
  args: readonly string[],
  input: Uint8Array = new Uint8Array(),
  holdMs = 0,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const child = spawn('kcat', args, { stdio: ['pipe', 'pipe', 'pipe'] });
    const output: Buffer[] = [];
    let errors = '';
    child.stdout.on('data', (chunk: Buffer) => output.push(chunk));
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => (errors += chunk));
    child.stdin.on('error', () => {});
    child.stdin.write(input);
    setTimeout(() => child.stdin.end(), holdMs);
    const timer = setTimeout(() => child.kill('SIGKILL'), CONSUME_TIMEOUT_MS);
    child.once('error', reject);
    child.once('close', (code) => {
      clearTimeout(timer);
      if (code === 0) resolve(Buffer.concat(output));
      else reject(new Error(`kcat ${args.join(' ')}: ${code ?? 'timed out'}: ${errors}`));
    });
  });
}

/** Records that one run of kcat can send: the same headers, and either nulls or empty strings, not both. */
interface Run {
  readonly headers: PeerRecord['headers'];
  readonly hasNull: boolean;
  readonly records: PeerRecord[];
}

const isNullable = ({ key, value }: PeerRecord): boolean => value === null || key === null;

/** Cuts records into runs; the order stays. */
function runsOf(records: readonly PeerRecord[]): Run[] {
  const runs: Run[] = [];
  for (const record of records) {
    const last = runs.at(-1);
    const { headers } = record;
    const hasNull = isNullable(record);
    if (last?.hasNull === hasNull && JSON.stringify(last.headers) === JSON.stringify(headers)) {
      last.records.push(record);
    } else {
      runs.push({ headers, hasNull, records: [record] });
    }
  }
  return runs;
}

const bytes = (hex: Hex): Buffer => Buffer.from(hex ?? '', 'hex');

/** With -Z an empty key and an empty value become null. Always with a delimiter: kcat skips lines with nothing in them. */
function lineOf({ key, value }: PeerRecord): Buffer {
  const delimiters = [betweenKeyAndValue, afterRecord].map((text) => Buffer.from(text));
  return Buffer.concat([
    bytes(key),
    delimiters[0] as Buffer,
    bytes(value),
    delimiters[1] as Buffer,
  ]);
}

function headerOption([name, value]: readonly [string, Hex]): string[] {
  return ['-H', value === null ? name : `${name}=${bytes(value).toString('utf8')}`];
}

class KcatPeer implements Peer {
  readonly name = 'kcat';
  readonly limits: Limits = { stampsItself: true, headersPerRun: true };
  readonly #bootstrap: string;

  constructor(bootstrap: string) {
    this.#bootstrap = bootstrap;
  }

  /**
   * kcat has no command for it: asking for a topic's metadata as a producer does creates it, if the broker lets it. The
   * broker may answer before the topic is there, so it is asked until it is.
   */
  async create(topic: string, partitions: number): Promise<void> {
    if (partitions !== 1) throw new Error('kcat creates topics with one partition only');
    const isThere = new RegExp(`topic "${topic}" with 1 partitions:\\n.*leader \\d`);
    for (let attempt = 0; attempt < 100; attempt += 1) {
      if (isThere.test(String(await kcat(['-L', '-b', this.#bootstrap, '-t', topic])))) return;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error(`the broker did not create ${topic} in 10 s`);
  }

  async produce(
    topic: string,
    partition: number,
    mode: Mode,
    records: readonly PeerRecord[],
  ): Promise<void> {
    const settings = [
      `acks=${mode.acks}`,
      `enable.idempotence=${mode.idempotent}`,
      'linger.ms=20',
      'message.timeout.ms=30000',
      'message.max.bytes=10000000',
    ];
    const common = ['-P', '-b', this.#bootstrap, '-t', topic, '-p', String(partition)];
    common.push('-z', mode.codec, '-K', betweenKeyAndValue, '-D', afterRecord);
    common.push(...settings.flatMap((setting) => ['-X', setting]));
    for (const { headers, hasNull, records: sent } of runsOf(records)) {
      const options = [...headers.flatMap(headerOption), ...(hasNull ? ['-Z'] : [])];
      const holdMs = mode.acks === '0' ? UNANSWERED_MS : 0;
      await kcat([...common, ...options], Buffer.concat(sent.map(lineOf)), holdMs);
    }
  }

  async consume(wanted: readonly Wanted[]): Promise<ReadRecord[]> {
    const records: ReadRecord[] = [];
    for (const [topic, partition, count] of wanted) {
      const common = ['-C', '-q', '-b', this.#bootstrap, '-t', topic, '-p', String(partition)];
      const format = `%o %T %K %S %h${afterHeaders}%k%s`;
      const output = await kcat([...common, '-o', 'beginning', '-c', String(count), '-f', format]);
      for (const record of parse(output)) records.push({ topic, partition, ...record });
    }
    return records;
  }

  async close(): Promise<void> {}
}

/** Reads what the format string above wrote: lengths first, so that keys and values may hold any byte. */
function* parse(output: Buffer): Generator<Omit<ReadRecord, 'topic' | 'partition'>> {
  let at = 0;
  const take = (length: number): Hex => {
    if (length < 0) return null;
    at += length;
    return output.toString('hex', at - length, at);
  };
  while (at < output.length) {
    const end = output.indexOf(afterHeaders, at);
    if (end === -1)
      throw new Error(`kcat wrote something unexpected: ${output.subarray(at, at + 200)}`);
    const line = output.toString('latin1', at, end);
    const [offset, timestamp, keyLength, valueLength] = line.split(' ', 4).map(Number);
    const headers = line.split(' ').slice(4).join(' ');
    at = end + afterHeaders.length;
    const key = take(keyLength as number);
    const value = take(valueLength as number);
    yield {
      offset: offset as number,
      timestamp: timestamp as number,
      key,
      value,
      headers: headers === '' ? [] : headers.split(',').map(headerOf),
    };
  }
}

function headerOf(text: string): [string, Hex] {
  const equals = text.indexOf('=');
  const value = text.slice(equals + 1);
  const hex = value === 'NULL' ? null : Buffer.from(value, 'latin1').toString('hex');
  return [text.slice(0, equals), hex];
}

export async function kcatPeer(bootstrap: string): Promise<Peer> {
  await installKcat();
  return new KcatPeer(bootstrap);
}
