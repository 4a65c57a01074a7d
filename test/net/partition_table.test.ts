import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { PartitionTable } from '../../net/partition_table.ts';
import type { PartitionLeader } from '../../replication/partition/leader.ts';

const test = suite('partition table');

/** The table looks at nothing else. */
function leader(topic: string, topicId: string, partition: number): PartitionLeader {
  return { topic, topicId, partition } as unknown as PartitionLeader;
}

test('a partition is found by name and by id, and by nothing else', () => {
  const table = new PartitionTable();
  const one = leader('t', 'id', 3);
  table.add(one);
  assert.equal(table.byName('t', 3), one);
  assert.equal(table.byId('id', 3), one);
  assert.equal(table.size, 1);
  for (const partition of [0, 4, -1, 0x7fffffff]) {
    assert.equal(table.byName('t', partition), undefined);
    assert.equal(table.byId('id', partition), undefined);
  }
  for (const name of ['u', 'id', '', '__proto__', 'constructor'])
    assert.equal(table.byName(name, 3), undefined);
  assert.deepEqual([...table.values()], [one]);
});

test('a partition taken out is gone; the others of its topic stay', () => {
  const table = new PartitionTable();
  const all = [0, 1].map((partition) => leader('t', 'id', partition));
  for (const one of all) table.add(one);
  assert.equal(table.remove('id', 0), all[0]);
  assert.equal(table.remove('id', 0), undefined);
  assert.equal(table.byName('t', 0), undefined);
  assert.equal(table.byName('t', 1), all[1]);
  assert.equal(table.remove('id', 1), all[1]);
  assert.equal(table.byId('id', 1), undefined);
  assert.deepEqual([table.size, [...table.values()]], [0, []]);
});

test('two topics of one name: the name is the younger one’s, also when the older one goes after it came', () => {
  const table = new PartitionTable();
  const old = leader('t', 'old', 0);
  const young = leader('t', 'young', 0);
  table.add(old);
  table.add(young);
  assert.equal(table.byName('t', 0), young);
  assert.equal(table.byId('old', 0), old);
  table.remove('old', 0);
  assert.equal(table.byName('t', 0), young);
  table.remove('young', 0);
  assert.equal(table.byName('t', 0), undefined);
});

test('the same partition twice is a fault of the program', () => {
  const table = new PartitionTable();
  table.add(leader('t', 'id', 0));
  assert.throws(() => table.add(leader('t', 'id', 0)), /t-0 twice/);
});

test.run();
