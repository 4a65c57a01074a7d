import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import { Codec } from '../../../engine/batch/header.ts';
import { endOffset, makeLogDirectory, segmentName } from './log_fixture.ts';

const test = suite('dump');
const fixture = makeLogDirectory({ codec: Codec.zstd });
test.after(() => fixture.remove());

function dump(...args: string[]): { readonly code: number | null; readonly out: string } {
  const entry = join(import.meta.dirname, '..', '..', '..', 'tools', 'millrace.ts');
  const result = spawnSync(process.execPath, [entry, 'log', 'dump', ...args], { encoding: 'utf8' });
  assert.equal(result.stderr, '');
  return { code: result.status, out: result.stdout };
}

interface DumpedBatch {
  readonly baseOffset: number;
  readonly codec: string;
  readonly records: readonly { readonly offset: number; readonly key: string; value: string }[];
}

test('a line a batch, under the name of each segment', () => {
  const { code, out } = dump(fixture.dir);
  assert.equal(code, 0);
  assert.equal(out.match(/\.log, \d+ B$/gm)?.length, 2);
  assert.match(
    out,
    /^0\.\.2 {2}3 records {2}\d+ B at 0 {2}zstd {2}2023-11-14T22:13:20\.002Z {2}epoch 0$/m,
  );
  assert.equal(out.match(/ 3 records /g)?.length, 12);
});

test('records of a range of offsets, as JSON, with their bytes in the form that is asked for', () => {
  const lines = dump(
    fixture.dir,
    '--records',
    '--from',
    '16',
    '--to',
    '20',
    '--json',
    '-f',
    'hex',
  ).out;
  const batches = lines
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as DumpedBatch);
  const records = batches.flatMap((batch) => batch.records);
  assert.deepEqual(
    records.map(({ offset }) => offset),
    [16, 17, 18, 19],
  );
  assert.equal(records[0]?.value, Buffer.from('value-16').toString('hex'));
  assert.equal(batches[0]?.codec, 'zstd');
});

test('a record a line for people', () => {
  const { out } = dump(fixture.file(segmentName(0, '.log')), '--records', '--to', '1');
  assert.match(out, /^ {2}0 {2}2023-11-14T22:13:20\.000Z {2}"key-0" {2}"value-0"$/m);
  assert.equal(out.match(/"key-/g)?.length, 1);
});

test('damage is shown in its place, and what follows is dumped', () => {
  const path = fixture.file(segmentName(0, '.log'));
  const sound = readFileSync(path);
  const bytes = Buffer.from(sound);
  bytes[90] = ~(bytes[90] as number) & 0xff;
  writeFileSync(path, bytes);
  try {
    const { code, out } = dump(path, '--records');
    assert.equal(code, 4);
    assert.match(
      out,
      /^DAMAGE at byte 0, \d+ bytes, offsets from 0: the checksum does not match$/m,
    );
    assert.equal(out.match(/"key-/g)?.length, endOffset / 2 - 3);
  } finally {
    writeFileSync(path, sound);
  }
});

test.run();
