/** Finds files that nothing reaches and exports that nobody imports. */
import { posix } from 'node:path';
import type { Scan } from './source_scan.ts';
import type { Problem, Tree } from './tidy.ts';
import { resolveImport } from './tidy_imports.ts';

const isTest = (path: string): boolean => path.endsWith('.test.ts');

/** Files that are started by hand or by npm: every benchmark, and all that a script or CI names. */
function entryPoints(tree: Tree): string[] {
  const named = new Set<string>();
  for (const [path, text] of tree.texts) {
    if (path !== 'package.json' && !path.startsWith('.ci/')) continue;
    for (const match of text.matchAll(/[\w./-]+\.(?:ts|mjs)\b/g))
      named.add(posix.normalize(match[0]));
  }
  return tree.paths.filter((path) => named.has(path) || /^bench\/[^/]+\.ts$/.test(path));
}

/** What the package exports (`"./…"` in package.json) is there for its users. */
function published(tree: Tree): Set<string> {
  const paths = (tree.texts.get('package.json') ?? '').matchAll(/"\.\/([^"*]+\.ts)"/g);
  return new Set(Array.from(paths, (match) => match[1] as string));
}

/** The files that a file leads to: those that it imports, and those whose path stands in a string (workers, spawned programs). */
function edges(path: string, { imports, strings }: Scan): string[] {
  const targets: string[] = [];
  for (const { specifier } of imports) targets.push(resolveImport(path, specifier) ?? '');
  for (const text of strings) {
    if (!/\.(?:ts|mjs)$/.test(text)) continue;
    targets.push(posix.normalize(text), posix.join(posix.dirname(path), text));
  }
  return targets;
}

function reach(tree: Tree, roots: readonly string[]): Set<string> {
  const reached = new Set<string>();
  const open = [...roots];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (reached.has(path)) continue;
    reached.add(path);
    const scanned = tree.scans.get(path);
    if (scanned !== undefined) open.push(...edges(path, scanned));
  }
  return reached;
}

/** TypeScript files that no entry point leads to; product files to which only tests lead count as unused, too. */
export function deadFiles(tree: Tree): Problem[] {
  const roots = entryPoints(tree);
  const used = reach(tree, roots);
  const tested = reach(tree, [...roots, ...tree.paths.filter(isTest)]);
  const problems: Problem[] = [];
  for (const path of tree.scans.keys()) {
    if (!tested.has(path)) {
      problems.push({ path, line: 0, message: 'nothing uses this file' });
    } else if (!used.has(path) && !path.startsWith('test/')) {
      problems.push({ path, line: 0, message: 'only tests use this file' });
    }
  }
  return problems;
}

/**
 * Exports that no other file imports, but for those of the package. A type that its own file uses may stay exported: it is part of the signature
 * of something else there, and callers may want to name it.
 */
export function unusedExports(tree: Tree): Problem[] {
  const taken = new Map<string, Set<string>>();
  for (const [path, { imports }] of tree.scans) {
    for (const { specifier, names } of imports) {
      const target = resolveImport(path, specifier);
      if (target === null) continue;
      const set = taken.get(target) ?? new Set();
      taken.set(target, set);
      for (const name of names) set.add(name);
    }
  }
  const problems: Problem[] = [];
  const entries = published(tree);
  for (const [path, { code, exports }] of tree.scans) {
    const names = taken.get(path);
    if (entries.has(path)) continue;
    if (path.endsWith('.gen.ts') || names?.has('*') === true) continue;
    for (const { name, line, isType } of exports) {
      if (names?.has(name) === true || name === 'default') continue;
      if (isType && mentions(code, name) > exports.filter((other) => other.name === name).length)
        continue;
      problems.push({ path, line, message: `nothing imports '${name}': drop the export, or it` });
    }
  }
  return problems;
}

function mentions(code: string, name: string): number {
  return code.split(new RegExp(`(?<![\\w$])${name.replaceAll('$', '\\$')}(?![\\w$])`)).length - 1;
}
