/**
 * The bare sink: what the runtime leaves room for when a broker does nothing but the work that cannot be
 * left out. One thread; a frame is read straight into its connection's buffer, each batch's CRC-32C is
 * checked and its offset stamped in place, and its bytes go to the page cache in one write. No features:
 * no reads, no indexes, no recovery, no limits. It answers just enough of ApiVersions, Metadata,
 * CreateTopics, DeleteTopics, ListOffsets and Produce for librdkafka and the harness to produce to it.
 *
 * Run as: node sink.ts PORT DIRECTORY
 */
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs';
import { createServer, Socket } from 'node:net';
import { join } from 'node:path';
import { crc32c } from '@node-rs/crc32';
import koffi from 'koffi';
import { BATCH_HEADER_BYTES, BatchField } from './batch.ts';
import { ApiKey, ByteReader, ByteWriter } from './wire.ts';

const BUFFER_BYTES = 4 * 1_024 * 1_024;
/** How much is read beyond the frame at hand: what a next frame may have to be moved by. */
const READ_AHEAD_BYTES = 64 * 1_024;
const UNSUPPORTED_VERSION = 35;
const CORRUPT_MESSAGE = 2;
const UNKNOWN_TOPIC_OR_PARTITION = 3;

/** Fetch is listed although it is not served: librdkafka takes it as the sign of message format 2. */
const SERVED = [
  { key: ApiKey.produce, min: 3, max: 7 },
  { key: ApiKey.fetch, min: 4, max: 4 },
  { key: ApiKey.listOffsets, min: 1, max: 1 },
  { key: ApiKey.metadata, min: 4, max: 4 },
  { key: ApiKey.apiVersions, min: 0, max: 0 },
  { key: ApiKey.createTopics, min: 4, max: 4 },
  { key: ApiKey.deleteTopics, min: 3, max: 3 },
];

interface Partition {
  fd: number;
  endOffset: number;
}

const [portText, directory] = process.argv.slice(2);
if (portText === undefined || directory === undefined) throw new Error('sink.ts PORT DIRECTORY');
const port = Number(portText);
const topics = new Map<string, Partition[]>();

function createTopic(name: string, partitions: number): void {
  if (topics.has(name)) return;
  mkdirSync(join(directory as string, name), { recursive: true });
  const opened: Partition[] = [];
  for (let index = 0; index < partitions; index += 1)
    opened.push({
      fd: openSync(join(directory as string, name, `${index}.log`), 'a'),
      endOffset: 0,
    });
  topics.set(name, opened);
}

function deleteTopic(name: string): void {
  for (const partition of topics.get(name) ?? []) closeSync(partition.fd);
  topics.delete(name);
  rmSync(join(directory as string, name), { recursive: true, force: true });
}

function answerApiVersions(version: number, out: ByteWriter): void {
  out.int16(version === 0 ? 0 : UNSUPPORTED_VERSION);
  out.array(SERVED, ({ key, min, max }) => {
    out.int16(key).int16(min).int16(max);
  });
}

function answerMetadata(reader: ByteReader, out: ByteWriter): void {
  const asked = reader.array(() => reader.string() ?? '');
  out.int32(0).int32(1).int32(1).string('127.0.0.1').int32(port).string(null);
  out.string('sink').int32(1);
  out.array(asked, (name) => {
    const partitions = topics.get(name) ?? [];
    out.int16(topics.has(name) ? 0 : UNKNOWN_TOPIC_OR_PARTITION);
    out.string(name).int8(0);
    out.array([...partitions.keys()], (index) => {
      out.int16(0).int32(index).int32(1);
      out.int32(1).int32(1).int32(1).int32(1);
    });
  });
}

function answerCreateTopics(reader: ByteReader, out: ByteWriter): void {
  const names = reader.array(() => {
    const name = reader.string() ?? '';
    createTopic(name, reader.int32());
    reader.int16();
    reader.int32();
    reader.array(() => [reader.string(), reader.string()]);
    return name;
  });
  out.int32(0).array(names, (name) => {
    out.string(name).int16(0).string(null);
  });
}

function answerDeleteTopics(reader: ByteReader, out: ByteWriter): void {
  const names = reader.array(() => reader.string() ?? '');
  names.forEach(deleteTopic);
  out.int32(0).array(names, (name) => {
    out.string(name).int16(0);
  });
}

function answerListOffsets(reader: ByteReader, out: ByteWriter): void {
  reader.int32();
  const topicCount = reader.int32();
  out.int32(topicCount);
  for (let topic = 0; topic < topicCount; topic += 1) {
    const name = reader.string() ?? '';
    const asked = reader.array(() => ({ index: reader.int32(), timestamp: reader.int64() }));
    out.string(name).array(asked, ({ index }) => {
      const partition = topics.get(name)?.[index];
      const error = partition === undefined ? UNKNOWN_TOPIC_OR_PARTITION : 0;
      out
        .int32(index)
        .int16(error)
        .int64(-1)
        .int64(partition?.endOffset ?? -1);
    });
  }
}

