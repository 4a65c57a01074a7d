import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { ask, commitRequest, groupWorld, rest, stableGroup } from '../groups/group_world.ts';

const test = suite('15, 16, 42, 47: administration of groups');

for (let version = 0; version <= 6; version += 1)
  test(`describe v${version}`, async () => {
    const world = await groupWorld();
    const { memberId } = await stableGroup(world, 'g');
    const asked = version >= 3 ? { includeAuthorizedOperations: true } : {};
    const { groups } = await ask(world, 'DescribeGroups', version, {
      groups: ['g', 'nobody'],
      ...asked,
    });
    const [group, nobody] = groups;
    assert(group !== undefined && nobody !== undefined);
    assert.deepEqual(
      [group.errorCode, group.groupState, group.protocolType, group.protocolData],
      [0, 'Stable', 'consumer', 'range'],
    );
    const [member] = group.members;
    assert.deepEqual(
      [
        member?.memberId,
        member?.clientId,
        member?.clientHost,
        [...(member?.memberAssignment ?? [])],
      ],
      [memberId, 'test', '/127.0.0.1', [7]],
    );
    // READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS, as Kafka has them for groups.
    if (version >= 3) assert.equal(group.authorizedOperations, 0b1101_0100_1000);
    assert.equal(nobody.groupState, 'Dead');
    assert.equal(nobody.errorCode, version >= 6 ? ErrorCode.GROUP_ID_NOT_FOUND : 0);
    if (version >= 6) assert.match(nobody.errorMessage ?? '', /nobody/);
  });

for (let version = 0; version <= 5; version += 1)
  test(`list v${version}`, async () => {
    const world = await groupWorld();
    await stableGroup(world, 'g');
    await ask(world, 'OffsetCommit', 8, commitRequest('empty', [[0, 1]]));
    const list = async (filters: object = {}) => {
      const { errorCode, groups } = await ask(world, 'ListGroups', version, filters);
      assert.equal(errorCode, 0);
      return groups
        .map((one) => [one.groupId, one.protocolType, one.groupState, one.groupType])
        .sort();
    };
    const state = (name: string): string => (version >= 4 ? name : '');
    const type = version >= 5 ? 'classic' : '';
    const [empty, stable] = [
      ['empty', '', state('Empty'), type],
      ['g', 'consumer', state('Stable'), type],
    ];
    assert.deepEqual(await list(), [empty, stable]);
    if (version >= 4) {
      assert.deepEqual(await list({ statesFilter: ['Stable'] }), [stable]);
      assert.deepEqual(await list({ statesFilter: ['stable', 'EMPTY'] }), [empty, stable]);
      assert.deepEqual(await list({ statesFilter: ['Dead'] }), []);
    }
    if (version >= 5) {
      assert.deepEqual(await list({ typesFilter: ['Classic'] }), [empty, stable]);
      assert.deepEqual(await list({ typesFilter: ['consumer'] }), []);
    }
  });

test('while a coordinator loads, the list is not complete', async () => {
  const world = await groupWorld();
  await stableGroup(world, 'g');
  world.kill();
  await world.open();
  const early = await ask(world, 'ListGroups', 4, {});
  await rest(world);
  const late = await ask(world, 'ListGroups', 4, {});
  assert.deepEqual([late.errorCode, late.groups.length], [0, 1]);
  // The first answer may have come when all was loaded already.
  if (early.errorCode !== 0)
    assert.deepEqual([early.errorCode, early.groups], [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, []]);
});

for (let version = 0; version <= 3; version += 1)
  test(`delete v${version}: groups without members`, async () => {
    const world = await groupWorld();
    await stableGroup(world, 'g');
    await ask(world, 'OffsetCommit', 8, commitRequest('empty', [[0, 1]]));
    const { results } = await ask(world, 'DeleteGroups', version, {
      groupsNames: ['g', 'empty', 'nobody', 'empty'],
    });
    assert.deepEqual(
      results.map(({ groupId, errorCode }) => [groupId, errorCode]),
      [
        ['g', ErrorCode.NON_EMPTY_GROUP],
        ['empty', 0],
        ['nobody', ErrorCode.GROUP_ID_NOT_FOUND],
      ],
    );
    // And it stays away.
    world.kill();
    await world.open();
    await rest(world);
    const { groups } = await ask(world, 'ListGroups', 4, {});
    assert.deepEqual(
      groups.map(({ groupId }) => groupId),
      ['g'],
    );
  });

test('offset delete: what is committed goes, what does not exist is refused, each topic once', async () => {
  const world = await groupWorld();
  await ask(
    world,
    'OffsetCommit',
    8,
    commitRequest('g', [
      [0, 1],
      [1, 2],
    ]),
  );
  const answer = await ask(world, 'OffsetDelete', 0, {
    groupId: 'g',
    topics: [
      { name: 't', partitions: [{ partitionIndex: 0 }, { partitionIndex: 5 }] },
      { name: 'nope', partitions: [{ partitionIndex: 0 }] },
    ],
  });
  assert.equal(answer.errorCode, 0);
  assert.deepEqual(
    answer.topics.map(({ name, partitions }) => [
      name,
      partitions.map((one) => [one.partitionIndex, one.errorCode]),
    ]),
    [
      [
        't',
        [
          [0, 0],
          [5, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
        ],
      ],
      ['nope', [[0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]]],
    ],
  );
  const { groups } = await ask(world, 'OffsetFetch', 8, {
    groups: [{ groupId: 'g', topics: null }],
  });
  assert.deepEqual(
    groups[0]?.topics[0]?.partitions.map((one) => one.partitionIndex),
    [1],
  );
  const unknown = await ask(world, 'OffsetDelete', 0, {
    groupId: 'nobody',
    topics: [{ name: 't', partitions: [{ partitionIndex: 0 }] }],
  });
  assert.deepEqual([unknown.errorCode, unknown.topics], [ErrorCode.GROUP_ID_NOT_FOUND, []]);
});

test.run();
