/** The records that the clients exchange, and the comparison of what was read with what was sent. */
import assert from 'node:assert/strict';
import type { Hex, Limits, PeerRecord, ReadRecord } from './peers/peer.ts';

/** Small deterministic generator of bytes (splitmix32), so that a failure repeats. */
function randomBytes(seed: number, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  let state = seed >>> 0;
  for (let at = 0; at < length; at += 1) {
    state = (state + 0x9e3779b9) >>> 0;
    let z = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    bytes[at] = (z ^ (z >>> 15)) >>> 24;
  }
  return bytes;
}

const hex = (text: string): string => Buffer.from(text, 'utf8').toString('hex');
const unicode = hex('Grüße, 世界 🐟');

/** Keys and values: null, empty, text, long and compressible, and if `binary` every byte and long noise. */
function contents(seed: number, binary: boolean): (readonly [string | null, string | null])[] {
  const text: (readonly [string | null, string | null])[] = [
    [hex(`key-${seed}`), hex(`value-${seed}`)],
    [null, hex('no key')],
    [hex('tombstone'), null],
    [null, null],
    ['', hex('empty key')],
    [hex('empty value'), ''],
    ['', ''],
    [unicode, unicode],
    [hex('long'), hex('millrace '.repeat(5_000))],
  ];
  for (let i = 0; i < 12; i += 1) text.push([hex(`k${i % 3}`), hex(`record ${i} of ${seed}`)]);
  if (!binary) return text;
  const every = Buffer.from(Array.from({ length: 256 }, (_, at) => at)).toString('hex');
  return [...text, [every, every], [hex('noise'), randomBytes(seed, 20_000).toString('hex')]];
}

/** No comma and no zero byte in header values: kcat separates headers with the one and ends them at the other. */
/** Headers for the record at `index`: most have none; names repeat, values are null, empty or binary. */
function headersAt(index: number, binary: boolean): PeerRecord['headers'] {
  switch (index % 5) {
    case 1:
      return [['one', hex('1')]];
    case 2: {
      const twice = [
        ['trace', hex('Grüße 世界 🐟')],
        ['trace', hex('again')],
        ['empty', ''],
      ] as const;
      return binary ? [...twice, ['null', null], ['bytes', 'ff01fe80c328']] : twice;
    }
    default:
      return [];
  }
}

/** Timestamps start here: a day back, so that they are seen to be ours and not the broker's, yet no retention takes them. */
export const anchorMs: number = Date.now() - 86_400_000;

/**
 * Records for one producer in one mode. Timestamps lie in the past, differ, and go back once. Keeps to what the
 * producer can send; what it cannot, another producer's set has.
 */
export function dataset(seed: number, limits: Limits): PeerRecord[] {
  const binary = limits.textOnly !== true;
  const baseMs = anchorMs + seed * 60_000;
  const possible = contents(seed, binary).filter(
    ([key, value]) => limits.noNullRecords !== true || key !== null || value !== null,
  );
  const records = possible.map(([key, value], index) => ({
    key,
    value,
    headers: headersAt(index, binary).filter(
      ([, content]) => limits.noNullHeaders !== true || content !== null,
    ),
    timestamp: baseMs + (index === 4 ? -1 : index * 7),
  }));
  if (limits.headersPerRun !== true) return records;
  return groupForRuns(records);
}

/** Two runs without headers, one of them with nulls, and a run with headers. */
function groupForRuns(records: readonly PeerRecord[]): PeerRecord[] {
  const hasNull = ({ key, value }: PeerRecord): boolean => key === null || value === null;
  const hasEmpty = ({ key, value }: PeerRecord): boolean => key === '' || value === '';
  const plain = records.filter((record) => !hasNull(record) && !hasEmpty(record));
  const middle = Math.floor(plain.length / 2);
  const headers: PeerRecord['headers'] = [
    ['trace', hex('Grüße 世界 🐟')],
    ['trace', hex('again')],
    ['null', null],
  ];
  return [
    ...records.filter(hasNull).map((record) => ({ ...record, headers: [] })),
    ...records
      .filter((record) => !hasNull(record) && hasEmpty(record))
      .map((record) => ({ ...record, headers: [] })),
    ...plain.slice(0, middle).map((record) => ({ ...record, headers: [] })),
    ...plain.slice(middle).map((record) => ({ ...record, headers })),
  ];
}

/** What was sent where: the order is that of sending. */
export interface Sent {
  readonly topic: string;
  readonly partition: number;
  readonly records: readonly PeerRecord[];
  readonly what: string;
  /** When the producer stamped the records itself: the times, in milliseconds, between which it did. */
  readonly stampedBetween: readonly [number, number] | null;
}

/** What was sent, as a reader with those limits shows it. */
export function asReadWith(limits: Limits, sent: readonly Sent[]): readonly Sent[] {
  const { readsEmptyAsNull, readsNullHeadersAsEmpty } = limits;
  const shown = (hex: Hex): Hex => (readsEmptyAsNull && hex === '' ? null : hex);
  const shownInHeader = (hex: Hex): Hex =>
    readsNullHeadersAsEmpty && hex === null ? '' : shown(hex);
  return sent.map((one) => ({
    ...one,
    records: one.records.map(({ key, value, headers, timestamp }) => ({
      key: shown(key),
      value: shown(value),
      headers: headers.map(([name, content]) => [name, shownInHeader(content)] as const),
      timestamp,
    })),
  }));
}

/** Checks that `read` is exactly what was sent: bytes, keys, headers, timestamps, order, offsets from 0 without a gap. */
export function assertSame(
  sent: readonly Sent[],
  read: readonly ReadRecord[],
  reader: string,
): void {
  const byPartition = new Map<string, ReadRecord[]>();
  for (const record of read) {
    const place = `${record.topic}-${record.partition}`;
    const records = byPartition.get(place) ?? [];
    byPartition.set(place, records);
    records.push(record);
  }
  for (const one of sent) {
    const place = `${one.topic}-${one.partition}`;
    const records = byPartition.get(place) ?? [];
    byPartition.delete(place);
    assertPartition(one, records, `${one.what}, read by ${reader}`);
  }
  assert.deepEqual([...byPartition.keys()], [], `${reader} read partitions that nobody wrote`);
}

function assertPartition(sent: Sent, records: readonly ReadRecord[], what: string): void {
  assert.deepEqual(
    records.map(({ offset }) => offset),
    sent.records.map((_, index) => index),
    `offsets: ${what}`,
  );
  for (const [index, { timestamp, key, value, headers }] of records.entries()) {
    const expected = sent.records[index] as PeerRecord;
    const where = `record ${index}: ${what}`;
    assert.equal(key, expected.key, `key of ${where}`);
    assert.equal(value, expected.value, `value of ${where}`);
    assert.deepEqual(headers, expected.headers, `headers of ${where}`);
    if (sent.stampedBetween === null) {
      assert.equal(timestamp, expected.timestamp, `timestamp of ${where}`);
    } else {
      const [from, to] = sent.stampedBetween;
      assert(timestamp >= from && timestamp <= to, `timestamp ${timestamp} of ${where}`);
    }
  }
}

/** The timestamps of what was read, by partition: the same for every reader, whoever stamped them. */
export function timestampsOf(read: readonly ReadRecord[]): Record<string, number[]> {
  const times: Record<string, number[]> = {};
  for (const { topic, partition, timestamp } of read) {
    const place = `${topic}-${partition}`;
    times[place] ??= [];
    times[place].push(timestamp);
  }
  return times;
}
