import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { appendFileSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import { Codec } from '../../../engine/batch/header.ts';
import type { Finding } from '../../../tools/log/finding.ts';
import { findLogs, LogPathError } from '../../../tools/log/log_files.ts';
import { verify } from '../../../tools/log/verify.ts';
import { batchCount, endOffset, makeLogDirectory, segmentName } from './log_fixture.ts';

const test = suite('verify');
const firstLog = segmentName(0, '.log');
const secondBase = endOffset / 2;

type Change = (file: (name: string) => string, dir: string) => void;

/** What is found after a change to a sound directory. */
function findingsAfter(change: Change, options = {}): readonly Finding[] {
  const fixture = makeLogDirectory(options);
  try {
    change(fixture.file, fixture.dir);
    return verify([findLogs(fixture.dir)], []).findings;
  } finally {
    fixture.remove();
  }
}

function flip(path: string, position: number, mask = 0xff): void {
  const bytes = readFileSync(path);
  bytes[position] = (bytes[position] as number) ^ mask;
  writeFileSync(path, bytes);
}

/** Severity and text of the only finding. */
function only(findings: readonly Finding[]): Finding {
  assert.equal(findings.length, 1, JSON.stringify(findings, null, 1));
  return findings[0] as Finding;
}

test('a sound directory has no findings, in every codec', () => {
  for (const codec of Object.values(Codec)) {
    const fixture = makeLogDirectory({ codec });
    try {
      const { findings, partitions } = verify([findLogs(fixture.dir)], []);
      assert.deepEqual(findings, []);
      const [one] = partitions;
      assert.deepEqual(
        [one?.segments, one?.batches, one?.records, one?.firstOffset, one?.endOffset],
        [2, 12, 36, 0, endOffset],
      );
    } finally {
      fixture.remove();
    }
  }
});

test('what a broker adds after the segments were found, with its index entries, is no damage', () => {
  const fixture = makeLogDirectory({ isClean: false });
  try {
    const path = fixture.file(segmentName(secondBase, '.log'));
    const whole = readFileSync(path);
    truncateSync(path, whole.length - whole.length / (batchCount / 2));
    const found = findLogs(fixture.dir);
    writeFileSync(path, whole);
    assert.deepEqual(verify([found], []).findings, []);
  } finally {
    fixture.remove();
  }
});

test('no byte of a batch can change without being noticed, be it the first or the last one', () => {
  const fixture = makeLogDirectory();
  try {
    const path = fixture.file(firstLog);
    const sound = readFileSync(path);
    const batchBytes = sound.length / (batchCount / 2);
    for (let position = 0; position < sound.length; position += 1) {
      if (position === batchBytes) position = sound.length - batchBytes;
      const bytes = Buffer.from(sound);
      bytes[position] = (sound[position] as number) ^ (1 << (position % 8));
      writeFileSync(path, bytes);
      const { findings } = verify([findLogs(fixture.dir)], []);
      const bad = findings.filter(({ severity }) => severity !== 'note');
      assert(bad.length > 0, `byte ${position} of ${sound.length}`);
    }
  } finally {
    fixture.remove();
  }
});

test('a damaged batch is named with its place, and what follows is read', () => {
  const one = only(findingsAfter((file) => flip(file(firstLog), 200)));
  const size = one.length as number;
  assert.equal(one.severity, 'damage');
  assert.equal(one.position, Math.floor(200 / size) * size);
  assert.match(one.problem, /checksum/);
  assert.equal((one.toOffset as number) - (one.fromOffset as number), 3);
  assert.match(one.remedy ?? '', /another replica/);
});

test('a base offset, which no checksum covers, is compared with what follows', () => {
  const one = only(findingsAfter((file) => flip(file(firstLog), 6, 0x01)));
  assert.match(one.problem, /base offset 256 does not fit between 0 and what follows/);
});

test('a torn end is a note after a crash, and damage after a clean stop', () => {
  const tear: Change = (file, dir) => {
    truncateSync(
      file(segmentName(secondBase, '.log')),
      readFileSync(file(segmentName(secondBase, '.log'))).length - 10,
    );
    const mark = `0\n1\norders 0 ${secondBase}\n`;
    for (const name of ['recovery-point-offset-checkpoint', 'replication-offset-checkpoint'])
      writeFileSync(join(dir, name), mark);
  };
  assert(findingsAfter(tear).some(({ severity }) => severity === 'damage'));
  const after = findingsAfter(tear, { isClean: false });
  assert.deepEqual(
    after.filter(({ path }) => path.endsWith('.log')).map(({ severity }) => severity),
    ['note'],
  );
});

test('a segment that is gone leaves a hole, unless the log is compacted', () => {
  const drop: Change = (file) => truncateSync(file(firstLog), 0);
  const one = only(findingsAfter(drop).filter(({ severity }) => severity === 'damage'));
  assert.deepEqual([one.fromOffset, one.toOffset], [0, secondBase]);
  const compacted: Change = (file, dir) => {
    drop(file, dir);
    for (const suffix of ['.index', '.timeindex']) rmSync(file(segmentName(0, suffix)));
    writeFileSync(join(dir, 'cleaner-offset-checkpoint'), '0\n1\norders 0 18\n');
  };
  assert.deepEqual(findingsAfter(compacted), []);
});

/** A change, the kind of the finding that it makes, and what is said. */
const rebuildable: [string, Change, RegExp][] = [
  ['position', (file) => flip(file(segmentName(0, '.index')), 7, 1), /where no batch begins/],
  ['offset', (file) => flip(file(segmentName(0, '.index')), 2), /offset/],
  ['size', (file) => appendFileSync(file(segmentName(0, '.index')), 'abc'), /no whole number/],
  ['time', (file) => flip(file(segmentName(0, '.timeindex')), 7, 1), /timestamp/],
  ['late', (file) => flip(file(segmentName(0, '.timeindex')), 19), /timestamp \d+ up to offset 8/],
  [
    'epoch',
    (file) => writeFileSync(file('leader-epoch-checkpoint'), '0\n1\n0 0\n'),
    /says leader epoch 0 for offset 18, and the batch there has 4/,
  ],
  ['cut', (file) => writeFileSync(file('leader-epoch-checkpoint'), '0\n2\n0 0\n'), /cut short/],
  [
    'producers',
    (file) => writeFileSync(file(segmentName(endOffset, '.snapshot')), 'x'),
    /version, size or checksum/,
  ],
  [
    'checkpoint',
    (_, dir) => writeFileSync(join(dir, 'log-start-offset-checkpoint'), '0\n3\n'),
    /cut short/,
  ],
  ['missing', (file) => rmSync(file(segmentName(0, '.index'))), /is missing/],
];

test('indexes, epochs and checkpoints that disagree can be made again', () => {
  for (const [name, change, text] of rebuildable) {
    const one = only(findingsAfter(change));
    assert.equal(one.severity, 'rebuildable', name);
    assert.match(one.problem, text, name);
    assert(one.remedy !== null, name);
  }
});

test("Kafka's preallocated index is a note", () => {
  const one = only(
    findingsAfter((file) => appendFileSync(file(segmentName(18, '.index')), Buffer.alloc(800))),
  );
  assert.deepEqual([one.severity, one.length], ['note', 800]);
});

test('an end that the checkpoints remember and the log lacks is damage', () => {
  const change: Change = (file) => truncateSync(file(segmentName(secondBase, '.log')), 0);
  const texts = findingsAfter(change)
    .filter(({ severity }) => severity === 'damage')
    .map(({ problem }) => problem);
  assert.deepEqual(texts, [
    'the log ends at 18, and the recovery point in the checkpoint is 36: its end is missing',
    'the log ends at 18, and the high watermark in the checkpoint is 36: its end is missing',
  ]);
});

test('a path that is no log directory is refused', () => {
  assert.throws(() => findLogs('/no/such/place'), LogPathError);
  assert.throws(() => findLogs(import.meta.dirname), /is no log directory/);
  assert.throws(() => findLogs(import.meta.filename), /is no segment/);
});

test('the command says what it found, for people and for programs', () => {
  const fixture = makeLogDirectory();
  const run = (...args: string[]): ReturnType<typeof spawnSync> => {
    const entry = join(import.meta.dirname, '..', '..', '..', 'tools', 'millrace.ts');
    return spawnSync(process.execPath, [entry, 'log', 'verify', ...args], { encoding: 'utf8' });
  };
  try {
    const sound = run(fixture.dir);
    assert.deepEqual([sound.status, sound.stderr], [0, '']);
    assert.match(String(sound.stdout), /^orders +1 +2 +12 +36 .*\n\nno damage, 0 rebuildable/m);
    flip(fixture.file(firstLog), 100);
    const damaged = run(fixture.file(firstLog), '--json');
    assert.equal(damaged.status, 4);
    const { ok, findings } = JSON.parse(String(damaged.stdout)) as {
      ok: boolean;
      findings: Finding[];
    };
    assert.deepEqual([ok, findings[0]?.severity], [false, 'damage']);
    assert.match(
      String(run(fixture.dir).stdout),
      /^damage {2}.*\.log, byte 0, \d+ bytes, offsets 0 to 2$/m,
    );
    const missing = run('/no/such/place');
    assert.equal(missing.status, 2);
    assert.match(String(missing.stderr), /^millrace: \/no\/such\/place: there is no such file/);
  } finally {
    fixture.remove();
  }
});

test.run();
