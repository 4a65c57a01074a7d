/** The classic assignors: Kafka's documented examples, and what must hold of any assignment. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import {
  assign,
  type GroupAssignment,
  type Strategy,
  type Subscriber,
} from '../../../../net/client/consumer/assignors.ts';
import { keyOf, type TopicPartition } from '../../../../net/client/consumer/topic_partition.ts';
import { type Random, splitMix } from '../../../harness/split_mix.ts';

const test = suite('assignors');

function member(
  memberId: string,
  topics: readonly string[],
  owned: string[] = [],
  generationId = -1,
): Subscriber {
  return { memberId, instanceId: null, topics, owned: owned.map(partitionOf), generationId };
}

function partitionOf(name: string): TopicPartition {
  const dash = name.lastIndexOf('-');
  return { topic: name.slice(0, dash), partition: Number(name.slice(dash + 1)) };
}

function shown(assignment: GroupAssignment): Record<string, string[]> {
  return Object.fromEntries(
    [...assignment].map(([id, partitions]) => [id, partitions.map(keyOf).sort()]),
  );
}

// The examples of the Java client's class comments (RangeAssignor, RoundRobinAssignor, StickyAssignor).

test('range: two members, two topics of three partitions', () => {
  const topics = ['t0', 't1'];
  const members = [member('C1', topics), member('C0', topics)];
  const counts = new Map([
    ['t0', 3],
    ['t1', 3],
  ]);
  assert.deepEqual(shown(assign('range', members, counts)), {
    C0: ['t0-0', 't0-1', 't1-0', 't1-1'],
    C1: ['t0-2', 't1-2'],
  });
});

test('range: static members stand in the order of their instance ids, before the others', () => {
  const members = [
    { ...member('a', ['t']), instanceId: 'z' },
    { ...member('b', ['t']), instanceId: 'y' },
    member('0', ['t']),
  ];
  assert.deepEqual(shown(assign('range', members, new Map([['t', 3]]))), {
    b: ['t-0'],
    a: ['t-1'],
    '0': ['t-2'],
  });
});

test('roundrobin: the same subscriptions', () => {
  const topics = ['t0', 't1'];
  const members = [member('C0', topics), member('C1', topics)];
  const counts = new Map([
    ['t0', 3],
    ['t1', 3],
  ]);
  assert.deepEqual(shown(assign('roundrobin', members, counts)), {
    C0: ['t0-0', 't0-2', 't1-1'],
    C1: ['t0-1', 't1-0', 't1-2'],
  });
});

test('roundrobin: different subscriptions', () => {
  const members = [
    member('C0', ['t0']),
    member('C1', ['t0', 't1']),
    member('C2', ['t0', 't1', 't2']),
  ];
  const counts = new Map([
    ['t0', 1],
    ['t1', 2],
    ['t2', 3],
  ]);
  assert.deepEqual(shown(assign('roundrobin', members, counts)), {
    C0: ['t0-0'],
    C1: ['t1-0'],
    C2: ['t1-1', 't2-0', 't2-1', 't2-2'],
  });
});

test('sticky: who stays keeps everything when another member goes', () => {
  const topics = ['t0', 't1', 't2', 't3'];
  const counts = new Map(topics.map((topic) => [topic, 2]));
  const three = ['C0', 'C1', 'C2'].map((id) => member(id, topics));
  const first = assign('sticky', three, counts);
  const two = ['C0', 'C2'].map((id) => ({
    ...member(id, topics, [], 1),
    owned: first.get(id) ?? [],
  }));
  const second = assign('sticky', two, counts);
  for (const { memberId, owned } of two) {
    const now = new Set((second.get(memberId) ?? []).map(keyOf));
    for (const one of owned) assert(now.has(keyOf(one)), `${memberId} lost ${keyOf(one)}`);
    assert.equal(now.size, 4);
  }
});

test('sticky: the later generation is right about who has a partition (KIP-341)', () => {
  const members = [
    member('late', ['t'], ['t-0', 't-1'], 5),
    member('old', ['t'], ['t-0', 't-1', 't-2'], 4),
  ];
  const { late, old } = shown(assign('sticky', members, new Map([['t', 4]])));
  assert.deepEqual(late, ['t-0', 't-1']);
  assert.deepEqual(old, ['t-2', 't-3']);
});

test('cooperative-sticky: what changes hands goes to nobody at first (KIP-429)', () => {
  const counts = new Map([['t', 4]]);
  const before = [member('a', ['t'], ['t-0', 't-1', 't-2', 't-3'], 1), member('b', ['t'], [], 1)];
  const first = shown(assign('cooperative-sticky', before, counts));
  assert.deepEqual(first, { a: ['t-0', 't-1'], b: [] });
  const after = [member('a', ['t'], ['t-0', 't-1'], 2), member('b', ['t'], [], 2)];
  assert.deepEqual(shown(assign('cooperative-sticky', after, counts)), {
    a: ['t-0', 't-1'],
    b: ['t-2', 't-3'],
  });
});

test("topics that do not exist are nobody's", () => {
  for (const strategy of strategies)
    assert.deepEqual(shown(assign(strategy, [member('a', ['gone'])], new Map())), { a: [] });
});

const strategies: readonly Strategy[] = ['range', 'roundrobin', 'sticky', 'cooperative-sticky'];

function randomGroup(
  random: Random,
  isHomogeneous: boolean,
): { members: Subscriber[]; counts: Map<string, number> } {
  const topics = Array.from({ length: 1 + random(5) }, (_, at) => `topic-${at}`);
  const counts = new Map(topics.map((topic) => [topic, 1 + random(9)]));
  const members = Array.from({ length: 1 + random(7) }, (_, at) => {
    const chosen = topics.filter(() => isHomogeneous || random(2) === 0);
    return member(`m${at}`, chosen.length === 0 ? topics.slice(0, 1) : chosen);
  });
  return { members, counts };
}

/** Each partition that somebody wants has exactly one owner, who wants it. */
function assertComplete(
  { members, counts }: { members: readonly Subscriber[]; counts: ReadonlyMap<string, number> },
  assignment: GroupAssignment,
): void {
  const wanted = new Set(members.flatMap(({ topics }) => topics));
  const owners = new Set<string>();
  for (const { memberId, topics } of members)
    for (const one of assignment.get(memberId) ?? []) {
      assert(topics.includes(one.topic), `${memberId} does not want ${one.topic}`);
      assert(!owners.has(keyOf(one)), `${keyOf(one)} has two owners`);
      owners.add(keyOf(one));
    }
  const all = [...counts].filter(([topic]) => wanted.has(topic));
  assert.equal(
    owners.size,
    all.reduce((sum, [, count]) => sum + count, 0),
  );
}

