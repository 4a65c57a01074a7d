import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { brokerList } from '../../../bench/compare/broker_list.ts';

const test = suite('bench/compare/broker_list');
const place = { directory: '/data', port: 1, secondPort: 2 };

test('the work says what is durable, and millrace-fsync has its own way', () => {
  const [ours, flushed] = brokerList(['millrace', 'millrace-fsync']);
  assert.ok(ours?.command(place, 'os').includes('log.durability=os'));
  // Of several values for a setting the last one counts.
  assert.equal(flushed?.command(place, 'os').at(-1), 'log.durability=fsync');
});

test('a number of shards is set and known', () => {
  const [spec] = brokerList(['millrace@4']);
  assert.equal(spec?.name, 'millrace@4');
  assert.equal(spec?.shards, 4);
  assert.equal(spec?.command(place, 'os').at(-1), 'num.shards=4');
  assert.equal(brokerList(['base=/elsewhere'])[0]?.shards, null);
});

test('unknown names are refused', () => {
  assert.throws(() => brokerList(['nats']), /unknown broker nats/);
  assert.throws(() => brokerList(['millrace@0']), /unknown broker/);
});

test.run();
