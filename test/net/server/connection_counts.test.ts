import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ConnectionCounts } from '../../../net/server/connection_counts.ts';

const test = suite('connection counts');

test('the limit of all connections', () => {
  const counts = new ConnectionCounts({ connectionsMax: 2, connectionsPerIpMax: 10 });
  counts.add(1, '10.0.0.1');
  assert.equal(counts.refusal('10.0.0.2'), null);
  counts.add(2, '10.0.0.2');
  assert.match(counts.refusal('10.0.0.3') ?? '', /max\.connections is 2/);
  assert(counts.remove(1));
  assert.equal(counts.refusal('10.0.0.3'), null);
});

test('the limit for each address; IPv4 is the same address on both kinds of sockets', () => {
  const counts = new ConnectionCounts({ connectionsMax: 100, connectionsPerIpMax: 2 });
  counts.add(1, '10.0.0.1');
  counts.add(2, '::ffff:10.0.0.1');
  assert.equal(counts.openFrom('10.0.0.1'), 2);
  assert.match(counts.refusal('10.0.0.1') ?? '', /max\.connections\.per\.ip is 2/);
  assert.match(counts.refusal('::ffff:10.0.0.1') ?? '', /per\.ip/);
  assert.equal(counts.refusal('::1'), null);
  counts.remove(2);
  assert.equal(counts.refusal('10.0.0.1'), null);
});

test('addresses with a limit of their own, none at all included', () => {
  const counts = new ConnectionCounts({
    connectionsMax: 100,
    connectionsPerIpMax: 1,
    connectionsPerIpOverrides: { '10.0.0.1': 2, '10.0.0.2': 0 },
  });
  counts.add(1, '10.0.0.1');
  assert.equal(counts.refusal('10.0.0.1'), null);
  counts.add(2, '10.0.0.1');
  assert.match(counts.refusal('10.0.0.1') ?? '', /overrides has 2 for 10\.0\.0\.1/);
  assert.match(counts.refusal('::ffff:10.0.0.2') ?? '', /overrides has 0/);
  assert.equal(counts.refusal('constructor'), null);
});

test('a connection is counted out once', () => {
  const counts = new ConnectionCounts({ connectionsMax: 100, connectionsPerIpMax: 100 });
  counts.add(1, 'a');
  counts.add(2, 'a');
  assert(counts.remove(1));
  assert(!counts.remove(1));
  assert.deepEqual([counts.open, counts.openFrom('a')], [1, 1]);
  counts.remove(2);
  assert.deepEqual([counts.open, counts.openFrom('a')], [0, 0]);
});

test.run();
