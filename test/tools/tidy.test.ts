import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { formatProblem, tidy, treeOf } from '../../tools/tidy.ts';

const test = suite('tidy');

/** The rules' findings on a tree; every file is also made reachable, unless `entries` says otherwise. */
function check(files: Record<string, string>, entries = Object.keys(files)): string[] {
  const scripts = entries.filter((path) => !path.startsWith('test/')).join(' ');
  const tree = treeOf(new Map(Object.entries({ 'package.json': scripts, ...files })));
  return tidy(tree).map(formatProblem);
}

test('a clean tree has no problems', () => {
  const files = {
    'engine/units.ts': 'export const kib = 1024;\n',
    'net/broker.ts': `import { kib } from '../engine/units.ts';\nuse(kib);\n`,
    'test/engine/units.test.ts': `import { kib } from '../../engine/units.ts';\nuse(kib);\n`,
  };
  assert.deepEqual(check(files, ['net/broker.ts']), []);
});

test('imports point from tools to net to replication to engine, types and re-exports too', () => {
  const bad = (path: string, line: string): string[] => check({ [path]: line });
  const expected = 'engine/a.ts:1: engine/ must not import net/b.ts';
  assert.deepEqual(bad('engine/a.ts', `import { b } from '../net/b.ts';`), [expected]);
  assert.deepEqual(bad('engine/a.ts', `import type { B } from '../net/b.ts';`), [expected]);
  assert.deepEqual(bad('engine/a.ts', `export { b } from '../net/b.ts';`), [expected]);
  assert.deepEqual(bad('engine/a.ts', `const b = await import('../net/b.ts');`), [expected]);
  assert.deepEqual(bad('engine/a.ts', `let b: import('../net/b.ts').B;`), [expected]);
  assert.equal(bad('replication/a.ts', `import { b } from '../net/b.ts';`).length, 1);
  assert.equal(bad('net/a.ts', `import { b } from '../tools/b.ts';`).length, 1);
  assert.equal(bad('tools/a.ts', `import { b } from '../test/b.ts';`).length, 1);
  assert.deepEqual(bad('tools/a.ts', `import { b } from '../engine/b.ts';`), []);
});

test('sockets are for net/, and the log reaches the disk through its ports', () => {
  const of = (path: string, name: string): string[] =>
    check({ [path]: `import a from '${name}';` });
  assert.match(of('engine/a.ts', 'node:net')[0] ?? '', /only net\/ knows sockets/);
  assert.match(of('engine/log/a.ts', 'node:fs')[0] ?? '', /through engine\/ports.ts/);
  assert.match(
    of('replication/raft/a.ts', 'node:fs/promises')[0] ?? '',
    /through engine\/ports.ts/,
  );
  assert.deepEqual(of('engine/node_ports.ts', 'node:fs'), []);
  assert.deepEqual(of('engine/log/a.ts', 'node:assert/strict'), []);
});

test('the client and the broker do not know each other', () => {
  const of = (path: string, to: string): string[] =>
    check({ [path]: `import { a } from '${to}';` });
  assert.match(of('net/client/a.ts', '../server/b.ts')[0] ?? '', /the client stands alone/);
  assert.deepEqual(of('net/client/a.ts', '../protocol/b.ts'), []);
  assert.match(of('net/server/a.ts', '../client/b.ts')[0] ?? '', /does not use the client/);
});

test('files have at most 400 lines, generated ones as many as they need', () => {
  assert.deepEqual(check({ 'net/a.ts': 'x();\n'.repeat(400) }), []);
  assert.match(check({ 'net/a.ts': 'x();\n'.repeat(401) })[0] ?? '', /has 401 lines/);
  assert.deepEqual(check({ 'net/a.gen.ts': 'x();\n'.repeat(401) }), []);
});

test('promises of later work are found in comments and in other languages, with their line', () => {
  const word = ['TO', 'DO'].join('');
  assert.match(check({ 'net/a.ts': `a();\n// ${word} later\n` })[0] ?? '', /^net\/a\.ts:2: /);
  const others = ['FIX', 'ME'].join('');
  assert.equal(check({ 'test/compat/peer.py': `# ${others}\n` }).length, 1);
  assert.deepEqual(check({ 'net/a.ts': 'const hacker = hackathon;\n' }), []);
});