function sizes(assignment: GroupAssignment): number[] {
  return [...assignment.values()].map(({ length }) => length);
}

test('all partitions have one owner, whatever the group looks like', () => {
  for (let seed = 1; seed <= 300; seed += 1) {
    const random = splitMix(seed);
    const group = randomGroup(random, random(2) === 0);
    for (const strategy of strategies) {
      try {
        assertComplete(group, assign(strategy, group.members, group.counts));
      } catch (error) {
        throw new Error(`seed ${seed}, ${strategy}: ${(error as Error).message}`, { cause: error });
      }
    }
  }
});

test('with the same subscriptions loads differ by one at most, and no more moves than that takes', () => {
  for (let seed = 1; seed <= 300; seed += 1) {
    const random = splitMix(seed);
    const { members, counts } = randomGroup(random, true);
    const first = assign('sticky', members, counts);
    const spread = (assignment: GroupAssignment): number =>
      Math.max(...sizes(assignment)) - Math.min(...sizes(assignment));
    assert(spread(first) <= 1, `seed ${seed}: ${sizes(first)}`);
    const [topics] = members.map((one) => one.topics);
    const joined = [
      ...members.map((one) => ({ ...one, owned: first.get(one.memberId) ?? [], generationId: 1 })),
      member('new', topics ?? [], [], -1),
    ];
    const second = assign('sticky', joined, counts);
    assert(spread(second) <= 1, `seed ${seed}: ${sizes(second)}`);
    const owner = new Map(
      [...first].flatMap(([id, list]) => list.map((one) => [keyOf(one), id] as const)),
    );
    for (const [id, partitions] of second)
      for (const one of partitions)
        assert(
          id === 'new' || owner.get(keyOf(one)) === id,
          `seed ${seed}: ${keyOf(one)} moved to ${id}`,
        );
  }
});

test('cooperative-sticky gets to a complete assignment, and never gives what another one has', () => {
  for (let seed = 1; seed <= 200; seed += 1) {
    const random = splitMix(seed);
    const { members, counts } = randomGroup(random, random(2) === 0);
    const start = assign('roundrobin', members.slice(0, Math.ceil(members.length / 2)), counts);
    let owned: GroupAssignment = new Map(
      members.map(({ memberId }) => [memberId, start.get(memberId) ?? []]),
    );
    for (let round = 1; ; round += 1) {
      assert(round < 5, `seed ${seed}: no end`);
      const now = members.map((one) => ({
        ...one,
        owned: owned.get(one.memberId) ?? [],
        generationId: round,
      }));
      const next = assign('cooperative-sticky', now, counts);
      const owner = new Map(
        now.flatMap((one) => one.owned.map((p) => [keyOf(p), one.memberId] as const)),
      );
      for (const [id, partitions] of next)
        for (const one of partitions)
          assert([undefined, id].includes(owner.get(keyOf(one))), `seed ${seed}: ${keyOf(one)}`);
      const isSame = members.every(
        ({ memberId }) => shown(next)[memberId]?.join() === shown(owned)[memberId]?.join(),
      );
      owned = next;
      if (isSame) break;
    }
    assertComplete({ members, counts }, owned);
  }
});

test.run();
