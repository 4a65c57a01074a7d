/** What `millrace/client` loads: a process that only talks to brokers must not pay for one. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { suite } from 'uvu';

const test = suite('modules of the client');
const root = join(import.meta.dirname, '..', '..', '..');

/** Hooks that print every module as it is loaded, and a program that loads the client as its users do. */
const program = `
import { registerHooks } from 'node:module';
const seen = [];
registerHooks({ load(url, context, next) { seen.push(url); return next(url, context); } });
const { Client } = await import('millrace/client');
const client = new Client({ bootstrap: '127.0.0.1:1' });
client.producer();
await client.close();
const builtins = process.moduleLoadList.filter((one) => one.startsWith('NativeModule '));
console.log(JSON.stringify({ seen, builtins }));
`;

test('neither threads, nor native calls, nor any part of the broker, nor a compression library', () => {
  const output = execFileSync(process.execPath, ['--input-type=module', '--eval', program], {
    ...{ cwd: root, encoding: 'utf8' },
  });
  const { seen, builtins } = JSON.parse(output) as { seen: string[]; builtins: string[] };
  const base = pathToFileURL(`${root}/`).href;
  const own = seen
    .filter((url) => url.startsWith(base) && !url.includes('/node_modules/'))
    .map((url) => url.slice(base.length));
  assert.ok(own.includes('net/client/client.ts'), own.join());
  const allowed =
    /^(?:net\/client\/|net\/protocol\/|engine\/batch\/|engine\/error_code\.gen\.ts$|engine\/groups\/(?:\w+_assignor|text_order)\.ts$)/;
  assert.deepEqual(
    own.filter((path) => !allowed.test(path)),
    [],
  );
  const packages = seen.filter((url) => url.includes('/node_modules/'));
  assert.deepEqual(
    packages.filter((url) => !url.includes('/@node-rs/crc32')),
    [],
  );
  const banned = seen.filter((url) => /^node:(?:worker_threads|child_process|zlib)/.test(url));
  assert.deepEqual(banned, []);
  assert.ok(!builtins.includes('NativeModule worker_threads'), 'worker_threads');
  assert.ok(!builtins.includes('NativeModule zlib'), 'zlib');
});

test.run();
