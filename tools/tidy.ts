/**
 * The house rules that neither the compiler nor the linter can see: which part may know which, what a file
 * may contain, where tests stand, and that nothing lies around unused. `npm run check` runs it.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { lineAt, type Scan, scan } from './source_scan.ts';
import { checkImports } from './tidy_imports.ts';
import { deadFiles, unusedExports } from './tidy_unused.ts';

/** A broken rule. `line` counts from 1; 0 means the file as a whole. */
export interface Problem {
  readonly path: string;
  readonly line: number;
  readonly message: string;
}

/** A source tree, paths relative to its root with forward slashes. */
export interface Tree {
  /** Every file that is part of the project. */
  readonly paths: readonly string[];
  /** The texts of those files that the rules read. */
  readonly texts: ReadonlyMap<string, string>;
  /** Scans of the TypeScript files, generated ones included. */
  readonly scans: ReadonlyMap<string, Scan>;
}

const FILE_LINES_MAX = 400;

/** What may stand at the top; anything new there is a decision, so it is made here too. */
const topLevel = new Set([
  ...['.ci', 'bench', 'docs', 'engine', 'net', 'replication', 'test', 'tools'],
  ...['.gitattributes', '.gitignore', 'biome.json', 'package.json', 'package-lock.json'],
  ...['ARCHITECTURE.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'LICENSE', 'README.md'],
  ...['SECURITY.md', 'tsconfig.json'],
]);

/** Folders under test/ that test no single source file. */
const freeTestFolders = /^test\/(?:compat|fuzz|harness|scenario|sim)\//;

const productFolders = /^(?:engine|replication|net)\//;
const readable = /\.(?:ts|mts|mjs|js|java|go|py|sh|json)$|^\.ci\//;
const codeFile = /\.(?:ts|mts|mjs|js|java|go|py|sh)$|^\.ci\//;

/** Words that promise work to be done later. Split, so that this file does not hold them. */
const promises = new RegExp(`\\b(?:${['TO', 'FIX', 'XX', 'HA'].join('|')})(?:DO|ME|X|CK)\\b`, 'g');

/** Reads the tree at `root`: what git tracks, and what it would track if it were added. */
export function readTree(root: string): Tree {
  const args = ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--deduplicate'];
  const listed = execFileSync('git', args, { cwd: root, encoding: 'utf8', maxBuffer: 1 << 26 });
  const files = new Map<string, string | null>();
  for (const path of listed.split('\0')) {
    if (path === '') continue;
    try {
      files.set(path, readable.test(path) ? readFileSync(join(root, path), 'utf8') : null);
    } catch {
      // Deleted but not yet committed, or a link to a folder: no text to check.
    }
  }
  return treeOf(files);
}

/** A tree from paths and texts; null for a file whose text does not matter. */
export function treeOf(files: ReadonlyMap<string, string | null>): Tree {
  const texts = new Map<string, string>();
  const scans = new Map<string, Scan>();
  for (const [path, text] of files) {
    if (text === null) continue;
    texts.set(path, text);
    if (/(?<!\.d)\.ts$/.test(path)) scans.set(path, scan(text));
  }
  return { paths: [...files.keys()], texts, scans };
}

/** Checks every rule and returns what is broken, by path and line. */
export function tidy(tree: Tree): Problem[] {
  const problems = [
    ...checkLayout(tree),
    ...checkTestPaths(tree),
    ...checkImports(tree),
    ...deadFiles(tree),
    ...unusedExports(tree),
  ];
  for (const [path, text] of tree.texts) {
    if (codeFile.test(path) && !path.endsWith('.gen.ts')) problems.push(...checkText(path, text));
  }
  for (const [path, scanned] of tree.scans) problems.push(...checkCode(path, scanned));
  return problems.sort((a, b) => a.path.localeCompare(b.path) || a.line - b.line);
}

function checkLayout(tree: Tree): Problem[] {
  const found = new Set(tree.paths.map((path) => path.split('/')[0] as string));
  return [...found]
    .filter((name) => !topLevel.has(name))
    .map((path) => ({ path, line: 0, message: 'has no place at the top level (tools/tidy.ts)' }));
}

/**
 * A test stands where its source stands: `test/engine/log/segment.test.ts` or, when one file is not enough,
 * `segment.<aspect>.test.ts` tests `engine/log/segment.ts`. `all.<aspect>.test.ts` tests all files of its folder.
 */
function checkTestPaths(tree: Tree): Problem[] {
  const known = new Set(tree.paths);
  const folders = new Set(tree.paths.map((path) => posix.dirname(path)));
  const problems: Problem[] = [];
  for (const path of tree.paths) {
    const match = /^test\/(.+?\/?[^/.]+)(?:\.[^/]+)?\.test\.ts$/.exec(path);
    if (match === null || freeTestFolders.test(path)) continue;
    const source = match[1] as string;
    if (posix.basename(source) === 'all' && folders.has(posix.dirname(source))) continue;
    if (['.ts', '.mjs', '.gen.ts'].some((extension) => known.has(source + extension))) continue;
    problems.push({ path, line: 0, message: `tests ${source}.ts, which does not exist` });
  }
  return problems;
}

function checkText(path: string, text: string): Problem[] {
  const problems: Problem[] = [];
  const lines = text.endsWith('\n') ? text.split('\n').length - 1 : text.split('\n').length;
  if (path.endsWith('.ts') && lines > FILE_LINES_MAX) {
    const message = `has ${lines} lines, ${FILE_LINES_MAX} at most: split it by responsibility`;
    problems.push({ path, line: 0, message });
  }
  for (const match of text.matchAll(promises)) {
    const message = `'${match[0]}': do it now, or write down elsewhere that it is to be done`;
    problems.push({ path, line: lineAt(text, match.index), message });
  }
  return problems;
}

function checkCode(path: string, { code, exports }: Scan): Problem[] {
  const problems: Problem[] = [];
  const find = (pattern: RegExp, message: string): void => {
    for (const match of code.matchAll(pattern)) {
      problems.push({ path, line: lineAt(code, match.index), message });
    }
  };
  if (path.startsWith('test/'))
    find(/\.only\(/g, 'a leftover .only( keeps the other tests from running');
  if (productFolders.test(path)) {
    find(/\bconsole\.\w+\(/g, 'product code logs through net/logger.ts, not to the console');
    find(/\bdebugger\b/g, 'a leftover debugger statement');
  }
  for (const { name, line } of exports) {
    if (name === 'default') problems.push({ path, line, message: 'no default exports: name it' });
  }
  return problems;
}

/** One line for a problem, as editors and terminals make it clickable. */
export function formatProblem({ path, line, message }: Problem): string {
  return line === 0 ? `${path}: ${message}` : `${path}:${line}: ${message}`;
}