test('product code does not write to the console; tools may, and a string or comment is no call', () => {
  assert.match(check({ 'net/a.ts': 'console.log(1);' })[0] ?? '', /net\/logger\.ts/);
  assert.deepEqual(check({ 'tools/a.ts': 'console.log(1);' }), []);
  assert.deepEqual(check({ 'net/a.ts': `// console.log(1)\nsay('console.log(1)');` }), []);
});

test('a leftover .only( in a test is found', () => {
  const files = { 'engine/a.ts': '', 'test/engine/a.test.ts': `test.only('x', f);` };
  assert.match(check(files)[0] ?? '', /leftover \.only\(/);
});

test('default exports are refused', () => {
  assert.match(check({ 'net/a.ts': 'export default 5;' })[0] ?? '', /no default exports/);
});

test('a test stands where its source stands, with an aspect in its name if it needs one', () => {
  const source = { 'engine/log/segment.ts': '' };
  const of = (path: string): string[] => check({ ...source, [path]: '' });
  assert.deepEqual(of('test/engine/log/segment.test.ts'), []);
  assert.deepEqual(of('test/engine/log/segment.roll.test.ts'), []);
  assert.deepEqual(of('test/engine/log/all.crashes.test.ts'), []);
  assert.equal(of('test/engine/nowhere/all.crashes.test.ts').length, 1);
  assert.match(
    of('test/engine/segment.test.ts')[0] ?? '',
    /tests engine\/segment\.ts, which does not exist/,
  );
  for (const folder of ['compat', 'fuzz', 'scenario', 'sim', 'harness']) {
    assert.deepEqual(of(`test/${folder}/free.test.ts`), []);
  }
});

test('nothing new appears at the top level', () => {
  assert.match(check({ 'notes.txt': '' })[0] ?? '', /^notes\.txt: has no place/);
  assert.match(check({ 'utils/a.ts': '' }).join(), /utils: has no place/);
});

test('a file that nothing leads to is dead, even if two dead files import each other', () => {
  const files = {
    'net/main.ts': '',
    'net/a.ts': `import { b } from './b.ts'; export const a = b;`,
    'net/b.ts': `import { a } from './a.ts'; export const b = a;`,
  };
  const found = check(files, ['net/main.ts']);
  assert.deepEqual(found, ['net/a.ts: nothing uses this file', 'net/b.ts: nothing uses this file']);
});

test('a product file that only its test uses is dead, a helper of tests is not', () => {
  const files = {
    'engine/a.ts': 'export const a = 1;',
    'test/engine/a.test.ts': `import { a } from '../../engine/a.ts'; import { b } from '../harness/b.ts';`,
    'test/harness/b.ts': 'export const b = 1;',
  };
  assert.deepEqual(check(files, []), ['engine/a.ts: only tests use this file']);
});

test('a worker named in a string is used', () => {
  const files = {
    'net/broker.ts': `new Worker(new URL('./shard_main.ts', import.meta.url));`,
    'net/shard_main.ts': '',
  };
  assert.deepEqual(check(files, ['net/broker.ts']), []);
});

test('what the package exports need not be imported by anybody', () => {
  const files = {
    'package.json': '{ "exports": { "./client": "./net/client/client.ts" } }',
    'net/client/client.ts': 'export const a = 1;\n',
  };
  assert.deepEqual(check(files), []);
});

test('an export that nobody imports is found; a type may stay if its own file uses it', () => {
  const of = (text: string, user = ''): string[] =>
    check({ 'net/a.ts': text, 'net/b.ts': user }, ['net/a.ts', 'net/b.ts']);
  assert.match(of('export const a = 1; use(a);')[0] ?? '', /nothing imports 'a'/);
  assert.deepEqual(of('export const a = 1;', `import { a } from './a.ts';`), []);
  assert.deepEqual(of('export const a = 1;', `import * as x from './a.ts';`), []);
  assert.match(of('export interface A {}')[0] ?? '', /nothing imports 'A'/);
  assert.deepEqual(of('export interface A {}\nconst a: A = {};'), []);
});

test.run();
