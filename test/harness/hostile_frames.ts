/** Frames that no client in its right mind sends: what the hostile scenario throws at a live broker. */
import { compress } from '../../engine/batch/compression.ts';
import { crc32c } from '../../engine/batch/crc.ts';
import { encodeBatch } from '../../engine/batch/encode.ts';
import {
  batchCrcStart,
  batchHeaderBytes,
  batchOffset,
  batchOverheadBytes,
  type Codec,
  writeInt16,
  writeInt32,
} from '../../engine/batch/header.ts';
import { ApiKey } from '../../net/protocol/api_key.gen.ts';
import { apiInfo } from '../../net/protocol/apis.ts';
import { encodeRequestFrame } from '../../net/protocol/frame.ts';
import type { ApiName } from '../../net/protocol/messages.gen.ts';
import { fromHex, goldenVectors } from '../net/protocol/golden.ts';

/** An unsigned varint. */
function uvarint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 0x7f; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 0x80);
  bytes.push(rest);
  return bytes;
}

function int32(value: number): number[] {
  return [24, 16, 8, 0].map((shift) => (value >> shift) & 0xff);
}

/** A frame with a right size, a right header and this body. */
export function frame(api: ApiName, version: number, body: Uint8Array | readonly number[]): Buffer {
  const key = ApiKey[api];
  const flexible = version >= (apiInfo(key)?.flexibleFrom ?? Number.POSITIVE_INFINITY);
  const header = [
    0,
    key,
    0,
    version,
    ...int32(7),
    0,
    4,
    ...Buffer.from('evil'),
    ...(flexible ? [0] : []),
  ];
  return sized(Buffer.concat([Buffer.from(header), Buffer.from(body)]));
}

/** Puts the size in front. */
export function sized(content: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(int32(content.length)), content]);
}

export interface HostileFrame {
  readonly name: string;
  readonly bytes: Uint8Array;
}

const intMax = 0x7fffffff;

/** Lengths and counts that cannot be: the connection must be closed at once, by the first few bytes. */
export function badNumbers(): HostileFrame[] {
  const frames: [string, Uint8Array][] = [
    ['a frame of size -1', Buffer.from(int32(-1))],
    ['a frame of size -2^31', Buffer.from(int32(-(2 ** 31)))],
    ['a frame of size 2^31 - 1', Buffer.from(int32(intMax))],
    ['a frame of size 0', Buffer.from(int32(0))],
    ['a frame of size 3', Buffer.from([...int32(3), 0, 3, 0])],
    ['an HTTP request', Buffer.from('GET / HTTP/1.1\r\nHost: broker\r\n\r\n')],
    ['a TLS hello', Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3])],
    ['an API that does not exist', sized(Buffer.from([0x7f, 0xff, 0, 0, ...int32(7), 0xff, 0xff]))],
    ['a version that does not exist', frame('Metadata', 99, [])],
    ['a client id of length -2', sized(Buffer.from([0, 3, 0, 1, ...int32(7), 0xff, 0xfe]))],
    ['a client id of 32767 bytes', sized(Buffer.from([0, 3, 0, 1, ...int32(7), 0x7f, 0xff]))],
  ];
  for (const count of [intMax, -2, -(2 ** 31), 100_000_000])
    frames.push([`an array of ${count} topics`, frame('Metadata', 1, int32(count))]);
  for (const count of [2 ** 32 - 1, intMax, 100_000_000]) {
    frames.push([`a compact array of ${count}`, frame('Metadata', 12, uvarint(count))]);
    frames.push([`a fetch of ${count} topics`, frame('Fetch', 12, fetchHead(uvarint(count)))]);
  }
  frames.push(['a varint without an end', frame('Metadata', 12, new Uint8Array(64).fill(0xff))]);
  frames.push(['records of length 2^31 - 1', frame('Produce', 3, produceV3(int32(intMax)))]);
  frames.push(['records of length -2', frame('Produce', 3, produceV3(int32(-2)))]);
  return frames.map(([name, bytes]) => ({ name, bytes }));
}

function fetchHead(topics: readonly number[]): number[] {
  // replica id, max wait, min bytes, max bytes, isolation, session id and epoch
  const fields = [
    ...int32(-1),
    ...int32(0),
    ...int32(0),
    ...int32(1),
    0,
    ...int32(0),
    ...int32(-1),
  ];
  return [...fields, ...topics];
}

