/** `millrace log dump`: prints the batches of segments and, if asked, the records in them. */
import { closeSync, openSync } from 'node:fs';
import { CompressionError } from '../../engine/batch/compression_error.ts';
import {
  attributeBits,
  baseSequenceOf,
  codecOf,
  hasAttribute,
  leaderEpochOf,
  maxTimestampOf,
  producerEpochOf,
  producerIdOf,
  recordCountOf,
} from '../../engine/batch/header.ts';
import { BatchFormatError, type BatchRecord } from '../../engine/batch/records.ts';
import { type ByteFormat, encodedBytes, quotedBytes } from '../cli/bytes_text.ts';
import { CliExit } from '../cli/exit_code.ts';
import { createOutput, type Output } from '../cli/output.ts';
import { byteText, countText } from '../cli/quantity.ts';
import { colour, jsonText } from '../cli/terminal.ts';
import { timeText } from '../cli/time.ts';
import { type DecodedRecord, decodeRecord } from './decode.ts';
import { findLogs, LogPathError, type PartitionFiles, type SegmentFile } from './log_files.ts';
import { recordsOf, type ScannedBatch, scanSegment, wholeBatch } from './segment_scan.ts';

export interface DumpOptions {
  readonly topic?: readonly string[];
  readonly records?: boolean;
  readonly decode: boolean;
  readonly format: ByteFormat;
  readonly from?: number;
  readonly to?: number;
  readonly json?: boolean;
}

export async function runDump(paths: readonly string[], options: DumpOptions): Promise<void> {
  const output = createOutput();
  try {
    const partitions = paths.flatMap((path) => findLogs(path).partitions);
    for (const partition of partitions) {
      if (options.topic !== undefined && !options.topic.includes(partition.topic)) continue;
      if (!(await dumpPartition(partition, options, output))) return;
    }
    await output.flush();
  } catch (error) {
    if (!(error instanceof LogPathError)) throw error;
    process.stderr.write(`millrace: ${error.message}\n`);
    process.exitCode = CliExit.usage;
  }
}

async function dumpPartition(
  partition: PartitionFiles,
  options: DumpOptions,
  output: Output,
): Promise<boolean> {
  const { from = 0, to = Number.POSITIVE_INFINITY } = options;
  const { segments } = partition;
  for (const [number, file] of segments.entries()) {
    if ((segments[number + 1]?.baseOffset ?? Number.POSITIVE_INFINITY) <= from) continue;
    if (file.baseOffset >= to) break;
    if (!(await dumpSegment(partition, file, options, output))) return false;
  }
  return true;
}

async function dumpSegment(
  { topic }: PartitionFiles,
  file: SegmentFile,
  options: DumpOptions,
  output: Output,
): Promise<boolean> {
  const { from = 0, to = Number.POSITIVE_INFINITY } = options;
  const heading = `${file.path}, ${byteText(file.size)}\n`;
  if (options.json !== true && !(await output.write(colour('bold', heading)))) return false;
  const fd = openSync(file.path, 'r');
  try {
    for (const found of scanSegment(file, fd)) {
      let text = '';
      if (found.isDamage) {
        process.exitCode = CliExit.damaged;
        text = damageText(file, found, options);
      } else if (found.lastOffset >= from && found.baseOffset < to)
        text = batchText({ topic, file, fd, batch: found }, options);
      if (text !== '' && !(await output.write(text))) return false;
    }
    return true;
  } finally {
    closeSync(fd);
  }
}

interface DamageFound {
  readonly position: number;
  readonly length: number;
  readonly fromOffset: number;
  readonly problem: string;
}

function damageText(file: SegmentFile, found: DamageFound, { json }: DumpOptions): string {
  const { position, length, fromOffset, problem } = found;
  if (json === true)
    return `${jsonText({ path: file.path, position, length, fromOffset, damage: problem })}\n`;
  const text = `DAMAGE at byte ${position}, ${countText(length, 'byte')}, offsets from ${fromOffset}: ${problem}`;
  return `${colour('red', text)}\n`;
}

interface BatchPlace {
  readonly topic: string;
  readonly file: SegmentFile;
  readonly fd: number;
  readonly batch: ScannedBatch;
}

function batchText(place: BatchPlace, options: DumpOptions): string {
  const shown = describeBatch(place.batch);
  const isJson = options.json === true;
  const records = options.records === true ? readRecords(place, shown.isControl, options) : null;
  if (isJson) {
    const { path } = place.file;
    return `${jsonText({ path, ...shown, ...(records === null ? {} : { records }) })}\n`;
  }
  const lines = [headerLine(shown)];
  if (typeof records === 'string') lines.push(`  ${colour('red', records)}`);
  else for (const record of records ?? []) lines.push(`  ${record}`);
  return `${lines.join('\n')}\n`;
}

