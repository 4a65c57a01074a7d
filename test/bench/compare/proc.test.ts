import assert from 'node:assert/strict';
import { suite } from 'uvu';
import {
  clientCpuMs,
  parseMachineTime,
  parseStat,
  parseStatusMiB,
  readRssMiB,
  readStat,
} from '../../../bench/compare/proc.ts';

const test = suite('bench/compare/proc');

const LINE =
  '4242 (java) S 1 4242 4242 0 -1 4194304 900 7 1 0 1234 566 30 4 20 0 87 0 5000 3000000 99000 184467';

test('a line of /proc/<pid>/stat: ticks of 10 ms', () => {
  assert.deepEqual(parseStat(LINE), {
    pid: 4242,
    name: 'java',
    state: 'S',
    cpuMs: 18_000,
    childrenCpuMs: 340,
    threads: 87,
  });
});

test('a process name with spaces and parentheses moves no field', () => {
  const stat = parseStat(LINE.replace('(java)', '(a b) R 1 (c)'));
  assert.equal(stat.name, 'a b) R 1 (c');
  assert.equal(stat.cpuMs, 18_000);
});

test('something else is refused', () => {
  assert.throws(() => parseStat(''), /not a line/);
  assert.throws(() => parseStat('1 (init) S 0'), /field \d+ is missing/);
});

test('sizes of /proc/<pid>/status come in MiB', () => {
  const text = 'Name:\tnode\nVmHWM:\t  204800 kB\nVmRSS:\t  102400 kB\nThreads:\t11\n';
  assert.equal(parseStatusMiB(text, 'VmRSS'), 100);
  assert.equal(parseStatusMiB(text, 'VmHWM'), 200);
  assert.throws(() => parseStatusMiB('Name:\tkthreadd\n', 'VmRSS'), /VmRSS is missing/);
});

test('busy time leaves out idle, waiting for disks, and what the host stole', () => {
  const text = 'cpu  100 20 30 9000 800 1 2 3 50 0\ncpu0 1 2 3 4 5 6 7 8 9 0\n';
  assert.deepEqual(parseMachineTime(text), { busyMs: 1_530, stolenMs: 30 });
  assert.throws(() => parseMachineTime('intr 5'), /not \/proc\/stat/);
});

test('the live files parse', () => {
  assert.equal(readStat(process.pid).pid, process.pid);
  assert.ok(readRssMiB(process.pid) > 1);
  assert.ok(clientCpuMs() > 0);
});

test.run();
