import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { Codec } from '../../../engine/batch/header.ts';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type { ListOffsetsResponseListOffsetsPartitionResponse } from '../../../net/protocol/messages.gen.ts';
import { loneState } from '../../replication/partition/states.ts';
import { WorldConnection } from '../data_path/client.ts';
import { batchOf, produce } from '../data_path/requests.ts';
import { ShardWorld, type WorldOptions } from '../data_path/shard_world.ts';
import { startMs } from '../data_path/world_clock.ts';

const test = suite('02 list offsets');

const latest = -1n;
const earliest = -2n;
const maxTimestamp = -3n;
const start = BigInt(startMs);

async function newWorld(options: WorldOptions = {}): Promise<ShardWorld> {
  const world = await ShardWorld.start({ topics: [['t', 2]], ...options });
  world.settle();
  return world;
}

/** A batch whose records have these times, in milliseconds after the start. */
function timed(times: readonly number[], codec: Codec = Codec.none): Uint8Array {
  const records = times.map((ms) => ({ timestamp: start + BigInt(ms), value: Buffer.from('v') }));
  return batchOf([], { records, codec });
}

function put(world: ShardWorld, ...batches: Uint8Array[]): void {
  const client = new WorldConnection(world);
  for (const records of batches)
    client.send('Produce', 9, produce(world, 9, 1, [{ topic: 't', records }]));
  world.settle();
}

interface Asked {
  readonly version?: number;
  readonly topic?: string;
  readonly partition?: number;
  readonly currentLeaderEpoch?: number;
  readonly isolationLevel?: number;
}

function list(
  world: ShardWorld,
  timestamp: bigint,
  asked: Asked = {},
): ListOffsetsResponseListOffsetsPartitionResponse {
  const { version = 9, topic = 't', partition = 0 } = asked;
  const response = new WorldConnection(world).call('ListOffsets', version, {
    replicaId: -1,
    ...(version >= 2 ? { isolationLevel: asked.isolationLevel } : {}),
    topics: [
      {
        name: topic,
        partitions: [
          {
            partitionIndex: partition,
            timestamp,
            ...(version >= 4 ? { currentLeaderEpoch: asked.currentLeaderEpoch } : {}),
          },
        ],
      },
    ],
  });
  const one = response.topics[0]?.partitions[0];
  assert(one !== undefined);
  return one;
}

const brief = ({
  errorCode,
  offset,
  timestamp,
}: ListOffsetsResponseListOffsetsPartitionResponse): unknown[] => [errorCode, offset, timestamp];

for (let version = 1; version <= 11; version += 1)
  test(`v${version}: the ends of the log, with the leader epoch from v4`, async () => {
    const world = await newWorld();
    world.leader('t').lead(loneState(2), 0);
    put(world, timed([0, 1, 2]));
    const end = list(world, latest, { version });
    assert.deepEqual(brief(end), [ErrorCode.NONE, 3n, -1n]);
    assert.equal(end.leaderEpoch, version >= 4 ? 2 : -1);
    const begin = list(world, earliest, { version });
    assert.deepEqual(brief(begin), [ErrorCode.NONE, 0n, -1n]);
    assert.equal(begin.leaderEpoch, version >= 4 ? 2 : -1);
  });

test('trap 9: by time it is the first record at or after it, with its own time', async () => {
  for (const codec of [Codec.none, Codec.gzip]) {
    const world = await newWorld();
    put(world, timed([10, 20], codec), timed([40, 30, 50], codec), timed([45], codec));
    const at = (ms: number): unknown[] => brief(list(world, start + BigInt(ms)));
    assert.deepEqual(at(0), [0, 0n, start + 10n]);
    assert.deepEqual(at(10), [0, 0n, start + 10n]);
    assert.deepEqual(at(11), [0, 1n, start + 20n]);
    assert.deepEqual(
      at(21),
      [0, 2n, start + 40n],
      'the first in the order of offsets, not the nearest in time',
    );
    assert.deepEqual(at(41), [0, 4n, start + 50n]);
    assert.deepEqual(at(51), [0, -1n, -1n]);
  }
});

test('trap 9: -3 is the first record with the largest time', async () => {
  const world = await newWorld();
  assert.deepEqual(brief(list(world, maxTimestamp)), [0, -1n, -1n]);
  put(world, timed([5, 70, 6]), timed([70]), timed([1]));
  assert.deepEqual(brief(list(world, maxTimestamp)), [0, 1n, start + 70n]);
});

