/**
 * Builds what the npm package holds: JavaScript and declarations in `dist`, the data files beside them, and the package's
 * own package.json and README.md, which differ from the checkout's (that one brings a Node runtime along).
 *
 *   node tools/build_package.ts --out DIR    makes DIR a package, for `npm pack DIR` or `npm install DIR`
 *   node tools/build_package.ts --prepack    makes the checkout one, until --postpack: `npm pack` calls both
 */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { packageManifest } from './package/manifest.ts';

const root = dirname(import.meta.dirname);
/** What is read at run time and no module. */
const dataFolders = ['net/protocol/schema', 'net/protocol/tables', 'net/config/tables'];
/** What `import 'millrace/client'` shows to the compiler; the other declarations are left out. */
const publicDeclarations = 'net/client/client.d.ts';
/** The fields of all of Kafka's messages: nothing that users see mentions them, and they are a tenth of the package. */
const messageDeclarations = 'net/protocol/messages.gen.d.ts';
/** Of those, what the types of the client's own modules are built on. */
const keptDeclarations: ReadonlySet<string> = new Set(['ApiName', 'ExternalRecords']);
/** For who works on Millrace, not with it. */
const ownPages: ReadonlySet<string> = new Set(['testing.md']);
/** Of the checkout, which `--prepack` replaces for the time of the packing. */
const replaced = ['package.json', 'README.md'];
const saved = join(root, '.cache', 'package');

function build(out: string): void {
  const dist = join(out, 'dist');
  rmSync(dist, { recursive: true, force: true });
  compile(dist);
  for (const folder of dataFolders)
    cpSync(join(root, folder), join(dist, folder), { recursive: true });
  pruneDeclarations(dist);
  const modules = filesOf(dist, '.js');
  for (const path of modules) nameModulesByTheirOutput(dist, path);
  chmodSync(join(dist, 'tools', 'millrace.js'), 0o755);
  const source = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Parameters<
    typeof packageManifest
  >[0];
  const { name, version, type } = source;
  writeJson(join(dist, 'package.json'), { name, version, type });
  writeJson(join(out, 'package.json'), packageManifest(source));
  copyFileSync(join(root, 'tools', 'package', 'README.md'), join(out, 'README.md'));
  if (out === root) return;
  copyFileSync(join(root, 'LICENSE'), join(out, 'LICENSE'));
  mkdirSync(join(out, 'docs'), { recursive: true });
  for (const page of readdirSync(join(root, 'docs')).filter((one) => !ownPages.has(one)))
    copyFileSync(join(root, 'docs', page), join(out, 'docs', page));
}

function compile(dist: string): void {
  const compiler = join(root, 'node_modules', '.bin', 'tsc');
  const args = ['--project', join(root, 'tools', 'package', 'tsconfig.json'), '--outDir', dist];
  const { status, error } = spawnSync(compiler, args, { stdio: ['ignore', 2, 2] });
  if (status !== 0) throw new Error(`the compiler failed: ${error?.message ?? `exit ${status}`}`);
}

function filesOf(dist: string, suffix: string): string[] {
  return readdirSync(dist, { recursive: true, encoding: 'utf8' }).filter((path) =>
    path.endsWith(suffix),
  );
}

/**
 * The compiler renames what is imported. Modules that are started as threads or processes are named by strings, and
 * need the same.
 */
function nameModulesByTheirOutput(dist: string, path: string): void {
  const file = join(dist, path);
  const text = readFileSync(file, 'utf8');
  const changed = text.replace(/'([\w./-]+)\.ts'/g, (whole, stem: string) =>
    existsSync(join(dist, posix.dirname(path), `${stem}.js`)) ? `'${stem}.js'` : whole,
  );
  if (changed !== text) writeFileSync(file, changed);
}

function pruneDeclarations(dist: string): void {
  const reached = new Set<string>();
  const open = [publicDeclarations];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (reached.has(path) || !existsSync(join(dist, path))) continue;
    reached.add(path);
    const written = readFileSync(join(dist, path), 'utf8');
    // The compiler renames what code imports, and leaves declarations as they are.
    const text = written.replace(/((?:from |import\()['"]\.[^'"]+)\.ts(?=['"])/g, '$1.js');
    if (text !== written) writeFileSync(join(dist, path), text);
    for (const match of text.matchAll(/(?:from |import\()['"](\.[^'"]+)\.js['"]/g))
      open.push(posix.join(posix.dirname(path), `${match[1]}.d.ts`));
  }
  for (const path of filesOf(dist, '.d.ts')) if (!reached.has(path)) rmSync(join(dist, path));
  pruneMessages(dist, reached);
}

/** Leaves the names that other declarations import. */
function pruneMessages(dist: string, reached: ReadonlySet<string>): void {
  const names = new Set<string>();
  for (const path of reached)
    for (const [, list] of readFileSync(join(dist, path), 'utf8').matchAll(
      /import type \{([^}]*)\} from '[^']*messages\.gen\.js'/g,
    ))
      for (const name of list?.split(',') ?? []) names.add(name.trim());
  const whole = readFileSync(join(dist, messageDeclarations), 'utf8');
  const declarations = [...names].map((name) => {
    if (!keptDeclarations.has(name)) return `export type ${name} = any;\n`;
    const found = new RegExp(`^export (?:type ${name} = [^;]*;|interface ${name} [^}]*})\n`, 'm');
    return found.exec(whole)?.[0] ?? fail(`no ${name} in ${messageDeclarations}`);
  });
  writeFileSync(join(dist, messageDeclarations), declarations.join(''));
}

function fail(message: string): never {
  throw new Error(message);
}

function writeJson(path: string, value: unknown): void {
  writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`);
}

function prepack(): void {
  // An earlier packing that was interrupted has left its own files in these places.
  postpack();
  mkdirSync(saved, { recursive: true });
  for (const name of replaced) copyFileSync(join(root, name), join(saved, name));
  build(root);
}

function postpack(): void {
  for (const name of replaced) {
    const original = join(saved, name);
    if (!existsSync(original)) continue;
    copyFileSync(original, join(root, name));
    rmSync(original);
  }
}

function main([mode, out]: readonly string[]): void {
  if (mode === '--prepack') prepack();
  else if (mode === '--postpack') postpack();
  else if (mode === '--out' && out !== undefined) build(out);
  else throw new Error('usage: node tools/build_package.ts --out DIR | --prepack | --postpack');
}

main(process.argv.slice(2));
