/**
 * Fuzz of all decoders: golden frames with seeded mutations, and random bytes. Oracle: a result or a
 * ProtocolError; a result holds no more than the frame can carry, and can be encoded and decoded again.
 *
 * `--inputs N` runs more, `--seed N` from another seed; a failure prints the seed and the bytes.
 */
import assert from 'node:assert/strict';
import { parseArgs } from 'node:util';
import { suite } from 'uvu';
import { allApis } from '../../net/protocol/apis.ts';
import { type Codec, codecFor } from '../../net/protocol/codec.ts';
import { decodeRequestHeader } from '../../net/protocol/frame.ts';
import { ProtocolError, Reader } from '../../net/protocol/reader.ts';
import { decodeMetadataRecord } from '../../net/protocol/record_codec.ts';
import { Writer } from '../../net/protocol/writer.ts';
import { seedsAtLeast } from '../harness/budget.ts';
import { type Random, splitMix } from '../harness/split_mix.ts';
import { fromHex, goldenVectors, messageNames, toHex } from '../net/protocol/golden.ts';
import { mutate, randomBytes } from './mutate.ts';

const { values: options } = parseArgs({
  options: {
    inputs: { type: 'string', default: String(seedsAtLeast(100_000)) },
    seed: { type: 'string', default: '1' },
  },
  strict: false,
});
const inputs = Number(options.inputs);
const seed = Number(options.seed);
const test = suite('decoder fuzz');

interface Subject {
  readonly name: string;
  readonly decode: (reader: Reader) => unknown;
  readonly codec: Codec<unknown> | null;
  readonly samples: Uint8Array[];
}

interface Tally {
  decoded: number;
  refused: number;
}

/** Every version of every message: requests and headers come from strangers, the rest from peers and disks. */
function allSubjects(): Subject[] {
  const subjects = new Map<string, Subject>();
  for (const name of messageNames()) {
    for (const [version, , , hex] of goldenVectors(name)) {
      const key = `${name} v${version}`;
      let subject = subjects.get(key);
      if (subject === undefined) {
        const codec = codecFor(name, version) as Codec<unknown>;
        subject = { name: key, decode: (reader) => codec.decode(reader), codec, samples: [] };
        subjects.set(key, subject);
      }
      subject.samples.push(fromHex(hex));
    }
  }
  return [...subjects.values(), frameSubject(), metadataSubject()];
}

/** A whole request as the broker reads it: the header says what the body is. */
function frameSubject(): Subject {
  const samples = allApis().flatMap((api) => {
    const [version, , , hex] = goldenVectors(api.requestName).at(-1) as [
      number,
      string,
      unknown,
      string,
    ];
    const ids = [api.key, version].map((id) => id.toString(16).padStart(4, '0')).join('');
    const tags = version >= api.flexibleFrom ? '00' : '';
    return [fromHex(`${ids}000000070003616263${tags}${hex}`)];
  });
  const decode = (reader: Reader): unknown => {
    const header = decodeRequestHeader(reader);
    const api = allApis().find(({ key }) => key === header.apiKey);
    const { apiVersion } = header;
    if (api === undefined || apiVersion < api.minVersion || apiVersion > api.maxVersion)
      return header;
    return codecFor(api.requestName, apiVersion).decode(reader);
  };
  return { name: 'request frame', decode, codec: null, samples };
}

function metadataSubject(): Subject {
  const samples = messageNames().flatMap((name) =>
    goldenVectors(name)
      .filter((vector) => vector[4]?.startsWith('01') && vector[4].length === 6)
      .map((vector) => fromHex(vector[4] + vector[3])),
  );
  const decode = (reader: Reader): unknown =>
    decodeMetadataRecord(reader.bytes.subarray(reader.pos, reader.end));
  return { name: 'metadata record', decode, codec: null, samples };
}

/** One input through one decoder. Throws an AssertionError when the oracle says no. */
function check(subject: Subject, bytes: Uint8Array, tally: Tally): void {
  let value: unknown;
  try {
    value = subject.decode(new Reader(bytes));
  } catch (error) {
    if (error instanceof ProtocolError) {
      tally.refused += 1;
      return;
    }
    throw new assert.AssertionError({ message: `${subject.name}: ${error}: ${toHex(bytes)}` });
  }
  tally.decoded += 1;
  const weight = weigh(value);
  assert(
    weight <= bytes.length,
    `${subject.name}: ${weight} from ${bytes.length}: ${toHex(bytes)}`,
  );
  if (subject.codec === null || tally.decoded % 4 !== 0) return;
  writer.abandon();
  subject.codec.encode(writer, value);
  const again = subject.codec.decode(new Reader(writer.finish().bytes));
  assert.deepStrictEqual(again, value, `${subject.name}: ${toHex(bytes)}`);
}

const writer = new Writer();

/** What a value holds that a frame of that many bytes must have paid for: elements, characters and bytes. */
function weigh(value: unknown): number {
  if (value instanceof Uint8Array) return value.length;
  if (Array.isArray(value)) {
    return value.reduce((sum: number, element) => sum + Math.max(1, weigh(element)), 0);
  }
  if (typeof value !== 'object' || value === null) return 0;
  let sum = 0;
  for (const member of Object.values(value)) sum += weigh(member);
  return sum;
}

function run(subjects: readonly Subject[], random: Random, count: number): Tally {
  const tally: Tally = { decoded: 0, refused: 0 };
  for (let at = 0; at < count; at += 1) {
    const subject = subjects[random(subjects.length)] as Subject;
    const sample = subject.samples[random(subject.samples.length)] as Uint8Array;
    const other = subject.samples[random(subject.samples.length)] as Uint8Array;
    const bytes =
      random(8) === 0 ? randomBytes(random, random(200)) : mutate(random, sample, other);
    check(subject, bytes, tally);
  }
  return tally;
}

test(`${inputs} inputs from seed ${seed} give a result or a protocol error`, () => {
  const subjects = allSubjects();
  assert(subjects.length > 700, `only ${subjects.length} decoders`);
  const tally = run(subjects, splitMix(seed), inputs);
  assert(tally.decoded > inputs / 10, `only ${tally.decoded} of ${inputs} decoded`);
  assert(tally.refused > inputs / 10, `only ${tally.refused} of ${inputs} refused`);
});

test('the harness sees a decoder that throws something else', () => {
  const broken: Subject = {
    name: 'canary',
    decode: (reader) => new Uint8Array(Math.min(0, reader.view.getInt8(0))),
    codec: null,
    samples: [fromHex('00000001')],
  };
  assert.throws(() => run([broken], splitMix(seed), 1000), /canary: RangeError/);
});

test('the harness sees a decoder that gives more than the frame holds', () => {
  const broken: Subject = {
    name: 'canary',
    decode: (reader) => ({ list: new Array<number>(reader.bytes[0] ?? 0).fill(0) }),
    codec: null,
    samples: [fromHex('00000001')],
  };
  assert.throws(() => run([broken], splitMix(seed), 1000), /canary: \d+ from \d+/);
});

test.run();
