import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { Codec } from '../../../engine/batch/header.ts';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type { CoordinatorEffect } from '../../../engine/groups/coordinator_events.ts';
import type { GroupReply, GroupRequest } from '../../../engine/groups/group_api.ts';
import type { GroupRecord } from '../../../engine/groups/group_records.ts';
import { PartitionCoordinator } from '../../../net/groups/partition_coordinator.ts';
import { Purgatory } from '../../../net/server/purgatory.ts';
import { ShardWorld } from '../data_path/shard_world.ts';
import { startMs } from '../data_path/world_clock.ts';
import { ScriptedMachine } from './scripted_machine.ts';

const test = suite('coordinator of a partition');

const client = { clientId: 'c', clientHost: '/127.0.0.1' };
const heartbeat: GroupRequest = {
  api: 'Heartbeat',
  body: { groupId: 'g', generationId: 1, memberId: 'm', groupInstanceId: null },
};
const commit: GroupRequest = {
  api: 'OffsetCommit',
  body: {
    apiVersion: 8,
    groupId: 'g',
    generationIdOrMemberEpoch: -1,
    memberId: '',
    groupInstanceId: null,
    retentionTimeMs: -1n,
    topics: [
      {
        name: 't',
        topicId: 'AAAAAAAAAAAAAAAAAAAAAA',
        partitions: [
          {
            partitionIndex: 0,
            committedOffset: 5n,
            committedLeaderEpoch: -1,
            committedMetadata: '',
          },
        ],
      },
    ],
  },
};
const alive: GroupReply = { api: 'Heartbeat', body: { errorCode: ErrorCode.NONE } };

function tombstone(topic: string): GroupRecord {
  return { type: 'OffsetCommit', key: { group: 'g', topic, partition: 0 }, value: null };
}

function append(appendId: number, ...topics: string[]): CoordinatorEffect {
  return { type: 'append', appendId, records: topics.map(tombstone) };
}

interface Fixture {
  readonly world: ShardWorld;
  readonly machine: ScriptedMachine;
  readonly coordinator: PartitionCoordinator;
  /** Types of the events since the last call, with the ids of appends. */
  events(): string[];
  /** What was put off happens. */
  laterTurn(): void;
}

async function fixture(): Promise<Fixture> {
  const world = await ShardWorld.start({ topics: [['offsets', 1]] });
  const machine = new ScriptedMachine();
  const turns: (() => void)[] = [];
  const coordinator = new PartitionCoordinator({
    leader: world.leader('offsets'),
    machine,
    clock: world.clock,
    timers: new Purgatory(world.clock),
    logger: world.logger,
    compression: Codec.none,
    commitTimeoutMs: 5_000,
    defer: (run) => turns.push(run),
  });
  coordinator.loaded();
  const events = (): string[] =>
    machine.events
      .splice(0)
      .map((event) => ('appendId' in event ? `${event.type} ${event.appendId}` : event.type));
  events();
  const laterTurn = (): void => {
    for (const run of turns.splice(0)) run();
  };
  return { world, machine, coordinator, events, laterTurn };
}

/** What it is, or whether the promise has been fulfilled, and with what. */
async function outcome<T>(promise: T | Promise<T>): Promise<T | 'waits'> {
  return Promise.race([promise, new Promise<'waits'>((resolve) => setImmediate(resolve, 'waits'))]);
}

test('an append is committed when it is flushed, and not before', async () => {
  const { world, machine, coordinator, events } = await fixture();
  machine.next = [append(1, 'a', 'b'), append(2, 'c')];
  void coordinator.request(client, heartbeat);
  assert.deepEqual(events(), ['request']);
  world.endTurn();
  assert.deepEqual(events(), []);
  world.settle();
  assert.deepEqual(events(), ['committed 1', 'committed 2']);
  assert.equal(world.leader('offsets').log.logEndOffset, 3);
});

test('a reply goes to the request of its token', async () => {
  const { machine, coordinator } = await fixture();
  const first = coordinator.request(client, heartbeat);
  const second = coordinator.request(client, heartbeat);
  const tokens = machine.events.map((event) => (event.type === 'request' ? event.token : 0));
  machine.next = [{ type: 'reply', token: tokens[1] as number, reply: alive }];
  coordinator.topicsChanged(['t'], []);
  assert.equal(await outcome(first), 'waits');
  assert.equal(await outcome(second), alive);
});

test('what the machine answers at once needs no later turn', async () => {
  const { machine, coordinator } = await fixture();
  machine.next = [{ type: 'reply', token: 1, reply: alive }];
  assert.equal(coordinator.request(client, heartbeat), alive);
  machine.next = [];
  const second = coordinator.request(client, heartbeat);
  assert.equal(await outcome(second), 'waits');
});