function answerProduce(reader: ByteReader, version: number, out: ByteWriter): void {
  reader.string();
  reader.int16();
  reader.int32();
  const topicCount = reader.int32();
  out.int32(topicCount);
  for (let topic = 0; topic < topicCount; topic += 1) {
    const name = reader.string() ?? '';
    const partitionCount = reader.int32();
    out.string(name).int32(partitionCount);
    for (let count = 0; count < partitionCount; count += 1) {
      const index = reader.int32();
      const partition = topics.get(name)?.[index];
      const batch = reader.bytes();
      const baseOffset = partition?.endOffset ?? -1;
      const error = partition === undefined ? UNKNOWN_TOPIC_OR_PARTITION : append(partition, batch);
      out.int32(index).int16(error).int64(baseOffset).int64(-1);
      if (version >= 5) out.int64(0);
    }
  }
  out.int32(0);
}

/** The broker's whole work on a batch; returns an error code. */
function append(partition: Partition, batch: Buffer): number {
  if (batch.length < BATCH_HEADER_BYTES) return CORRUPT_MESSAGE;
  const crc = batch.readUInt32BE(BatchField.crc);
  if (crc32c(batch.subarray(BatchField.attributes)) !== crc) return CORRUPT_MESSAGE;
  const offset = partition.endOffset;
  batch.writeUInt32BE(Math.floor(offset / 0x1_0000_0000), BatchField.baseOffset);
  batch.writeUInt32BE(offset % 0x1_0000_0000, BatchField.baseOffset + 4);
  batch.writeInt32BE(0, BatchField.leaderEpoch);
  const written = writeSync(partition.fd, batch, 0, batch.length);
  if (written !== batch.length) throw new Error(`short write: ${written} of ${batch.length}`);
  partition.endOffset += batch.readInt32BE(BatchField.lastOffsetDelta) + 1;
  return 0;
}

function answer(frame: Buffer): Buffer {
  const reader = new ByteReader(frame);
  const key = reader.int16();
  const version = reader.int16();
  const out = new ByteWriter().int32(reader.int32());
  reader.string();
  if (key === ApiKey.produce) answerProduce(reader, version, out);
  else if (key === ApiKey.apiVersions) answerApiVersions(version, out);
  else if (key === ApiKey.metadata) answerMetadata(reader, out);
  else if (key === ApiKey.listOffsets) answerListOffsets(reader, out);
  else if (key === ApiKey.createTopics) answerCreateTopics(reader, out);
  else if (key === ApiKey.deleteTopics) answerDeleteTopics(reader, out);
  else throw new Error(`the sink does not serve API ${key}`);
  return out.frame();
}

/** Takes over a descriptor and serves it: one buffer, frames parsed where the kernel put them. */
function serve(fd: number): void {
  const buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES);
  /** Unparsed bytes are buffer[start, end). */
  let start = 0;
  let end = 0;
  const room = (): Buffer => {
    const frameEnd = end - start >= 4 ? start + 4 + buffer.readInt32BE(start) : end;
    return buffer.subarray(end, Math.min(BUFFER_BYTES, Math.max(frameEnd, end) + READ_AHEAD_BYTES));
  };
  const received = (bytes: number): boolean => {
    end += bytes;
    const answers: Buffer[] = [];
    while (end - start >= 4) {
      const frameEnd = start + 4 + buffer.readInt32BE(start);
      if (frameEnd > end) break;
      answers.push(answer(buffer.subarray(start + 4, frameEnd)));
      start = frameEnd;
    }
    if (start === end || start >= READ_AHEAD_BYTES) {
      buffer.copyWithin(0, start, end);
      end -= start;
      start = 0;
    }
    if (answers.length > 0)
      socket.write(answers.length === 1 ? answers[0]! : Buffer.concat(answers));
    return true;
  };
  const socket = new Socket({
    fd,
    readable: true,
    writable: true,
    onread: { buffer: room, callback: received },
  });
  socket.setNoDelay(true);
  socket.on('error', () => socket.destroy());
  socket.resume();
}

/** dup(2): the only way to give an accepted connection a read buffer of our choice. */
const dup = koffi.load('libc.so.6').func('int dup(int)') as (fd: number) => number;

const server = createServer({ pauseOnConnect: true }, (accepted) => {
  const { _handle: handle } = accepted as unknown as { _handle: { fd: number } };
  const fd = dup(handle.fd);
  accepted.destroy();
  if (fd >= 0) serve(fd);
});
server.listen(port, '127.0.0.1');
process.once('SIGTERM', () => process.exit(0));
