/** The server-side assignors: what they promise, on random groups. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import {
  type AssignorInput,
  type AssignorMember,
  assignors,
} from '../../../engine/groups/assignor.ts';
import type { ConsumerAssignorName } from '../../../engine/groups/group_options.ts';
import type { TopicPartitions } from '../../../engine/groups/group_records.ts';
import { SeededRandom } from '../../sim/seeded_random.ts';

const test = suite('assignors');

function member(
  memberId: string,
  topicIds: readonly string[],
  target: readonly TopicPartitions[] = [],
): AssignorMember {
  return { memberId, instanceId: null, topicIds, target };
}

const keysOf = (topics: readonly TopicPartitions[]): string[] =>
  topics.flatMap(({ topicId, partitions }) =>
    partitions.map((partition) => `${topicId}-${partition}`),
  );

/** Everything is given to one subscriber exactly. */
function check(input: AssignorInput, name: ConsumerAssignorName): Map<string, string[]> {
  const assignment = assignors[name](input);
  const given = new Set<string>();
  const result = new Map<string, string[]>();
  for (const { memberId, topicIds } of input.members) {
    const topics = assignment.get(memberId) ?? [];
    for (const { topicId } of topics) assert(topicIds.includes(topicId), `${memberId}: ${topicId}`);
    const keys = keysOf(topics);
    for (const key of keys) {
      assert(!given.has(key), `${key} is given twice`);
      given.add(key);
    }
    result.set(memberId, keys);
  }
  const subscribed = new Set(input.members.flatMap(({ topicIds }) => topicIds));
  let expected = 0;
  for (const [topicId, count] of input.partitionCounts)
    if (subscribed.has(topicId)) expected += count;
  assert.equal(given.size, expected);
  return result;
}

function randomGroup(random: SeededRandom, isHomogeneous: boolean): AssignorInput {
  const topics = Array.from({ length: 1 + random.below(5) }, (_, index) => `T${index}`);
  const partitionCounts = new Map(topics.map((topicId) => [topicId, 1 + random.below(10)]));
  const members = Array.from({ length: 1 + random.below(8) }, (_, index) => {
    const mine = isHomogeneous ? topics : topics.filter(() => random.chance(0.6));
    return member(`m${index}`, mine);
  });
  return { members, partitionCounts, isHomogeneous };
}

/** The same group with its last target, and with members gone and come. */
function nextRound(
  random: SeededRandom,
  input: AssignorInput,
  assigned: ReturnType<(typeof assignors)['uniform']>,
): AssignorInput {
  const members = input.members
    .filter(() => random.chance(0.8))
    .map((each) => ({ ...each, target: assigned.get(each.memberId) ?? [] }));
  const topicIds = input.members[0]?.topicIds ?? [];
  for (let index = 0; index < random.below(3); index += 1)
    members.push(member(`n${index}`, topicIds));
  return { ...input, members };
}

test('uniform: loads differ by one at most, and nobody loses more than it must', () => {
  const random = new SeededRandom(1);
  for (let round = 0; round < 300; round += 1) {
    const first = randomGroup(random, true);
    check(first, 'uniform');
    const second = nextRound(random, first, assignors.uniform(first));
    const result = check(second, 'uniform');
    const sizes = [...result.values()].map(({ length }) => length);
    assert(sizes.length === 0 || Math.max(...sizes) - Math.min(...sizes) <= 1, `${sizes}`);
    const most = Math.max(...sizes);
    for (const { memberId, target } of second.members) {
      const now = result.get(memberId) ?? [];
      const before = keysOf(target);
      const kept = before.filter((key) => now.includes(key)).length;
      assert(
        kept >= Math.min(before.length, most - 1),
        `${memberId} kept ${kept} of ${before.length}`,
      );
      if (before.length <= most - 1) assert.equal(kept, before.length);
    }
  }
});

test('uniform: an assignment that is balanced stays', () => {
  const random = new SeededRandom(2);
  for (let round = 0; round < 200; round += 1) {
    const input = randomGroup(random, round % 2 === 0);
    const assigned = assignors.uniform(input);
    const members = input.members.map((each) => ({
      ...each,
      target: assigned.get(each.memberId) ?? [],
    }));
    const again = assignors.uniform({ ...input, members });
    for (const { memberId, target } of members)
      assert.deepEqual(
        new Set(keysOf(again.get(memberId) ?? [])),
        new Set(keysOf(target)),
        `round ${round}`,
      );
  }
});

test('uniform: with different subscriptions no single move makes loads more alike', () => {
  const random = new SeededRandom(3);
  for (let round = 0; round < 300; round += 1) {
    const input = randomGroup(random, false);
    const result = check(input, 'uniform');
    for (const giver of input.members)
      for (const key of result.get(giver.memberId) ?? [])
        for (const taker of input.members) {
          if (!taker.topicIds.includes(key.slice(0, key.indexOf('-')))) continue;
          const less = result.get(taker.memberId)?.length ?? 0;
          const more = result.get(giver.memberId)?.length ?? 0;
          assert(more - less <= 1, `${key} would better go from ${more} to ${less}`);
        }
  }
});

test('range: neighbouring partitions, in the order of the members, alike for topics of one size', () => {
  const members = ['b', 'c', 'a'].map((memberId) => member(memberId, ['T', 'U']));
  const partitionCounts = new Map([
    ['T', 7],
    ['U', 7],
  ]);
  const result = check({ members, partitionCounts, isHomogeneous: true }, 'range');
  assert.deepEqual(result.get('a'), ['T-0', 'T-1', 'T-2', 'U-0', 'U-1', 'U-2']);
  assert.deepEqual(result.get('b'), ['T-3', 'T-4', 'U-3', 'U-4']);
  assert.deepEqual(result.get('c'), ['T-5', 'T-6', 'U-5', 'U-6']);
});

test('range: static members stand first, by their instance', () => {
  const members = [
    member('a', ['T']),
    { ...member('z', ['T']), instanceId: 'i2' },
    { ...member('y', ['T']), instanceId: 'i1' },
  ];
  const result = check(
    { members, partitionCounts: new Map([['T', 2]]), isHomogeneous: true },
    'range',
  );
  assert.deepEqual(
    [...result],
    [
      ['a', []],
      ['z', ['T-1']],
      ['y', ['T-0']],
    ],
  );
});

test('range: gives every topic to its own subscribers', () => {
  const random = new SeededRandom(4);
  for (let round = 0; round < 200; round += 1) check(randomGroup(random, round % 2 === 0), 'range');
});

test.run();
