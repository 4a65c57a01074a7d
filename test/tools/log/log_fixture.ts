/** A log directory made by hand, as Kafka's formats say: two segments with indexes, epochs and checkpoints. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { encodeBatch } from '../../../engine/batch/encode.ts';
import type { Codec } from '../../../engine/batch/header.ts';
import { formatCheckpoint } from '../../../engine/log/checkpoint_text.ts';

/** Batches of three records; the second half of them in a second segment, under a later leader epoch. */
export const batchCount = 12;
const recordsEach = 3;
export const endOffset: number = batchCount * recordsEach;

interface Fixture {
  readonly dir: string;
  /** Path of a file of the partition orders-0. */
  file(name: string): string;
  remove(): void;
}

export interface FixtureOptions {
  readonly codec?: Codec;
  /** Default: stopped cleanly. */
  readonly isClean?: boolean;
}

export function makeLogDirectory({ codec, isClean = true }: FixtureOptions = {}): Fixture {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-log-'));
  const partition = join(dir, 'orders-0');
  mkdirSync(partition);
  for (const segment of [0, 1]) writeSegment(partition, segment, codec);
  const half = endOffset / 2;
  const own = { 'leader-epoch-checkpoint': ['0 0', `4 ${half}`] };
  for (const [name, lines] of Object.entries(own))
    writeFileSync(join(partition, name), formatCheckpoint(lines));
  const topicId = 'version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n';
  writeFileSync(join(partition, 'partition.metadata'), topicId);
  const marks = ['recovery-point-offset-checkpoint', 'replication-offset-checkpoint'];
  for (const name of marks)
    writeFileSync(join(dir, name), formatCheckpoint([`orders 0 ${endOffset}`]));
  writeFileSync(join(dir, 'log-start-offset-checkpoint'), formatCheckpoint(['orders 0 0']));
  writeFileSync(join(dir, 'meta.properties'), 'version=1\nnode.id=1\ncluster.id=x\n');
  if (isClean) writeFileSync(join(dir, '.kafka_cleanshutdown'), '');
  return {
    dir,
    file: (name) => join(partition, name),
    remove: () => rmSync(dir, { recursive: true, force: true }),
  };
}

export function segmentName(offset: number, suffix: string): string {
  return String(offset).padStart(20, '0') + suffix;
}

function writeSegment(partition: string, segment: number, codec: Codec | undefined): void {
  const half = batchCount / 2;
  const baseOffset = segment * half * recordsEach;
  const batches: Uint8Array[] = [];
  const index = Buffer.alloc((half - 1) * 8);
  const times = Buffer.alloc((half - 1) * 12);
  let position = 0;
  for (let number = 0; number < half; number += 1) {
    const first = baseOffset + number * recordsEach;
    const timestamp = BigInt(1_700_000_000_000 + first * 1_000);
    const records = Array.from({ length: recordsEach }, (_, at) => ({
      timestamp: timestamp + BigInt(at),
      key: Buffer.from(`key-${first + at}`),
      value: Buffer.from(`value-${first + at}`),
    }));
    const leaderEpoch = segment * 4;
    const batch = encodeBatch({
      records,
      baseOffset: first,
      leaderEpoch,
      ...(codec === undefined ? {} : { codec }),
    });
    batches.push(batch);
    const relative = (number + 1) * recordsEach - 1;
    if (number > 0) {
      index.writeInt32BE(relative, (number - 1) * 8);
      index.writeInt32BE(position, (number - 1) * 8 + 4);
      times.writeBigInt64BE(timestamp + BigInt(recordsEach - 1), (number - 1) * 12);
      times.writeInt32BE(relative, (number - 1) * 12 + 8);
    }
    position += batch.length;
  }
  const path = (suffix: string): string => join(partition, segmentName(baseOffset, suffix));
  writeFileSync(path('.log'), Buffer.concat(batches));
  writeFileSync(path('.index'), index);
  writeFileSync(path('.timeindex'), times);
}
