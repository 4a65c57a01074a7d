import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { encodeBatch } from '../../../engine/batch/encode.ts';
import { Codec, recordCountOf, writeInt32 } from '../../../engine/batch/header.ts';
import { newBatchInfo } from '../../../engine/batch/rules.ts';
import type { CoordinatorEvent } from '../../../engine/groups/coordinator_events.ts';
import { newAppendResult } from '../../../engine/log/append_result.ts';
import { CoordinatorLoader } from '../../../net/groups/coordinator_loader.ts';
import { encodeGroupRecord } from '../../../net/groups/group_records.ts';
import { PartitionCoordinator } from '../../../net/groups/partition_coordinator.ts';
import { Purgatory } from '../../../net/server/purgatory.ts';
import { WorldConnection } from '../data_path/client.ts';
import { produce } from '../data_path/requests.ts';
import { ShardWorld } from '../data_path/shard_world.ts';
import { ScriptedMachine } from './scripted_machine.ts';

const test = suite('loading of coordinators');

/** A batch of offset commits, partition numbers from `first` on. */
function commits(first: number, count: number, codec: 0 | 1 | 4 = 0): Uint8Array {
  const records = Array.from({ length: count }, (_, k) => ({
    ...encodeGroupRecord({
      type: 'OffsetCommit',
      key: { group: 'g', topic: 't', partition: first + k },
      value: null,
    }),
    timestamp: 1_700_000_000_000n,
  }));
  return encodeBatch({ records, codec });
}

function write(world: ShardWorld, partition: number, records: Uint8Array): void {
  const request = produce(world, 9, -1, [{ topic: 'offsets', partition, records }]);
  new WorldConnection(world).send('Produce', 9, request);
}

interface Fixture {
  readonly world: ShardWorld;
  readonly loader: CoordinatorLoader;
  readonly turns: (() => void)[];
  begin(partition: number): { machine: ScriptedMachine; coordinator: PartitionCoordinator };
}

async function fixture(bufferBytes = 1 << 20): Promise<Fixture> {
  const world = await ShardWorld.start({ topics: [['offsets', 3]] });
  const turns: (() => void)[] = [];
  const { logger, clock } = world;
  const loader = new CoordinatorLoader({
    bufferBytes,
    defer: (run) => turns.push(run),
    nowMs: () => clock.nowMs(),
    logger,
  });
  const begin = (partition: number) => {
    const machine = new ScriptedMachine();
    const coordinator = new PartitionCoordinator({
      leader: world.leader('offsets', partition),
      machine,
      clock,
      timers: new Purgatory(clock),
      logger,
      compression: Codec.none,
      commitTimeoutMs: 5_000,
      defer: (run) => turns.push(run),
    });
    loader.add(coordinator);
    return { machine, coordinator };
  };
  return { world, loader, turns, begin };
}

/** One turn after the other, until no more is asked for. Returns how many there were. */
function runTurns(turns: (() => void)[]): number {
  let count = 0;
  for (let run = turns.shift(); run !== undefined; run = turns.shift()) {
    run();
    count += 1;
    assert(count < 10_000, 'the loading never ends');
  }
  return count;
}

function partitionsOf(events: readonly CoordinatorEvent[]): number[] {
  return events.flatMap((event) =>
    event.type === 'load'
      ? event.records.map(({ key }) => ('partition' in key ? key.partition : -1))
      : [],
  );
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, k) => k);

