import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { suite } from 'uvu';
import { brokerKeys, topicKeys } from '../../net/config/key_table.ts';
import { configurationDocs } from '../../tools/generate_configuration_docs.ts';

const test = suite('generate_configuration_docs');

test('docs/configuration.md is what the tables say', () => {
  const path = new URL('../../docs/configuration.md', import.meta.url);
  assert.equal(readFileSync(path, 'utf8'), configurationDocs(), 'run "npm run generate"');
});

test('every key that has an effect stands there once, with its default', () => {
  const page = configurationDocs();
  const [brokerPart = '', topicPart = ''] = page.split('## Settings of topics');
  const settings = brokerPart.slice(brokerPart.indexOf('## Settings of the broker'));
  for (const [part, table] of [
    [settings, brokerKeys()],
    [topicPart, topicKeys()],
  ] as const) {
    for (const key of table.values()) {
      const rows = part.split('\n').filter((line) => line.startsWith(`| \`${key.name}\` `));
      assert.equal(rows.length, key.effect === 'none' ? 0 : 1, key.name);
    }
  }
  assert.match(page, /\| `log.retention.hours` +\| `336` +\| `168` +\|/);
});

test.run();
