import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { suite } from 'uvu';
import {
  closingLine,
  type FileResult,
  findTests,
  parseCounts,
  runFile,
  runFiles,
  type Suite,
  suites,
} from '../../tools/test_runner.ts';

const test = suite('test_runner');
const root = mkdtempSync(join(tmpdir(), 'millrace-runner-'));
test.after(() => rmSync(root, { recursive: true, force: true }));

const uvu = `import { suite } from '${import.meta.resolve('uvu')}'; const test = suite('canary');`;

/** Runs `body` as a test file. */
async function run(body: string, timeoutMs = 30_000): Promise<FileResult> {
  const path = 'canary.test.ts';
  writeFileSync(join(root, path), `${uvu}\n${body}\n`);
  return runFile(root, path, timeoutMs);
}

test('a file whose tests pass passes, and its tests are counted', async () => {
  const result = await run(`
    test('one', () => {});
    test('two', async () => { await null; });
    test.skip('three', () => {});
    test.run();`);
  assert.equal(result.problem, null);
  assert.deepEqual([result.passed, result.failed, result.skipped], [2, 0, 1]);
});

test('canary: a failing test fails the file, and only that test counts as failed', async () => {
  const result = await run(`
    test('good', () => {});
    test('bad', () => { throw new Error('broken on purpose'); });
    test.run();`);
  assert.equal(result.problem, '1 of 2 tests failed');
  assert.deepEqual([result.passed, result.failed], [1, 1]);
  assert.match(result.output, /broken on purpose/);
});

test('canary: a file that forgets .run() fails', async () => {
  const result = await run(`test('never run', () => { throw new Error(); });`);
  assert.match(result.problem ?? '', /ran no test/);
  assert.deepEqual([result.passed, result.failed], [0, 1]);
});

test('canary: a file without any test fails', async () => {
  assert.match((await run('test.run();')).problem ?? '', /ran no test/);
});

test('canary: a throwing before hook fails all tests, which uvu alone would pass over', async () => {
  const result = await run(`
    test.before(() => { throw new Error('no set-up'); });
    test('one', () => {});
    test('two', () => {});
    test.run();`);
  assert.equal(result.problem, '2 of 2 tests failed');
});

test('canary: a hanging test is killed and fails', async () => {
  const result = await run(
    `test('hangs', () => new Promise((resolve) => setTimeout(resolve, 60_000))); test.run();`,
    400,
  );
  assert.match(result.problem ?? '', /^killed after/);
  assert.equal(result.failed, 1);
});

test('an interrupted run says what ran and what that had printed, and starts nothing more', async () => {
  const files = {
    'interrupting.test.ts': `
      test('hangs', () => new Promise(() => setInterval(() => {}, 1_000)));
      console.log('round 7');
      process.kill(process.ppid, 'SIGTERM');
      test.run();`,
    'never_run.test.ts': `test('one', () => {}); test.run();`,
  };
  for (const [path, body] of Object.entries(files))
    writeFileSync(join(root, path), `${uvu}\n${body}\n`);
  const script = `
    import { killAll, runFile, runFiles } from '${import.meta.resolve('../../tools/test_runner.ts')}';
    process.once('SIGTERM', killAll);
    const run = (path) => runFile('${root}', path, 60_000);
    console.log(JSON.stringify(await runFiles(${JSON.stringify(Object.keys(files))}, 1, run, () => {})));`;
  const { stdout } = await promisify(execFile)(process.execPath, [
    '--input-type=module',
    '--eval',
    script,
  ]);
  const results: FileResult[] = JSON.parse(stdout);
  assert.equal(results.length, 1);
  assert.match(results[0]?.problem ?? '', /^killed after \d+ s, with the whole run$/);
  assert.match(results[0]?.output ?? '', /round 7/);
  assert.equal(closingLine(results), '0 passed, 1 failed');
});

test('canary: a busy loop is killed and fails', async () => {
  const result = await run(`test('spins', () => { for (;;); }); test.run();`, 400);
  assert.match(result.problem ?? '', /^killed after/);
});

test('canary: a file that something keeps open fails, and the message says so', async () => {
  const result = await run(
    `test('one', () => {}); test.run(); setInterval(() => {}, 1000);`,
    1_500,
  );
  assert.match(result.problem ?? '', /something kept it open/);
  assert.deepEqual([result.passed, result.failed], [1, 1]);
});

test('canary: an exit in the middle fails the file', async () => {
  const result = await run(`test('leaves', () => process.exit(0)); test.run();`);
  assert.notEqual(result.problem, null);
});

test('canary: a crash outside of the tests fails the file', async () => {
  const result = await run(`throw new Error('cannot load');`);
  assert.equal(result.problem, 'exit code 1');
  assert.match(result.output, /cannot load/);
});