test('all records come in the order of the log, compressed or not, then the end', async () => {
  const { world, turns, begin } = await fixture();
  write(world, 0, commits(0, 3));
  write(world, 0, commits(3, 200, 1));
  write(world, 0, commits(203, 200, 4));
  world.settle();
  const { machine, coordinator } = begin(0);
  assert.equal(coordinator.isLoaded, false);
  runTurns(turns);
  assert.deepEqual(partitionsOf(machine.events), upTo(403));
  assert.equal(machine.events.at(-1)?.type, 'loaded');
  assert.equal(coordinator.isLoaded, true);
  assert.match(world.lines.join(), /info loaded the state of consumer groups \{"records":403/);
});

test('a long log is read in slices, a turn for each', async () => {
  const { world, turns, begin } = await fixture(1_000);
  for (let first = 0; first < 300; first += 10) write(world, 0, commits(first, 10));
  world.settle();
  const { machine } = begin(0);
  const count = runTurns(turns);
  assert(count > 10, `${count} turns`);
  assert.deepEqual(partitionsOf(machine.events), upTo(300));
});

test('an empty log is loaded at once, and the one that is asked for before the others', async () => {
  const { world, loader, turns, begin } = await fixture(100);
  for (const partition of [0, 1])
    for (let first = 0; first < 20; first += 1) write(world, partition, commits(first, 1));
  world.settle();
  const [first, second, third] = [begin(0), begin(1), begin(2)];
  loader.hurry(second.coordinator);
  while (!second.coordinator.isLoaded) turns.shift()?.();
  assert.deepEqual(first.machine.events, []);
  runTurns(turns);
  assert.deepEqual(partitionsOf(first.machine.events), upTo(20));
  assert.deepEqual(third.machine.events, [{ type: 'loaded' }]);
});

/** As Kafka's log has it: the broker takes no such batches from clients. */
function writeInTransaction(world: ShardWorld, partition: number, batch: Uint8Array): void {
  const info = newBatchInfo();
  info.recordCount = recordCountOf(batch, 0);
  info.lastOffsetDelta = info.recordCount - 1;
  const waiter = { endOffset: 0, onWritten: () => {}, onCommitted: () => {} };
  const result = newAppendResult();
  const leader = world.leader('offsets', partition);
  const nowMs = world.clock.wallMs();
  const error = leader.append(batch, 0, batch.length, info, true, nowMs, waiter, result);
  assert.equal(error, 0);
}

/** Offset commits of partitions `first` and the next, by a producer's transaction. */
function undecided(producerId: number, first: number): Uint8Array {
  const records = [first, first + 1].map((partition) => ({
    ...encodeGroupRecord({
      type: 'OffsetCommit',
      key: { group: 'g', topic: 't', partition },
      value: null,
    }),
    timestamp: 1n,
  }));
  return encodeBatch({ records, transactional: true, producerId, producerEpoch: 0 });
}

function marker(producerId: number, type: 'commit' | 'abort'): Uint8Array {
  const key = new Uint8Array([0, 0, 0, type === 'commit' ? 1 : 0]);
  const records = [{ key, value: new Uint8Array(6), timestamp: 1n }];
  return encodeBatch({ records, transactional: true, control: true, producerId, producerEpoch: 0 });
}

test('KIP-98: offsets of a transaction count from its marker on, and not at all if it is aborted', async () => {
  const { world, turns, begin } = await fixture(100);
  writeInTransaction(world, 0, undecided(1, 10));
  writeInTransaction(world, 0, undecided(2, 20));
  writeInTransaction(world, 0, undecided(3, 30));
  write(world, 0, commits(0, 1));
  writeInTransaction(world, 0, marker(2, 'commit'));
  writeInTransaction(world, 0, marker(1, 'abort'));
  write(world, 0, commits(1, 1));
  world.settle();
  const { machine } = begin(0);
  runTurns(turns);
  assert.deepEqual(partitionsOf(machine.events), [0, 20, 21, 1]);
  assert.equal(machine.events.at(-1)?.type, 'loaded');
});

test('KIP-98: a commit in between is later than one that was begun before', async () => {
  const { world, turns, begin } = await fixture();
  writeInTransaction(world, 0, undecided(1, 10));
  write(world, 0, commits(10, 1));
  writeInTransaction(world, 0, marker(1, 'commit'));
  world.settle();
  const { machine } = begin(0);
  runTurns(turns);
  assert.deepEqual(partitionsOf(machine.events), [10, 11]);
});

test('what a crash left unflushed is waited for', async () => {
  const before = await fixture();
  write(before.world, 0, commits(0, 2));
  before.world.settle();
  write(before.world, 0, commits(2, 2));
  before.world.endTurn();
  before.world.kill();
  await before.world.open();
  const { world } = before;
  const leader = world.leader('offsets', 0);
  assert(!leader.isCaughtUp, 'the fixture: all is flushed already');
  const { machine, coordinator } = before.begin(0);
  runTurns(before.turns);
  assert.equal(coordinator.isLoaded, false);
  world.settle();
  before.loader.wake();
  runTurns(before.turns);
  assert.deepEqual(partitionsOf(machine.events), upTo(4));
  assert.equal(coordinator.isLoaded, true);
});

test('a log that cannot be understood serves no group, and says so', async () => {
  const { world, turns, begin } = await fixture();
  const batch = commits(0, 1);
  write(world, 0, batch);
  const odd = encodeBatch({
    records: [{ key: new Uint8Array([0, 1, 0, 200]), value: null, timestamp: 1n }],
  });
  write(world, 1, odd);
  world.settle();
  // Bit rot: the checksum is not that of the records any more.
  const { log } = world.leader('offsets', 0);
  const slice = log.read(0, 1 << 20, 1, true);
  assert(typeof slice !== 'number');
  const changed = new Uint8Array(4);
  writeInt32(changed, 0, 0x01020304);
  world.disk.write(slice.fd, changed, 0, 4, slice.length - 4);
  const [rotten, malformed, good] = [begin(0), begin(1), begin(2)];
  runTurns(turns);
  assert.equal(rotten.coordinator.isResigned, true);
  assert.equal(malformed.coordinator.isResigned, true);
  assert.equal(good.coordinator.isLoaded, true);
  assert.match(world.lines.join('\n'), /error .*offsets-0.*a checksum does not match/);
  assert.match(world.lines.join('\n'), /error .*offsets-1.*LegacyOff|OffsetCommitKey/);
});

test.run();
