/** The produce path's work on a batch: the check, the framing walk alone, and stamping. */
import { type BatchInput, encodeBatch } from '../../engine/batch/encode.ts';
import { batchHeaderBytes, Codec } from '../../engine/batch/header.ts';
import { iterateRecords } from '../../engine/batch/records.ts';
import { type BatchRules, newBatchInfo } from '../../engine/batch/rules.ts';
import { rewriteTimestamps, stampBatch } from '../../engine/batch/stamp.ts';
import { validateProduceBatch } from '../../engine/batch/validate.ts';
import { newRecordWalk, walkRecords } from '../../engine/batch/walk.ts';
import { type Benchmark, consume, type Suite } from '../micro/benchmark.ts';
import { textBytes } from '../micro/payload.ts';

const nowMs = 1_700_000_000_000;
const rules: BatchRules = {
  maxMessageBytes: 2 * 1024 * 1024,
  timestampType: 'CreateTime',
  timestampBeforeMaxMs: Number.MAX_VALUE,
  timestampAfterMaxMs: 3_600_000,
  compacted: false,
  nowMs,
  decompressedMaxBytes: 16 * 1024 * 1024,
  trustProducers: false,
  isInternal: false,
};

export function openBatchSuite(): Suite {
  const benchmarks = [
    validation('1 MB, 1 KB records', batchOf(1_000, 1_000, Codec.none), 1_000, 'native'),
    validation('1 MB, 100 B records', batchOf(10_000, 100, Codec.none), 10_000, 'script'),
    validation('8 KB, 100 B records', batchOf(80, 100, Codec.none), 80, 'script'),
    validation('one record of 100 B', batchOf(1, 100, Codec.none), 1, 'script'),
    validation('8 KB, 100 B records, gzip', batchOf(80, 100, Codec.gzip), 80, 'script'),
    validation('8 KB, 100 B records, snappy', batchOf(80, 100, Codec.snappy), 80, 'script'),
    validation('8 KB, 100 B records, lz4', batchOf(80, 100, Codec.lz4), 80, 'script'),
    validation('8 KB, 100 B records, zstd', batchOf(80, 100, Codec.zstd), 80, 'script'),
    validation('1 MB, 1 KB records, lz4', batchOf(1_000, 1_000, Codec.lz4), 1_000, 'script'),
    walking(batchOf(80, 100, Codec.none), 80),
    stamping(batchOf(1, 100, Codec.none)),
    appendTime(batchOf(1_000, 1_000, Codec.none)),
    reading(batchOf(80, 100, Codec.none), 80),
  ];
  return { benchmarks, close: () => undefined };
}

/** A batch in shared memory, where the produce path has it. */
function batchOf(count: number, valueBytes: number, codec: Codec): Uint8Array {
  const text = textBytes(count * valueBytes);
  const records = Array.from({ length: count }, (_, k) => ({
    timestamp: BigInt(nowMs + (k >> 3)),
    value: text.subarray(k * valueBytes, (k + 1) * valueBytes),
  }));
  const input: BatchInput = {
    records,
    codec,
    producerId: 4_711,
    producerEpoch: 0,
    baseSequence: 0,
  };
  const batch = encodeBatch(input);
  const shared = new Uint8Array(new SharedArrayBuffer(batch.length));
  shared.set(batch);
  return shared;
}

function validation(
  name: string,
  batch: Uint8Array,
  count: number,
  calibration: Benchmark['calibration'],
): Benchmark {
  const info = newBatchInfo();
  return {
    name: `batch: validate ${name}`,
    calibration,
    items: { count, of: 'record' },
    run: () => {
      const code = validateProduceBatch(batch, 0, batch.length, rules, info);
      if (code !== 0) throw new Error(`${code}: ${info.errorMessage}`);
    },
  };
}

function walking(batch: Uint8Array, count: number): Benchmark {
  const walk = newRecordWalk();
  return {
    name: 'batch: walk 8 KB, 100 B records',
    calibration: 'script',
    items: { count, of: 'record' },
    run: () => consume(walkRecords(batch, batchHeaderBytes, batch.length, count, walk)),
  };
}

function stamping(batch: Uint8Array): Benchmark {
  let offset = 0;
  return {
    name: 'batch: stamp offset and epoch',
    calibration: 'script',
    run: () => stampBatch(batch, 0, offset++, 3),
  };
}

function appendTime(batch: Uint8Array): Benchmark {
  let now = BigInt(nowMs);
  return {
    name: 'batch: stamp LogAppendTime, 1 MB',
    calibration: 'script',
    run: () => rewriteTimestamps(batch, 0, batch.length, 'LogAppendTime', now++),
  };
}

function reading(batch: Uint8Array, count: number): Benchmark {
  return {
    name: 'batch: read 8 KB as objects',
    calibration: 'script',
    items: { count, of: 'record' },
    run: () => {
      for (const record of iterateRecords(batch, 0, rules.decompressedMaxBytes)) {
        consume(record.offsetDelta);
      }
    },
  };
}