test('trap 9: -4 is the earliest, -5 and -6 are nowhere without tiered storage', async () => {
  const world = await newWorld();
  put(world, timed([1]));
  assert.deepEqual(brief(list(world, -4n, { version: 8 })), [0, 0n, -1n]);
  assert.deepEqual(brief(list(world, -5n, { version: 9 })), [0, -1n, -1n]);
  assert.deepEqual(brief(list(world, -6n, { version: 11 })), [0, -1n, -1n]);
});

test('special timestamps that the version does not know are UNSUPPORTED_VERSION, as in Kafka', async () => {
  const world = await newWorld();
  const code = (timestamp: bigint, version: number): number =>
    list(world, timestamp, { version }).errorCode;
  for (const [timestamp, since] of [
    [-3n, 7],
    [-4n, 8],
    [-5n, 9],
    [-6n, 11],
  ] as const) {
    assert.equal(code(timestamp, since - 1), ErrorCode.UNSUPPORTED_VERSION, `${timestamp}`);
    assert.equal(code(timestamp, since), ErrorCode.NONE, `${timestamp}`);
  }
  for (const timestamp of [-7n, -(1n << 63n)])
    assert.equal(code(timestamp, 11), ErrorCode.UNSUPPORTED_VERSION);
});

for (const isolationLevel of [0, 1])
  test(`isolation level ${isolationLevel}: what is not committed does not count`, async () => {
    const world = await newWorld();
    put(world, timed([10]));
    const client = new WorldConnection(world);
    client.send('Produce', 9, produce(world, 9, 1, [{ topic: 't', records: timed([20]) }]));
    world.endTurn();
    assert.equal(world.leader('t').log.logEndOffset, 2);
    assert.equal(list(world, latest, { isolationLevel }).offset, 1n);
    assert.equal(list(world, start + 15n, { isolationLevel }).offset, -1n);
    assert.equal(list(world, maxTimestamp, { isolationLevel }).offset, -1n);
    world.settle();
    assert.equal(list(world, latest, { isolationLevel }).offset, 2n);
    assert.equal(list(world, start + 15n, { isolationLevel }).offset, 1n);
  });

test('after a kill the end is not told before it is known again (KIP-207)', async () => {
  const world = await newWorld();
  put(world, timed([10]));
  const client = new WorldConnection(world);
  client.send('Produce', 9, produce(world, 9, 1, [{ topic: 't', records: timed([20]) }]));
  world.endTurn();
  world.kill();
  await world.open();
  const code = (timestamp: bigint, version: number): number =>
    list(world, timestamp, { version }).errorCode;
  for (const timestamp of [latest, start + 15n, maxTimestamp])
    assert.equal(code(timestamp, 7), ErrorCode.OFFSET_NOT_AVAILABLE, `${timestamp}`);
  assert.equal(
    code(latest, 4),
    ErrorCode.LEADER_NOT_AVAILABLE,
    'older clients do not know the other error',
  );
  assert.equal(code(earliest, 7), ErrorCode.NONE);
  world.settle();
  assert.equal(list(world, latest).offset, 2n);
});

test('epochs are checked (KIP-320)', async () => {
  const world = await newWorld();
  world.leader('t').lead(loneState(3), 0);
  const code = (currentLeaderEpoch: number): number =>
    list(world, latest, { currentLeaderEpoch }).errorCode;
  assert.deepEqual([-1, 2, 3, 4].map(code), [
    ErrorCode.NONE,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.NONE,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
  ]);
});

test('unknown topics and partitions, and a failed directory', async () => {
  const world = await newWorld();
  assert.equal(
    list(world, latest, { topic: 'nobody' }).errorCode,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
  );
  for (const partition of [2, -1])
    assert.equal(
      list(world, latest, { partition }).errorCode,
      ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    );
  world.leader('t').refuse(ErrorCode.KAFKA_STORAGE_ERROR);
  const refused = list(world, latest);
  assert.deepEqual(brief(refused), [ErrorCode.KAFKA_STORAGE_ERROR, -1n, -1n]);
});

test('records that cannot be read are an error of their partition, not of the broker', async () => {
  const world = await newWorld();
  put(world, timed([10], Codec.gzip), timed([20]));
  const { log } = world.leader('t');
  world.disk.corrupt(`${log.dir}/00000000000000000000.log`, 70, Buffer.alloc(8, 0xff));
  assert.equal(list(world, start).errorCode, ErrorCode.CORRUPT_MESSAGE);
  assert.equal(list(world, latest).offset, 2n);
  assert.match(world.lines.join('\n'), /error.*t-0/);
  const { read } = world.disk;
  world.disk.read = () => {
    throw new (class extends Error {})('not even an error of the disk');
  };
  assert.equal(list(world, start).errorCode, ErrorCode.CORRUPT_MESSAGE);
  world.disk.read = read;
});

test.run();
