import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { crc32c } from '../../../engine/batch/crc.ts';
import { type BatchInput, encodeBatch } from '../../../engine/batch/encode.ts';
import { Codec, crcOf, maxTimestampOf, writeInt32 } from '../../../engine/batch/header.ts';
import {
  type BatchInfo,
  type BatchRules,
  newBatchInfo,
  recordErrorsMax,
} from '../../../engine/batch/rules.ts';
import { rewriteTimestamps } from '../../../engine/batch/stamp.ts';
import { validateProduceBatch } from '../../../engine/batch/validate.ts';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { easyRules } from './support.ts';

const test = suite('batch/validate');
const now = 1_700_000_000_000n;
const key = Buffer.from('k');
const value = Buffer.from('value');

function check(
  input: BatchInput,
  rules: Partial<BatchRules> = {},
): { code: ErrorCode; info: BatchInfo; bytes: Uint8Array } {
  const bytes = encodeBatch(input);
  const info = newBatchInfo();
  const code = validateProduceBatch(bytes, 0, bytes.length, { ...easyRules, ...rules }, info);
  return { code, info, bytes };
}

function recordsAt(...timestamps: bigint[]): BatchInput['records'] {
  return timestamps.map((timestamp) => ({ timestamp, key, value }));
}

for (const codec of [Codec.none, Codec.lz4]) {
  const name = codec === Codec.none ? 'plain' : 'compressed';

  test(`${name}: what the check found out`, () => {
    const { code, info } = check({
      records: recordsAt(now, now + 5n, now - 3n, now + 5n),
      codec,
      producerId: 2 ** 40,
      producerEpoch: 3,
      baseSequence: 2 ** 31 - 1,
      transactional: true,
    });
    assert.equal(code, ErrorCode.NONE);
    assert.deepEqual(info, {
      recordCount: 4,
      lastOffsetDelta: 3,
      baseTimestamp: now,
      maxTimestamp: now + 5n,
      offsetOfMaxTimestamp: 1,
      producerId: 2 ** 40,
      producerEpoch: 3,
      baseSequence: 2 ** 31 - 1,
      isTransactional: true,
      codec,
      timestampType: 'CreateTime',
      rewriteHeader: false,
      errorMessage: null,
      recordErrors: null,
    });
  });

  test(`${name}: a max timestamp that is unset or wrong is corrected`, () => {
    for (const stated of [-1n, now, now + 9n]) {
      const records = recordsAt(now, now + 5n);
      const { code, info, bytes } = check({ records, codec, maxTimestamp: stated });
      assert.equal(code, ErrorCode.NONE);
      assert.equal(info.maxTimestamp, now + 5n);
      assert.equal(info.rewriteHeader, true);
      rewriteTimestamps(bytes, 0, bytes.length, info.timestampType, info.maxTimestamp);
      assert.deepEqual(bytes, encodeBatch({ records, codec }));
    }
  });

  test(`${name}: no timestamp at all, and timestamps below -1, are no max timestamp`, () => {
    for (const timestamps of [
      [-1n, -1n],
      [-100n, -5n],
    ]) {
      const { code, info } = check({ records: recordsAt(...timestamps), codec });
      assert.equal(code, ErrorCode.NONE);
      assert.equal(info.maxTimestamp, -1n);
      assert.equal(info.offsetOfMaxTimestamp, -1);
    }
  });

  test(`${name}: timestamps beyond 2^53, and deltas beyond it, keep all bits`, () => {
    const far = 2n ** 63n - 1n;
    for (const timestamps of [
      [1_700_000_000_123_456_789n, 1_700_000_000_123_456_791n],
      [0n, 2n ** 53n + 1n],
      [0n, far, far - 1n],
      [far, far - 2n, 3n],
      [-(2n ** 63n), far, 0n],
    ]) {
      const { code, info } = check({ records: recordsAt(...timestamps), codec });
      assert.equal(code, ErrorCode.NONE);
      const largest = timestamps.toSorted((a, b) => (a < b ? -1 : 1)).at(-1)!;
      assert.equal(info.maxTimestamp, largest);
      assert.equal(info.offsetOfMaxTimestamp, timestamps.indexOf(largest));
      assert.equal(info.rewriteHeader, false);
    }
  });

  test(`${name}: LogAppendTime takes any timestamp and has the header rewritten`, () => {
    const rules = {
      timestampType: 'LogAppendTime',
      timestampBeforeMaxMs: 1,
      timestampAfterMaxMs: 1,
    } as const;
    const { code, info } = check({ records: recordsAt(5n, -1n, now * 2n), codec }, rules);
    assert.equal(code, ErrorCode.NONE);
    assert.equal(info.maxTimestamp, BigInt(easyRules.nowMs));
    assert.equal(info.offsetOfMaxTimestamp, 0);
    assert.equal(info.timestampType, 'LogAppendTime');
    assert.equal(info.rewriteHeader, true);
  });

  test(`${name}: timestamps too far from the clock are named one by one`, () => {
    const rules = { timestampBeforeMaxMs: 1_000, timestampAfterMaxMs: 500 };
    const atTheEdge = recordsAt(now - 1_000n, now + 500n, -1n);
    assert.equal(check({ records: atTheEdge, codec }, rules).code, ErrorCode.NONE);
    const beyond = recordsAt(now - 1_001n, now, -1n, now + 501n);
    const { code, info } = check({ records: beyond, codec }, rules);
    assert.equal(code, ErrorCode.INVALID_TIMESTAMP);
    assert.deepEqual(
      info.recordErrors?.map((error) => error.index),
      [0, 3],
    );
    assert.match(info.errorMessage ?? '', /2 of 4 records.*1699999998999 is out of range/);
  });

  test(`${name}: a compacted topic takes no record without a key`, () => {
    const records = [{ key, value }, { value }, { key: new Uint8Array(0) }, {}];
    assert.equal(check({ records, codec }).code, ErrorCode.NONE);
    const { code, info } = check({ records, codec }, { compacted: true, trustProducers: true });
    assert.equal(code, ErrorCode.INVALID_RECORD);
    assert.deepEqual(
      info.recordErrors?.map((error) => error.index),
      [1, 3],
    );
  });

  test(`${name}: the list of records at fault is bounded, their number is told`, () => {
    const records = Array.from({ length: 1_000 }, () => ({ value }));
    const { info } = check({ records, codec }, { compacted: true });
    assert.equal(info.recordErrors?.length, recordErrorsMax);
    assert.match(info.errorMessage ?? '', /^1000 of 1000 records/);
  });
}

