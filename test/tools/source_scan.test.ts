import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { lineAt, scan } from '../../tools/source_scan.ts';

const test = suite('source_scan');

test('every form of import is found, with the names that it takes', () => {
  const text = [
    `import assert from 'node:assert/strict';`,
    `import type { A, B as C } from './types.ts';`,
    `import { type D, e } from "./mixed.ts";`,
    `import * as all from './all.ts';`,
    `import './effect.ts';`,
    `export { f, g as h } from './again.ts';`,
    `export * from './star.ts';`,
    `const lazy = await import('./lazy.ts');`,
    `let x: import('./inline.ts').Type;`,
    `import {\n  long,\n  list,\n} from './long.ts';`,
  ].join('\n');
  const found = scan(text).imports.map(({ specifier, names }) => [specifier, ...names]);
  assert.deepEqual(found.slice(0, 4), [
    ['node:assert/strict', '*'],
    ['./types.ts', 'A', 'B'],
    ['./mixed.ts', 'D', 'e'],
    ['./all.ts', '*'],
  ]);
  const rest = found.slice(4).map(([specifier]) => specifier);
  const expected = ['./again.ts', './star.ts', './long.ts', './effect.ts', './lazy.ts'];
  assert.deepEqual(rest, [...expected, './inline.ts']);
});

test('imports in comments, strings, templates and regular expressions are none', () => {
  const text = [
    `// import a from './a.ts';`,
    `/* import b from './b.ts'; */`,
    'const c = `import c from "./c.ts";`;',
    `const e = "import e from './e.ts'";`,
    `const f = /import f from '.\\/f.ts'/;`,
    `const g = 1 / 2; import g from './g.ts'; const h = 3 / 4;`,
  ].join('\n');
  assert.deepEqual(
    scan(text).imports.map(({ specifier, line }) => [specifier, line]),
    [['./g.ts', 6]],
  );
});

test('code inside a template is code, and the template goes on after it', () => {
  const { code } = scan('const a = `x $' + '{call({ b: 1 })} y // z`; // gone\nnext();');
  assert.match(code, /call\(\{ b: 1 \}\)/);
  assert.doesNotMatch(code, /\b[xyz]\b|gone/);
  assert.match(code, /\nnext\(\);$/);
});

test('exports are found by kind, and types are told from values', () => {
  const text = [
    'export const one = 1;',
    'export async function two(): Promise<void> {}',
    'export function* three(): Generator {}',
    'export interface Four { a: 1 }',
    'export type Five = 5;',
    'export class Six {}',
    'export { seven, inner as eight };',
    'export type { Nine };',
    'const hidden = 1;',
  ].join('\n');
  const found = scan(text).exports.map(({ name, isType }) => `${name}${isType ? ' type' : ''}`);
  const values = ['one', 'two', 'three', 'Four type', 'Five type', 'Six', 'seven', 'eight'];
  assert.deepEqual(found, [...values, 'Nine type']);
  assert.deepEqual(
    scan('export default 5;').exports.map(({ name }) => name),
    ['default'],
  );
});

test('string literals are kept, escapes and all', () => {
  const { strings } = scan(`spawn('./worker.ts'); x("it's"); y('a\\'b'); z(\`plain\`);`);
  assert.deepEqual(strings, ['./worker.ts', "it's", "a\\'b", 'plain']);
});

test('line numbers count from one', () => {
  assert.deepEqual([lineAt('a\nb', 0), lineAt('a\nb', 1), lineAt('a\nb', 2)], [1, 1, 2]);
});

test.run();
