/**
 * The npm package, as its users get it: packed, installed from the tarball into an empty directory without a compiler at
 * hand, and used on Node 22 and 24 from ESM and from CommonJS, in projects with strict TypeScript.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { suite } from 'uvu';
import { fetchWith } from './peers/fetch.ts';

const test = suite('package');
const root = dirname(dirname(import.meta.dirname));
const dir = mkdtempSync(join(tmpdir(), 'millrace-package-'));
const app = join(dir, 'app');
const maxBytes = 2_650_000;
let tarball = '';
let broker: ChildProcess | null = null;

/** By version: the folder with that `node`. */
const runtimes = new Map<string, string>([['24', dirname(process.execPath)]]);

test.after(() => {
  broker?.kill('SIGKILL');
  rmSync(dir, { recursive: true, force: true });
});

/** The environment of somebody who has that Node, and no compiler of C. */
function environment(version: string): NodeJS.ProcessEnv {
  const PATH = [runtimes.get(version), process.env['PATH']].join(delimiter);
  const { NODE_COMPILE_CACHE: _, ...rest } = process.env;
  return { ...rest, PATH, CC: '/bin/false', CXX: '/bin/false', npm_config_build_from_source: '' };
}

function run(version: string, file: string, args: readonly string[]): string {
  const env = environment(version);
  const { status, stdout, stderr } = spawnSync(file, args, { cwd: app, env, encoding: 'utf8' });
  assert.equal(status, 0, `${file} ${args.join(' ')}:\n${stdout}${stderr}`);
  return stdout;
}

test('it is packed with JavaScript, declarations and data, and without a runtime', () => {
  const out = join(dir, 'out');
  mkdirSync(out);
  execFileSync(process.execPath, [join(root, 'tools', 'build_package.ts'), '--out', out]);
  const packed = execFileSync('npm', ['pack', '--json', '--pack-destination', dir], {
    cwd: out,
    encoding: 'utf8',
  });
  interface Packed {
    readonly filename: string;
    readonly unpackedSize: number;
    readonly files: readonly { readonly path: string }[];
  }
  const parsed = JSON.parse(packed) as readonly Packed[] | Record<string, Packed>;
  const [pack] = (Array.isArray(parsed) ? parsed : Object.values(parsed)) as readonly Packed[];
  assert(pack !== undefined);
  assert(pack.unpackedSize < maxBytes, `${pack.unpackedSize} bytes`);
  tarball = join(dir, pack.filename);
  const paths = pack.files.map(({ path }) => path);
  for (const path of ['README.md', 'LICENSE', 'dist/tools/millrace.js', 'docs/cli.md'])
    assert(paths.includes(path), path);
  assert.deepEqual(
    paths.filter((path) => /(?<!\.d)\.ts$|\.tsbuildinfo$|\.test\./.test(path)),
    [],
  );
  const manifest = JSON.parse(readFileSync(join(out, 'package.json'), 'utf8')) as object;
  assert(!('private' in manifest) && !('optionalDependencies' in manifest));
  for (const path of paths.filter((one) => one.endsWith('.js')))
    assert.doesNotMatch(readFileSync(join(out, path), 'utf8'), /'[\w./-]+\.ts'/, path);
});

test('it installs without a compiler, from the tarball alone', async () => {
  mkdirSync(app);
  const manifest = { name: 'app', version: '1.0.0', private: true, type: 'module' };
  writeFileSync(join(app, 'package.json'), JSON.stringify(manifest));
  const compiler = ['typescript@7.0.2', '@types/node@24'];
  const args = ['install', '--no-audit', '--no-fund', '--ignore-scripts', tarball, ...compiler];
  await fetchWith('npm', args, app);
  const old = join(dir, 'node22');
  mkdirSync(old);
  writeFileSync(join(old, 'package.json'), '{"private":true}');
  const name = `node-linux-${process.arch}@22`;
  await fetchWith('npm', ['install', '--no-audit', '--no-fund', name], old);
  runtimes.set('22', join(old, 'node_modules', '.bin'));
  assert.match(run('22', 'node', ['--version']), /^v22\./);
  assert(!readdirSync(join(app, 'node_modules')).includes(`node-linux-${process.arch}`));
});

test('the command line runs on both', () => {
  for (const version of runtimes.keys()) {
    assert.match(run(version, 'npx', ['millrace', '--version']), /^\d+\.\d+\.\d+\n$/);
    assert.match(run(version, 'npx', ['millrace', '--help']), /^Usage: millrace /);
  }
});