test('a batch may be as large as max.message.bytes, and the checksum is not reached beyond', () => {
  const size = encodeBatch({ records: recordsAt(now) }).length;
  assert.equal(check({ records: recordsAt(now) }, { maxMessageBytes: size }).code, ErrorCode.NONE);
  const { code, info } = check({ records: recordsAt(now) }, { maxMessageBytes: size - 1 });
  assert.equal(code, ErrorCode.MESSAGE_TOO_LARGE);
  assert.match(info.errorMessage ?? '', /max\.message\.bytes/);
});

test('what decompresses to more than the limit is too large, so that clients split it', () => {
  const records = [{ value: new Uint8Array(100_000) }];
  for (const codec of [Codec.gzip, Codec.snappy, Codec.lz4, Codec.zstd]) {
    const { code } = check({ records, codec }, { decompressedMaxBytes: 100_000 });
    assert.equal(code, ErrorCode.MESSAGE_TOO_LARGE);
    assert.equal(check({ records, codec }, { decompressedMaxBytes: 100_100 }).code, ErrorCode.NONE);
  }
});

test('a trusted producer’s compressed records are not looked into, its plain ones are', () => {
  const rules = { trustProducers: true };
  const broken = encodeBatch({ records: recordsAt(now, now + 1n), codec: Codec.zstd });
  broken[70] = broken[70]! ^ 0xff;
  writeInt32(broken, 17, crc32c(broken.subarray(21)) | 0);
  const info = newBatchInfo();
  const validate = (with_: BatchRules): ErrorCode =>
    validateProduceBatch(broken, 0, broken.length, with_, info);
  assert.equal(validate(easyRules), ErrorCode.INVALID_RECORD);
  assert.equal(validate({ ...easyRules, ...rules }), ErrorCode.NONE);
  assert.equal(info.maxTimestamp, now + 1n);
  assert.equal(info.offsetOfMaxTimestamp, 1);
  const plain = encodeBatch({ records: recordsAt(now) });
  plain[61] = 0;
  writeInt32(plain, 17, crc32c(plain.subarray(21)) | 0);
  assert.equal(
    validateProduceBatch(plain, 0, plain.length, { ...easyRules, ...rules }, info),
    ErrorCode.INVALID_RECORD,
  );
  const late = check(
    { records: recordsAt(now + 10_000n), codec: Codec.zstd },
    { ...rules, timestampAfterMaxMs: 500 },
  );
  assert.equal(late.code, ErrorCode.INVALID_TIMESTAMP);
});

test('producer id, epoch and sequence belong together', () => {
  const records = recordsAt(now);
  const codeOf = (producerId: bigint, producerEpoch: number, baseSequence: number): ErrorCode =>
    check({ records, producerId, producerEpoch, baseSequence }).code;
  assert.equal(codeOf(0n, 0, 0), ErrorCode.NONE);
  assert.equal(codeOf(2n ** 53n - 1n, 32_767, 2 ** 31 - 1), ErrorCode.NONE);
  assert.equal(codeOf(-1n, -1, 0), ErrorCode.NONE);
  for (const [id, epoch, sequence] of [
    [-2n, 0, 0],
    [2n ** 53n, 0, 0],
    [2n ** 63n - 1n, 0, 0],
    [5n, -1, 0],
    [5n, 0, -1],
  ] as const) {
    assert.equal(codeOf(id, epoch, sequence), ErrorCode.INVALID_RECORD);
  }
});

test('an info is as good as new after a refusal, and says nothing of the batch before', () => {
  const info = newBatchInfo();
  const good = encodeBatch({ records: recordsAt(now) });
  const keyless = encodeBatch({ records: [{ value }] });
  const rules = { ...easyRules, compacted: true };
  validateProduceBatch(keyless, 0, keyless.length, rules, info);
  assert.notEqual(info.recordErrors, null);
  assert.equal(validateProduceBatch(good, 0, good.length, rules, info), ErrorCode.NONE);
  assert.equal(info.errorMessage, null);
  assert.equal(info.recordErrors, null);
});

test('the check changes nothing in the batch', () => {
  const bytes = encodeBatch({ records: recordsAt(now), maxTimestamp: 5n });
  const before = bytes.slice();
  validateProduceBatch(bytes, 0, bytes.length, easyRules, newBatchInfo());
  assert.deepEqual(bytes, before);
  assert.equal(maxTimestampOf(bytes, 0), 5n);
  assert.equal(crcOf(bytes, 0), crc32c(bytes.subarray(21)));
});

test.run();
