import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { buildBrokerConfig } from '../../../net/config/broker_config.ts';
import { brokerKeys } from '../../../net/config/key_table.ts';
import { gather, Problems, scaled } from '../../../net/config/settings.ts';

const test = suite('settings');

test('the keys that are read are the ones that the table calls on, later or refused', () => {
  const settings = gather([], new Problems());
  buildBrokerConfig(settings, { cwd: '/', hostname: 'h', memoryBytes: 1 });
  const expected = [...brokerKeys().values()].filter((key) => key.effect !== 'none');
  for (const key of expected) assert(settings.asked.has(key.name), `nobody reads ${key.name}`);
  for (const name of settings.asked) {
    assert(brokerKeys().get(name)?.effect !== 'none', `${name} is read, but not said to be`);
  }
});

test('only the first problem of a key is reported', () => {
  const problems = new Problems();
  const settings = gather([{ key: 'num.partitions', value: ' x ', origin: 'f:1' }], problems);
  settings.refuse('num.partitions', 'again');
  assert.deepEqual(problems.errors, [
    'num.partitions=x (f:1): allowed: a whole number from 1 to 2147483647.',
  ]);
  assert.equal(settings.number('num.partitions'), 1);
  assert.equal(settings.has('num.partitions'), false);
});

test('units are scaled exactly, "no limit" stays', () => {
  assert.equal(scaled('336', 3_600_000), '1209600000');
  assert.equal(scaled('9007199254740993', 1_000), '9007199254740993000');
  assert.equal(scaled('-1', 60_000), '-1');
  assert.equal(scaled('any', 1), 'any');
});

test.run();