interface BatchDescription {
  readonly baseOffset: number;
  readonly lastOffset: number;
  readonly position: number;
  readonly size: number;
  readonly count: number;
  readonly codec: string;
  readonly maxTimestamp: bigint;
  readonly timestampType: 'CreateTime' | 'LogAppendTime';
  readonly leaderEpoch: number;
  readonly producerId: number;
  readonly producerEpoch: number;
  readonly baseSequence: number;
  readonly isTransactional: boolean;
  readonly isControl: boolean;
}

const codecNames = ['none', 'gzip', 'snappy', 'lz4', 'zstd'] as const;

function describeBatch(batch: ScannedBatch): BatchDescription {
  const { buffer, at, baseOffset, lastOffset, position, size } = batch;
  const codec = codecOf(buffer, at);
  const has = (bit: number): boolean => hasAttribute(buffer, at, bit);
  return {
    baseOffset,
    lastOffset,
    position,
    size,
    count: recordCountOf(buffer, at),
    codec: codecNames[codec] ?? `codec ${codec}`,
    maxTimestamp: maxTimestampOf(buffer, at),
    timestampType: has(attributeBits.logAppendTime) ? 'LogAppendTime' : 'CreateTime',
    leaderEpoch: leaderEpochOf(buffer, at),
    producerId: producerIdOf(buffer, at),
    producerEpoch: producerEpochOf(buffer, at),
    baseSequence: baseSequenceOf(buffer, at),
    isTransactional: has(attributeBits.transactional),
    isControl: has(attributeBits.control),
  };
}

function headerLine(shown: BatchDescription): string {
  const { baseOffset, lastOffset, position, size, count, codec, leaderEpoch, producerId } = shown;
  const parts = [
    colour('cyan', `${baseOffset}..${lastOffset}`),
    countText(count, 'record'),
    `${size} B at ${position}`,
    codec,
    timeText(shown.maxTimestamp),
    `epoch ${leaderEpoch}`,
  ];
  if (producerId >= 0)
    parts.push(`producer ${producerId}/${shown.producerEpoch} seq ${shown.baseSequence}`);
  if (shown.timestampType === 'LogAppendTime') parts.push('LogAppendTime');
  if (shown.isTransactional) parts.push('transactional');
  if (shown.isControl) parts.push('control');
  return parts.join('  ');
}

/** Objects for JSON, lines for people, or what is wrong with them. */
function readRecords(
  place: BatchPlace,
  isControl: boolean,
  options: DumpOptions,
): string | unknown[] {
  const { topic, fd, batch } = place;
  const { from = 0, to = Number.POSITIVE_INFINITY } = options;
  const { bytes, at } = wholeBatch(batch, fd);
  const shown: unknown[] = [];
  try {
    for (const record of recordsOf(bytes, at)) {
      const offset = batch.baseOffset + record.offsetDelta;
      if (offset < from || offset >= to) continue;
      const decoded = options.decode ? decodeRecord(topic, isControl, record) : null;
      shown.push(
        options.json === true
          ? { ...recordObject(offset, record, options.format), ...(decoded ?? {}) }
          : recordLine(offset, record, decoded, options.format),
      );
    }
    return shown;
  } catch (error) {
    if (!(error instanceof BatchFormatError || error instanceof CompressionError)) throw error;
    process.exitCode = CliExit.damaged;
    return error.message;
  }
}

function recordObject(offset: number, record: BatchRecord, format: ByteFormat): object {
  const text = (bytes: Uint8Array | null): string | null =>
    bytes === null ? null : encodedBytes(bytes, format);
  const headers = record.headers.map(({ key, value }) => [encodedBytes(key, 'text'), text(value)]);
  const { timestamp, key, value } = record;
  return { offset, timestamp, key: text(key), value: text(value), headers };
}

function recordLine(
  offset: number,
  record: BatchRecord,
  decoded: DecodedRecord | null,
  format: ByteFormat,
): string {
  const parts = [colour('dim', String(offset)), timeText(record.timestamp)];
  if (decoded === null)
    parts.push(quotedBytes(record.key, format), quotedBytes(record.value, format));
  else {
    parts.push(decoded.type);
    if (decoded.key !== undefined) parts.push(jsonText(decoded.key));
    parts.push(decoded.value === null ? 'null' : jsonText(decoded.value));
  }
  for (const { key, value } of record.headers)
    parts.push(`${quotedBytes(key, 'text')}: ${quotedBytes(value, format)}`);
  return parts.join('  ');
}