function produceV3(recordsLength: readonly number[]): number[] {
  // no transactional id, acks, timeout, one topic "t", one partition 0
  return [
    0xff,
    0xff,
    0xff,
    0xff,
    ...int32(100),
    ...int32(1),
    0,
    1,
    0x74,
    ...int32(1),
    ...int32(0),
    ...recordsLength,
  ];
}

/**
 * As many tagged fields as there is room for in `frameBytes` (20 million and more in a large one), at the end of a
 * body; every one is well-formed.
 */
export function taggedFields(frameBytes: number): HostileFrame {
  const fieldBytes = 5;
  const count = Math.floor((frameBytes - 64) / fieldBytes);
  const fields = Buffer.alloc(count * fieldBytes);
  for (let index = 0, at = 0; index < count; index += 1) {
    // A tag of four bytes, in ascending order, and a size of zero.
    fields[at++] = (index & 0x7f) | 0x80;
    fields[at++] = ((index >>> 7) & 0x7f) | 0x80;
    fields[at++] = ((index >>> 14) & 0x7f) | 0x80;
    fields[at++] = (index >>> 21) & 0x7f;
    at += 1;
  }
  // topics: null; three booleans… and then the tags.
  const body = Buffer.concat([Buffer.from([0, 0, 0, ...uvarint(count)]), fields]);
  return { name: `${count} tagged fields`, bytes: frame('Metadata', 12, body) };
}

/** A well-formed request for `count` topics that do not exist: as much work as a frame can ask for. */
export function manyTopics(count: number): HostileFrame {
  const element = [...new Array<number>(15).fill(7), 1, 0, 0];
  const body = Buffer.concat([
    Buffer.from(uvarint(count + 1)),
    Buffer.alloc(element.length * count, Buffer.from(element)),
    Buffer.from([0, 0, 0]),
  ]);
  return { name: `metadata of ${count} unknown topics`, bytes: frame('Metadata', 12, body) };
}

/** The longest golden request of every API in its newest version, as whole frames: the stuff that mutations are made from. */
export function goldenFrames(apis: readonly ApiName[]): Uint8Array[] {
  return apis.map((api) => {
    const vectors = goldenVectors(`${api}Request`);
    const newest = Math.max(...vectors.map(([version]) => version));
    const bodies = vectors.filter(([version]) => version === newest).map((vector) => vector[3]);
    const longest = bodies.reduce((best, body) => (body.length > best.length ? body : best), '');
    return frame(api, newest, fromHex(longest));
  });
}

/** A batch of one record that is all zeros and `bytes` long once decompressed, whatever is allowed. */
export function bombBatch(codec: Codec, bytes: number): Uint8Array {
  const plain = new Uint8Array(bytes);
  const body = compress(codec, plain);
  const batch = new Uint8Array(batchHeaderBytes + body.length);
  batch.set(
    encodeBatch({
      records: [{ value: new Uint8Array(1), timestamp: BigInt(Date.now()) }],
    }).subarray(0, batchHeaderBytes),
  );
  batch.set(body, batchHeaderBytes);
  writeInt16(batch, batchOffset.attributes, codec);
  return resealed(batch);
}

/** A small plain batch whose header promises as many records as can be said. */
export function promisingBatch(): Uint8Array {
  const batch = encodeBatch({ records: [{ value: new Uint8Array(10) }] });
  writeInt32(batch, batchOffset.recordCount, intMax);
  writeInt32(batch, batchOffset.lastOffsetDelta, intMax - 1);
  return resealed(batch);
}

/** Length and checksum made right again. */
function resealed(batch: Uint8Array): Uint8Array {
  writeInt32(batch, batchOffset.length, batch.length - batchOverheadBytes);
  writeInt32(batch, batchOffset.crc, crc32c(batch.subarray(batchCrcStart)) | 0);
  return batch;
}

/** A produce request of one batch, whole, for those who send only parts of it. */
export function produceFrame(topicId: string, batch: Uint8Array): Uint8Array {
  const header = { apiKey: ApiKey.Produce, apiVersion: 13, correlationId: 7, clientId: 'evil' };
  const topicData = [{ topicId, partitionData: [{ index: 0, records: batch }] }];
  return encodeRequestFrame<'Produce'>(header, 'ProduceRequest', {
    acks: -1,
    timeoutMs: 1000,
    topicData,
  }).bytes;
}
