/** Fetching and building what is not this project's: each from its own registry with its ordinary tool, retried. */
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const ATTEMPTS_MAX = 3;

/** Runs a program to its end; resolves to its exit code and what it wrote. */
export function run(
  file: string,
  args: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv = {},
): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve) => {
    const options = { cwd, env: { ...process.env, ...env } };
    const child = spawn(file, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => (output += chunk));
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => (output += chunk));
    child.once('error', (error) => resolve({ code: null, output: error.message }));
    child.once('close', (code) => resolve({ code, output }));
  });
}

/** Runs a program, up to three times: registries and networks have their moments. Throws with its last output. */
export async function fetchWith(
  file: string,
  args: readonly string[],
  cwd: string,
  env?: NodeJS.ProcessEnv,
): Promise<void> {
  let output = '';
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    const result = await run(file, args, cwd, env);
    if (result.code === 0) return;
    output = result.output.trim().split('\n').slice(-20).join('\n');
    process.stderr.write(`install: '${file} ${args[0]}' failed, attempt ${attempt}\n`);
    if (attempt < ATTEMPTS_MAX)
      await new Promise((resolve) => setTimeout(resolve, attempt * 5_000));
  }
  throw new Error(
    `'${file} ${args.join(' ')}' failed ${ATTEMPTS_MAX} times; check the network and how ${file} is set up. It said:\n${output}`,
  );
}

/** Makes `dir` with `make` unless a complete one made from the same `sources` is there. */
export async function once(
  dir: string,
  sources: readonly string[],
  make: () => Promise<void>,
): Promise<void> {
  const hash = createHash('sha256');
  for (const source of sources) hash.update(readFileSync(source)).update('\0');
  const stamp = hash.digest('hex');
  const stampPath = join(dir, '.stamp');
  if (existsSync(stampPath) && readFileSync(stampPath, 'utf8') === stamp) return;
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });
  await make();
  writeFileSync(stampPath, stamp);
}

/** The package manager serves one caller at a time. */
let lastNeed: Promise<void> = Promise.resolve();

/** Throws, with how to get it, if a program is not on this machine; tries Debian's package first where it may. */
export function need(program: string, probe: string[], debianPackages: string[]): Promise<void> {
  lastNeed = lastNeed.catch(() => {}).then(() => needNow(program, probe, debianPackages));
  return lastNeed;
}

async function needNow(program: string, probe: string[], debianPackages: string[]): Promise<void> {
  const isThere = (): boolean => spawnSync(program, probe, { stdio: 'ignore' }).error === undefined;
  if (isThere()) return;
  if (debianPackages.length > 0 && process.getuid?.() === 0 && existsSync('/usr/bin/apt-get')) {
    const quiet = { DEBIAN_FRONTEND: 'noninteractive' };
    await fetchWith('apt-get', ['update', '-q'], '/', quiet);
    const install = ['install', '-y', '-q', '--no-install-recommends', ...debianPackages];
    await fetchWith('apt-get', install, '/', quiet);
    if (isThere()) return;
  }
  const packages = debianPackages.length > 0 ? ` (Debian: ${debianPackages.join(' ')})` : '';
  throw new Error(
    `'${program}' is needed for this client and is not on PATH: install it${packages}`,
  );
}
