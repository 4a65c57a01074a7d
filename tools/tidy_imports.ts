/**
 * Which part may import which. The linter's patterns see the text of a specifier; these rules resolve
 * it, and also see type imports, re-exports, `import()` and the modules of Node.
 */
import { posix } from 'node:path';
import type { Import } from './source_scan.ts';
import type { Problem, Tree } from './tidy.ts';

/** Each part with those that it may import besides itself. */
const allowed: Readonly<Record<string, readonly string[]>> = {
  engine: [],
  replication: ['engine'],
  net: ['replication', 'engine'],
  tools: ['net', 'replication', 'engine'],
  bench: ['tools', 'net', 'replication', 'engine', 'test'],
  test: ['bench', 'tools', 'net', 'replication', 'engine'],
};

interface Rule {
  readonly from: RegExp;
  readonly except?: RegExp;
  /** Matched against the resolved path of a relative import, or the bare specifier of any other. */
  readonly to: RegExp;
  readonly message: string;
}

const rules: readonly Rule[] = [
  {
    from: /^(?:engine|replication)\//,
    to: /^node:(?:net|tls|http|https|http2|dgram|dns)\b/,
    message: 'only net/ knows sockets',
  },
  {
    from: /^(?:engine\/(?:batch|log|groups|transactions)|replication)\//,
    to: /^node:(?:fs|timers|perf_hooks|worker_threads|child_process)\b/,
    message: 'reaches disk, clock and threads only through engine/ports.ts',
  },
  {
    from: /^net\/client\//,
    to: /^(?:replication\/|net\/(?!client\/|protocol\/))/,
    message: 'the client stands alone: it may use net/protocol/ and engine/ only',
  },
  {
    from: /^(?:engine|replication|net\/(?!client\/))/,
    to: /^net\/client\//,
    message: 'the broker does not use the client',
  },
];

/** Every import that crosses a border it must not cross. */
export function checkImports(tree: Tree): Problem[] {
  const problems: Problem[] = [];
  for (const [path, { imports }] of tree.scans) {
    for (const found of imports) {
      const message = refusal(path, found);
      if (message !== null) problems.push({ path, line: found.line, message });
    }
  }
  return problems;
}

function refusal(path: string, { specifier }: Import): string | null {
  const target = resolveImport(path, specifier);
  const part = path.split('/')[0] as string;
  const targetPart = target?.split('/')[0];
  if (
    target !== null &&
    targetPart !== part &&
    allowed[part]?.includes(targetPart ?? '') !== true
  ) {
    return `${part}/ must not import ${target}`;
  }
  for (const { from, except, to, message } of rules) {
    if (!from.test(path) || except?.test(path) === true) continue;
    if (to.test(target ?? specifier)) return `imports ${target ?? specifier}: ${message}`;
  }
  return null;
}

/** The path that a relative specifier means, from the root; null for a package or a module of Node. */
export function resolveImport(path: string, specifier: string): string | null {
  if (!specifier.startsWith('.')) return null;
  return posix.join(posix.dirname(path), specifier);
}