/** Starts `npx millrace start` and resolves with the address that it tells. */
function startBroker(version: string): Promise<string> {
  const args = ['millrace', 'start', '--set', 'listeners=PLAINTEXT://127.0.0.1:0'];
  const data = ['--set', `log.dirs=${join(dir, `data-${version}`)}`];
  const entry = join(app, 'node_modules', '.bin', 'millrace');
  // Without npx in between, so that the signal reaches the broker.
  const child = spawn(entry, [...args.slice(1), ...data], { cwd: app, env: environment(version) });
  broker = child;
  return new Promise((resolve, reject) => {
    let output = '';
    const read = (chunk: Buffer): void => {
      output += chunk.toString();
      const address = /listening on PLAINTEXT:\/\/([\d.:]+)/.exec(output)?.[1];
      if (address !== undefined && /ready in/.test(output)) resolve(address);
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.once('close', (code) => reject(new Error(`exit ${code}: ${output}`)));
  });
}

const body = `
  const bootstrap = process.argv[2] as string;
  await using client = new Client({ bootstrap });
  const admin = client.admin();
  const topic = process.argv[3] as string;
  await admin.createTopic(topic, { partitions: 2 });
  await using producer = client.producer({ compression: 'zstd' });
  const { partition, offset } = await producer.send({ topic, key: 'a', value: 'hello' });
  const [end] = await admin.listOffsets([{ topic, partition }], 'latest');
  try {
    await admin.describeTopic('nope');
  } catch (error) {
    if (!(error instanceof MillraceError)) throw error;
    console.log(error.code, offset, end?.offset);
  }
`;

test('the client compiles strictly and runs, imported and required', () => {
  const options = {
    compilerOptions: {
      ...{ strict: true, module: 'nodenext', target: 'es2022', types: ['node'] },
      ...{ lib: ['esnext'], exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true },
    },
    files: ['main.mts', 'main.cts'],
  };
  const installed = join(app, 'node_modules', 'millrace');
  const readme = readFileSync(join(installed, 'README.md'), 'utf8');
  const blocks = [...readme.matchAll(/^```ts\n(.*?)^```/gms)].map(([, code]) => code as string);
  assert(blocks.length >= 3);
  const plain = /^```js\n(.*?)^```/ms.exec(readme)?.[1];
  assert(plain !== undefined);
  writeFileSync(join(app, 'readme.cjs'), plain);
  for (const [number, code] of blocks.entries()) {
    const name = `readme${number}.mts`;
    options.files.push(name);
    writeFileSync(join(app, name), code);
  }
  writeFileSync(join(app, 'tsconfig.json'), JSON.stringify(options));
  const head = `import { Client, MillraceError } from 'millrace/client';\n`;
  writeFileSync(join(app, 'main.mts'), head + body);
  writeFileSync(
    join(app, 'main.cts'),
    `${head}async function main(): Promise<void> {${body}}\nvoid main();\n`,
  );
  run('24', join(app, 'node_modules', '.bin', 'tsc'), []);
});

/** The package's README as it stands, but for the address: its producers, then its consumer, which goes on. */
async function tryReadme(version: string, address: string): Promise<void> {
  for (const file of ['readme0.mjs', 'readme1.mjs', 'readme.cjs']) {
    const text = readFileSync(join(app, file), 'utf8').replaceAll('127.0.0.1:9092', address);
    writeFileSync(join(app, `here.${file}`), text);
  }
  // And again, as people do.
  for (let offset = 0; offset < 2; offset += 1) {
    const sent = run(version, 'node', [join(app, 'here.readme0.mjs')]);
    assert.match(sent, new RegExp(`^written to partition [012] at offset ${offset}\\n$`));
  }
  assert.equal(run(version, 'node', [join(app, 'here.readme.cjs')]), '');
  const env = environment(version);
  const consumer = spawn('node', [join(app, 'here.readme1.mjs')], { cwd: app, env });
  try {
    let out = '';
    for await (const chunk of consumer.stdout) {
      out += String(chunk);
      if (/customer-1 \{"amount":7\}/.test(out) && /customer-2 paid/.test(out)) return;
    }
    assert.fail(`the consumer has ended: ${out}`);
  } finally {
    consumer.kill('SIGKILL');
  }
}

for (const version of ['22', '24'])
  test(`Node ${version} serves and uses it`, async () => {
    const address = await startBroker(version);
    for (const file of ['main.mjs', 'main.cjs']) {
      const out = run(version, 'node', [join(app, file), address, file]);
      assert.equal(out, 'UNKNOWN_TOPIC_OR_PARTITION 0 1\n', file);
    }
    await tryReadme(version, address);
    const child = broker as ChildProcess;
    const ended = new Promise((resolve) => {
      child.once('close', resolve);
    });
    child.kill('SIGTERM');
    assert.equal(await ended, 0);
    broker = null;
  });

test.run();
