import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { type PlacementBroker, placeReplicas } from '../../../replication/metadata/placement.ts';
import { splitMix } from '../../harness/split_mix.ts';

const test = suite('placement');

function brokers(
  racks: readonly (string | null)[],
  fenced: readonly number[] = [],
): PlacementBroker[] {
  return racks.map((rack, id) => ({ id, rack, fenced: fenced.includes(id) }));
}

function place(
  cluster: PlacementBroker[],
  partitions: number,
  replicationFactor: number,
  seed: number,
): readonly (readonly number[])[] {
  const placement = placeReplicas(cluster, partitions, replicationFactor, splitMix(seed));
  assert(placement.replicas !== null, placement.problem ?? '');
  return placement.replicas;
}

test('leaders spread evenly, replicas of a partition are different brokers', () => {
  for (let seed = 1; seed <= 50; seed += 1) {
    const placed = place(brokers([null, null, null, null, null]), 23, 3, seed);
    const led = [0, 0, 0, 0, 0];
    for (const replicas of placed) {
      assert.equal(replicas.length, 3);
      assert.equal(new Set(replicas).size, 3);
      led[replicas[0]!]! += 1;
    }
    assert(Math.max(...led) - Math.min(...led) <= 1, `seed ${seed}: ${led}`);
  }
});

test('the followers of one leader vary', () => {
  const placed = place(brokers([null, null, null, null]), 12, 2, 3);
  const pairs = new Set(placed.map((replicas) => replicas.join()));
  assert.equal(pairs.size, 12);
});

test('a partition is in as many racks as there are', () => {
  for (let seed = 1; seed <= 50; seed += 1) {
    const racks = ['a', 'a', 'a', 'b', 'c'];
    for (const replicas of place(brokers(racks), 20, 3, seed))
      assert.equal(new Set(replicas.map((id) => racks[id])).size, 3, `seed ${seed}`);
  }
});

test('fenced brokers follow only where there are too few others', () => {
  for (const replicas of place(brokers([null, null, null], [2]), 9, 2, 1))
    assert(!replicas.includes(2));
  for (const replicas of place(brokers([null, null, null], [2]), 9, 3, 1))
    assert.equal(replicas.indexOf(2), 2);
});

test('too few brokers, or none alive, are refused', () => {
  assert.match(
    placeReplicas(brokers([null]), 1, 2, splitMix(1)).problem ?? '',
    /only 1 broker\(s\) are registered/,
  );
  assert.match(placeReplicas(brokers([null], [0]), 1, 1, splitMix(1)).problem ?? '', /fenced/);
  assert.match(placeReplicas([], 1, 1, splitMix(1)).problem ?? '', /only 0 broker/);
});

test.run();