test('canary: a child that outlives its file is killed and fails it', async () => {
  const pidPath = join(root, 'pid');
  const result = await run(`
    import { spawn } from 'node:child_process';
    import { writeFileSync } from 'node:fs';
    test('leaks', () => {
      const child = spawn('sleep', ['60'], { stdio: 'ignore' });
      child.unref();
      writeFileSync('${pidPath}', String(child.pid));
    });
    test.run();`);
  assert.equal(result.problem, 'left processes behind');
  const pid = Number(readFileSync(pidPath, 'utf8'));
  for (let waited = 0; !isGone(pid); waited += 1) {
    assert(waited < 500, `process ${pid} is still there`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
});

/** Whether a process has ended; one that nobody has waited for yet has ended, too. */
function isGone(pid: number): boolean {
  try {
    return /^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return true;
  }
}

test('temporary files go with a file that passes, and stay for a look when it fails', async () => {
  const write = (then: string): string => `
    import { writeFileSync } from 'node:fs';
    import { tmpdir } from 'node:os';
    test('writes', () => {
      writeFileSync(tmpdir() + '/left', 'x');
      console.log('<' + tmpdir() + '>');
      ${then}
    });
    test.run();`;
  const folderOf = ({ output }: FileResult): string => /<(.*)>/.exec(output)?.[1] ?? '';
  const passed = folderOf(await run(write('')));
  assert.match(passed, /millrace-test-/);
  assert(!existsSync(passed));
  const result = await run(write(`throw new Error('on purpose');`));
  const failed = folderOf(result);
  assert.equal(readFileSync(join(failed, 'left'), 'utf8'), 'x');
  assert(result.output.endsWith(`its temporary files: ${failed}\n`));
  rmSync(failed, { recursive: true });
});

test('a test that prints a summary of its own does not change the count', async () => {
  const result = await run(`
    test('prints', () => console.log('  Total:     9\\n  Passed:    9\\n  Skipped:   0\\n'));
    test.run();`);
  assert.deepEqual([result.passed, result.problem], [1, null]);
});

test('counts are read through colours', () => {
  const output =
    '\n  Total:     3\u001b[31m\n  Passed:    2\u001b[39m\n  Skipped:   \u001b[33m1\u001b[39m\n';
  assert.deepEqual(parseCounts(output), { total: 3, passed: 2, skipped: 1 });
  assert.equal(parseCounts('Total: 3'), null);
});

test('suites share no file but what sim repeats with a bigger budget, and filters select by path', () => {
  const tree = join(root, 'tree');
  const paths = ['engine/ring.test.ts', 'compat/java.test.ts', 'scenario/kill.test.ts'];
  paths.push('sim/disk.test.ts', 'sim/all.long.test.ts', 'engine/ring_helper.ts');
  for (const path of paths) {
    mkdirSync(dirname(join(tree, 'test', path)), { recursive: true });
    writeFileSync(join(tree, 'test', path), '');
  }
  const find = (name: string, ...filters: string[]): string[] =>
    findTests(tree, suites[name] as Suite, filters);
  assert.deepEqual(find('unit'), ['test/engine/ring.test.ts', 'test/sim/disk.test.ts']);
  assert.deepEqual(find('compat'), ['test/compat/java.test.ts']);
  assert.deepEqual(find('scenario'), ['test/scenario/kill.test.ts']);
  assert.deepEqual(find('sim'), ['test/sim/all.long.test.ts', 'test/sim/disk.test.ts']);
  assert.deepEqual(find('unit', 'ring', 'slab'), ['test/engine/ring.test.ts']);
  assert.deepEqual(find('unit', './test/sim/disk.test.ts'), ['test/sim/disk.test.ts']);
});

test('at most `jobs` files run at once, and results keep their order', async () => {
  let now = 0;
  let most = 0;
  const run = async (path: string): Promise<FileResult> => {
    now += 1;
    most = Math.max(most, now);
    await new Promise((resolve) => setTimeout(resolve, path === 'a' ? 20 : 1));
    now -= 1;
    return resultOf(path, 1, 0);
  };
  const reported: string[] = [];
  const results = await runFiles(['a', 'b', 'c', 'd'], 2, run, ({ path }) => reported.push(path));
  assert.deepEqual(
    results.map(({ path }) => path),
    ['a', 'b', 'c', 'd'],
  );
  assert.equal(most, 2);
  assert.equal(reported.length, 4);
});

test('the closing line counts tests, and names skipped ones only if there are any', () => {
  assert.equal(closingLine([resultOf('a', 3, 0), resultOf('b', 1, 2)]), '4 passed, 2 failed');
  const skipped = { ...resultOf('c', 1, 0), skipped: 2 };
  assert.equal(closingLine([skipped]), '1 passed, 0 failed, 2 skipped');
});

function resultOf(path: string, passed: number, failed: number): FileResult {
  const problem = failed > 0 ? 'failed' : null;
  return { path, passed, failed, skipped: 0, problem, output: '', durationMs: 1 };
}

test.run();
