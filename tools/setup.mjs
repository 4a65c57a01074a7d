/**
 * Makes node_modules match package-lock.json, and does nothing when it already does.
 *
 * Runs as the `pre` step of every npm script, so it is plain JavaScript for whatever Node the machine
 * has (18 or newer): the pinned Node that everything else needs is one of the packages installed here, and npm
 * puts it first on PATH for the step that follows. All it says goes to stderr, because stdout belongs to
 * the command that the user asked for.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, lstatSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ATTEMPTS_MAX = 3;
const RUNTIME_MAJOR_MIN = 24;

/** Where the state of an installation is remembered: the hash of the lockfile it was made from. */
const stampPath = (root) => join(root, 'node_modules', '.setup-stamp');

/** The stamp that a complete installation for this lockfile and platform carries. */
export function stampFor(lockText) {
  const hash = createHash('sha256').update(lockText).digest('hex');
  return `${hash} ${process.platform}-${process.arch}\n`;
}

/**
 * Whether what npm says it installed (its hidden lockfile) is what the lockfile asks for. Lets an
 * installation made by hand with `npm ci` or `npm install` stand, instead of doing it again.
 * Packages for other platforms are marked optional and may be absent; the pinned runtime may not.
 */
export function isInstalled(lock, hidden, runtimeName) {
  const installed = hidden.packages ?? {};
  for (const [path, wanted] of Object.entries(lock.packages ?? {})) {
    if (path === '') continue;
    const found = installed[path];
    if (found === undefined) {
      if (wanted.optional === true && path !== `node_modules/${runtimeName}`) continue;
      return false;
    }
    if (found.version !== wanted.version || found.integrity !== wanted.integrity) return false;
  }
  return true;
}

/** The package that holds the pinned runtime for this platform, or null where there is none. */
export function runtimePackage(lock, platform, arch) {
  const name = `node-${platform}-${arch}`;
  return lock.packages?.[`node_modules/${name}`] === undefined ? null : name;
}

/** Says what went wrong and what to do about it, and ends with exit code 1. */
function fail(what, remedy) {
  process.stderr.write(`setup: ${what}\nsetup: ${remedy}\n`);
  process.exit(1);
}

function checkRuntime(root, runtimeName) {
  const binary =
    runtimeName === null ? process.execPath : join(root, 'node_modules', '.bin', 'node');
  const result = spawnSync(binary, ['--version'], { encoding: 'utf8' });
  const major = Number(/^v(\d+)\./.exec(result.stdout ?? '')?.[1] ?? 0);
  if (major >= RUNTIME_MAJOR_MIN) return;
  const platform = `${process.platform}-${process.arch}`;
  if (runtimeName === null) {
    fail(
      `there is no pinned Node.js for ${platform}, and the one on PATH is ${process.version}.`,
      `install Node.js ${RUNTIME_MAJOR_MIN} or newer, put it first on PATH and run the command again.`,
    );
  }
  fail(
    `the pinned Node.js (package ${runtimeName}) does not run here: ${result.error?.message ?? (result.stderr || `exit ${result.status}`).trim()}.`,
    'it needs a Linux with glibc 2.28 or newer. On another system, run tools/millrace.ts with a Node.js 24 of your own.',
  );
}

function npmCommand() {
  const script = process.env['npm_execpath'];
  if (script !== undefined && /\.[cm]?js$/.test(script)) return [process.execPath, [script]];
  return ['npm', []];
}

function install(root) {
  const [command, prefix] = npmCommand();
  const flags = ['ci', '--ignore-scripts', '--include=dev', '--include=optional'];
  const quiet = ['--no-audit', '--no-fund', '--loglevel=error', '--fetch-retry-mintimeout=1000'];
  process.stderr.write('setup: installing the packages of package-lock.json, once…\n');
  let output = '';
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    const result = spawnSync(command, [...prefix, ...flags, ...quiet], {
      cwd: root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    if (result.status === 0) return;
    output = `${result.stdout ?? ''}${result.stderr ?? ''}${result.error?.message ?? ''}`.trim();
    if (/code EUSAGE/.test(output)) {
      process.stderr.write(`${output}\n`);
      fail(
        'package.json and package-lock.json do not agree.',
        "run 'npm install --ignore-scripts' and commit the lockfile.",
      );
    }
    process.stderr.write(`setup: 'npm ci' failed, attempt ${attempt} of ${ATTEMPTS_MAX}.\n`);
    if (attempt < ATTEMPTS_MAX) sleep(attempt * 3_000);
  }
  process.stderr.write(`${output}\n`);
  fail(
    'the packages could not be installed; npm says why above.',
    "check the network, the proxy settings and 'npm config get registry', then run the command again.",
  );
}

function sleep(ms) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

function readJson(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return null;
  }
}

/** Brings the checkout at `root` into the state that its lockfile describes; exits 1 with a message if it cannot. */
export function setup(root) {
  const modules = join(root, 'node_modules');
  const lockText = readFileSync(join(root, 'package-lock.json'), 'utf8');
  const stamp = stampFor(lockText);
  if (existsSync(stampPath(root)) && readFileSync(stampPath(root), 'utf8') === stamp) return;

  const lock = JSON.parse(lockText);
  const runtimeName = runtimePackage(lock, process.platform, process.arch);
  if (runtimeName === null) checkRuntime(root, null);
  const hidden = readJson(join(modules, '.package-lock.json'));
  if (hidden === null || !isInstalled(lock, hidden, runtimeName)) {
    if (lstatSync(modules, { throwIfNoEntry: false })?.isSymbolicLink() === true) {
      fail(
        `node_modules is a link to ${realpathSync(modules)}, which does not match package-lock.json.`,
        "run 'npm ci --ignore-scripts' there, or remove the link.",
      );
    }
    install(root);
  }
  checkRuntime(root, runtimeName);
  writeFileSync(stampPath(root), stamp);
}

if (
  process.argv[1] !== undefined &&
  realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)
) {
  setup(dirname(dirname(fileURLToPath(import.meta.url))));
}