test('after an append that the log refuses, those behind it are dropped', async () => {
  const { world, machine, coordinator, events, laterTurn } = await fixture();
  machine.next = [append(1, 'a')];
  void coordinator.request(client, heartbeat);
  const large = Array.from({ length: 40_000 }, (_, k) => `topic-with-a-long-name-${k}`);
  machine.next = [append(2, ...large), append(3, 'c')];
  void coordinator.request(client, heartbeat);
  // Not known to the machine yet: this is dropped as well.
  machine.next = [append(4, 'd')];
  void coordinator.request(client, heartbeat);
  laterTurn();
  const failure = machine.events.at(-1);
  assert.deepEqual(failure, {
    type: 'append_failed',
    appendId: 2,
    error: ErrorCode.MESSAGE_TOO_LARGE,
  });
  events();
  machine.next = [append(5, 'e')];
  void coordinator.request(client, heartbeat);
  world.settle();
  assert.deepEqual(events(), ['request', 'committed 1', 'committed 5']);
  assert.equal(world.leader('offsets').log.logEndOffset, 2);
});

test('when the disk is full, all that was not written has failed, once', async () => {
  const { world, machine, coordinator, events, laterTurn } = await fixture();
  machine.next = [append(1, 'a'), append(2, 'b')];
  void coordinator.request(client, heartbeat);
  world.disk.writeError = 'ENOSPC';
  world.settle();
  world.disk.writeError = null;
  laterTurn();
  assert.deepEqual(events(), ['request', 'append_failed 1']);
  machine.next = [append(3, 'a')];
  void coordinator.request(client, heartbeat);
  world.settle();
  assert.deepEqual(events(), ['request', 'committed 3']);
  assert.equal(world.leader('offsets').log.logEndOffset, 1);
});

test("the machine's deadline is kept, and may move", async () => {
  const { world, machine, coordinator } = await fixture();
  machine.nextDeadlineMs = world.clock.nowMs() + 100;
  void coordinator.request(client, heartbeat);
  machine.nextDeadlineMs = world.clock.nowMs() + 50;
  void coordinator.request(client, heartbeat);
  world.advance(49);
  assert.equal(machine.ticks.length, 0);
  world.advance(1);
  assert.equal(machine.ticks.length, 1);
  assert.equal(machine.ticks[0]?.wallMs, startMs + world.clock.nowMs());
  world.advance(1_000);
  assert.equal(machine.ticks.length, 1);
});

test('a commit that is not flushed in time is answered so that the client tries again', async () => {
  const { world, machine, coordinator } = await fixture();
  machine.next = [append(1, 'a')];
  const late = coordinator.request(client, commit);
  const member = coordinator.request(client, heartbeat);
  world.advance(4_999);
  assert.equal(await outcome(late), 'waits');
  world.advance(1);
  const reply = await outcome(late);
  assert(reply !== 'waits' && reply.api === 'OffsetCommit');
  assert.deepEqual(reply.body.topics[0]?.partitions, [
    { partitionIndex: 0, errorCode: ErrorCode.COORDINATOR_NOT_AVAILABLE },
  ]);
  assert.equal(await outcome(member), 'waits');
});

test('one that resigns does nothing any more', async () => {
  const { world, machine, coordinator, events } = await fixture();
  const parked = coordinator.request(client, heartbeat);
  const { token } = machine.events[0] as { token: number };
  machine.next = [append(1, 'a')];
  coordinator.topicsChanged(['t'], []);
  machine.nextDeadlineMs = world.clock.nowMs() + 10;
  const away: GroupReply = { api: 'Heartbeat', body: { errorCode: ErrorCode.NOT_COORDINATOR } };
  machine.next = [{ type: 'reply', token, reply: away }];
  coordinator.resign();
  assert.equal(await outcome(parked), away);
  events();
  world.settle();
  world.advance(100);
  const after = await outcome(coordinator.request(client, heartbeat));
  assert.deepEqual(after, away);
  assert.deepEqual([events(), machine.ticks], [[], []]);
});

test('lines in the log do not get longer than people read', async () => {
  const { world, machine, coordinator } = await fixture();
  machine.next = [{ type: 'log', level: 'info', message: 'x'.repeat(100_000) }];
  coordinator.topicsChanged(['t'], []);
  assert.equal(world.lines.length, 1);
  assert((world.lines[0] ?? '').length < 1_000);
});

test('a directory that fails ends the coordinator', async () => {
  const { world, machine, coordinator, events, laterTurn } = await fixture();
  machine.next = [append(1, 'a')];
  void coordinator.request(client, commit);
  world.leader('offsets').refuse(ErrorCode.KAFKA_STORAGE_ERROR);
  laterTurn();
  assert.deepEqual(events(), ['request', 'append_failed 1']);
  const reply = await outcome(coordinator.request(client, heartbeat));
  assert.deepEqual(reply, { api: 'Heartbeat', body: { errorCode: ErrorCode.NOT_COORDINATOR } });
  assert.deepEqual(events(), ['resigned']);
});

test.run();
