/**
 * Fetches and builds other people's clients into .cache/compat, each from its own registry with its ordinary
 * tool. What is already there is not fetched again. Run by hand or by CI (`node test/compat/peers/install.ts`) it
 * installs all of them; the tests call the functions, which then cost next to nothing.
 */
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const ATTEMPTS_MAX = 3;
const clients = join(dirname(import.meta.dirname), 'clients');
const cache = join(dirname(dirname(dirname(import.meta.dirname))), '.cache', 'compat');

/** Runs a program to its end; resolves to its exit code and what it wrote. */
function run(
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
async function fetchWith(
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
async function once(
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

/** Throws, with how to get it, if a program is not on this machine; tries Debian's package first where it may. */
async function need(program: string, probe: string[], debianPackages: string[]): Promise<void> {
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

/** kcat, from the distribution. */
export async function installKcat(): Promise<void> {
  await need('kcat', ['-V'], ['kcat']);
}

/** Kafka 4.4.0 with its client, its tools and the peer program; answers with the class path for `java -cp`. */
export async function installJava(): Promise<{ classPath: string }> {
  const dir = join(cache, 'java');
  const [libraries, classes] = [join(dir, 'lib'), join(dir, 'classes')];
  const source = join(clients, 'java');
  const sources = ['pom.xml', 'Peer.java'].map((name) => join(source, name));
  await once(dir, sources, async () => {
    await need('javac', ['-version'], ['default-jdk-headless']);
    await need('mvn', ['--version'], ['maven']);
    const copy = ['dependency:copy-dependencies', `-DoutputDirectory=${libraries}`];
    await fetchWith('mvn', ['-B', '-q', ...copy, '-DincludeScope=runtime'], source);
    const compile = ['-cp', join(libraries, '*'), '-d', classes, 'Peer.java'];
    const { code, output } = await run('javac', compile, source);
    if (code !== 0) throw new Error(`javac failed:\n${output}`);
  });
  return { classPath: `${classes}:${join(libraries, '*')}` };
}

/** franz-go; answers with the path of the built program. */
export async function installFranz(): Promise<{ program: string }> {
  const dir = join(cache, 'franz');
  const source = join(clients, 'franz');
  const program = join(dir, 'peer');
  const sources = ['go.mod', 'go.sum', 'main.go'].map((name) => join(source, name));
  await once(dir, sources, async () => {
    await need('go', ['version'], []);
    await fetchWith('go', ['build', '-buildvcs=false', '-o', program, '.'], source, {
      CGO_ENABLED: '0',
    });
  });
  return { program };
}

/** confluent-kafka in a virtual environment of its own; answers with the paths of its Python and of the peer program. */
export async function installPython(): Promise<{ python: string; program: string }> {
  const dir = join(cache, 'python');
  const requirements = join(clients, 'python', 'requirements.txt');
  const python = join(dir, 'venv', 'bin', 'python');
  await once(dir, [requirements], async () => {
    await need('python3', ['--version'], ['python3', 'python3-venv']);
    await fetchWith('python3', ['-m', 'venv', join(dir, 'venv')], dir);
    await fetchWith(python, ['-m', 'pip', 'install', '-q', '-r', requirements], dir);
  });
  return { python, program: join(clients, 'python', 'peer.py') };
}

if (import.meta.main) {
  for (const install of [installKcat, installJava, installFranz, installPython]) {
    const startedMs = performance.now();
    await install();
    const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
    process.stdout.write(`${install.name}: ${seconds} s\n`);
  }
}
