import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { Codec, codecOf } from '../../../engine/batch/header.ts';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { partitionOfGroup } from '../../../net/groups/offsets_topic.ts';
import type { MetadataChanges } from '../../../replication/metadata/changes.ts';
import { WorldConnection } from '../data_path/client.ts';
import type { ShardWorld } from '../data_path/shard_world.ts';
import {
  ask,
  commitRequest,
  committed,
  groupWorld,
  joinRequest,
  rest,
  stableGroup,
} from './group_world.ts';

const test = suite('coordinators of a shard');

test('groups behind an offset are told with where they are and how many members they have', async () => {
  const world = await groupWorld();
  const { memberId, generationId } = await stableGroup(world, 'live');
  await ask(world, 'OffsetCommit', 8, {
    ...commitRequest('live', [[0, 10]]),
    memberId,
    generationIdOrMemberEpoch: generationId,
  });
  await ask(world, 'OffsetCommit', 8, commitRequest('empty', [[0, 20]]));
  await ask(world, 'OffsetCommit', 8, commitRequest('ahead', [[0, 50]]));
  await ask(world, 'OffsetCommit', 8, commitRequest('elsewhere', [[1, 1]]));
  const behind = async (endOffset: number) =>
    new Map(
      (await world.groups.behind({ topic: 't', partition: 0, endOffset })).map((one) => [
        one.groupId,
        [one.committedOffset, one.members],
      ]),
    );
  assert.deepEqual(
    await behind(50),
    new Map([
      ['live', [10, 1]],
      ['empty', [20, 0]],
    ]),
  );
  assert.deepEqual(await behind(11), new Map([['live', [10, 1]]]));
  assert.deepEqual(await behind(10), new Map());
});

test('what they write is compressed as offsets.topic.compression.codec says, and read again', async () => {
  const world = await groupWorld(['offsets.topic.compression.codec=4']);
  await ask(world, 'OffsetCommit', 8, commitRequest('g', [[0, 10]]));
  const partition = partitionOfGroup('g', 3);
  const bytes = world.disk.readFile(
    `/data/a/__consumer_offsets-${partition}/00000000000000000000.log`,
  );
  assert(bytes !== null);
  assert.equal(codecOf(bytes, 0), Codec.zstd);
  world.kill();
  await world.open();
  await rest(world);
  assert.deepEqual(await committed(world, 'g'), { 0: 10 });
});

test('a topic of the groups that is deleted and made again begins anew', async () => {
  const world = await groupWorld();
  await ask(world, 'OffsetCommit', 8, commitRequest('g', [[0, 10]]));
  await world.deleteTopic('__consumer_offsets');
  const { groups } = await ask(world, 'ListGroups', 4, {});
  assert.deepEqual(groups, []);
  await ask(world, 'FindCoordinator', 4, { coordinatorKeys: ['g'] });
  await ask(world, 'OffsetCommit', 8, commitRequest('h', [[0, 1]]));
  const after = await ask(world, 'ListGroups', 4, {});
  assert.deepEqual(
    after.groups.map(({ groupId }) => groupId),
    ['h'],
  );
});

test('who waits in a rebalance when the log directory fails is sent away at once', async () => {
  const world = await groupWorld();
  await stableGroup(world, 'g');
  const told = await ask(world, 'JoinGroup', 9, joinRequest(9, 'g'));
  const connection = new WorldConnection(world);
  const waiting = connection.send('JoinGroup', 9, joinRequest(9, 'g', told.memberId));
  await rest(world);
  assert.equal(waiting.isAnswered, false);
  const leader = world.leader('__consumer_offsets', partitionOfGroup('g', 3));
  leader.refuse(ErrorCode.KAFKA_STORAGE_ERROR);
  await rest(world);
  assert.equal(waiting.response().errorCode, ErrorCode.NOT_COORDINATOR);
  const after = await ask(world, 'JoinGroup', 9, joinRequest(9, 'g'));
  assert.equal(after.errorCode, ErrorCode.NOT_COORDINATOR);
});

/** Another broker leads all partitions of the groups' topic, or this one again. */
async function moveLeadership(
  world: ShardWorld,
  leader: number,
  leaderEpoch: number,
): Promise<void> {
  const topic = world.image.topic('__consumer_offsets')!;
  const changedPartitions = topic.partitions.map((previous) => {
    const partition = { ...previous, replicas: [1, 2], leader, leaderEpoch };
    return { topic, previous, partition };
  });
  const changes = { ...noChanges, changedPartitions };
  world.partitions.apply(changes);
  world.groups.apply(changes);
  await rest(world);
}

const noChanges: MetadataChanges = {
  deletedPartitions: [],
  createdPartitions: [],
  changedPartitions: [],
  deletedTopics: [],
  createdTopics: [],
  changedTopicConfigs: [],
  changedBrokerConfigs: [],
  changedBrokers: [],
  featuresChanged: false,
};

test('coordinators resign with the leadership of their partitions, and load again when it comes back', async () => {
  const world = await groupWorld();
  await ask(world, 'OffsetCommit', 8, commitRequest('g', [[0, 10]]));
  await stableGroup(world, 'live');
  const joining = await ask(world, 'JoinGroup', 9, joinRequest(9, 'live'));
  const connection = new WorldConnection(world);
  const waiting = connection.send('JoinGroup', 9, joinRequest(9, 'live', joining.memberId));
  await rest(world);
  await moveLeadership(world, 2, 1);
  assert.equal(waiting.response().errorCode, ErrorCode.NOT_COORDINATOR);
  const refused = await ask(world, 'OffsetCommit', 8, commitRequest('g', [[0, 20]]));
  assert.equal(refused.topics[0]?.partitions[0]?.errorCode, ErrorCode.NOT_COORDINATOR);
  assert.deepEqual((await ask(world, 'ListGroups', 4, {})).groups, []);
  await moveLeadership(world, 1, 2);
  const { groups } = await ask(world, 'ListGroups', 4, {});
  assert.deepEqual(groups.map(({ groupId }) => groupId).sort(), ['g', 'live']);
  const behind = await world.groups.behind({ topic: 't', partition: 0, endOffset: 11 });
  assert.deepEqual(
    behind.map(({ groupId, committedOffset }) => [groupId, committedOffset]),
    [['g', 10]],
  );
});

test.run();
