/** Throttled replicas at the leader (KIP-73): no records for them while the quota is exceeded, unless they are in sync. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import type { PartitionImage } from '../../../replication/metadata/image.ts';
import { WorldConnection } from '../data_path/client.ts';
import { batchOf, fetch, fetched, produce, valuesIn } from '../data_path/requests.ts';
import { ShardWorld } from '../data_path/shard_world.ts';

const test = suite('01 fetch of throttled followers');
const rate = 1_000;
const value = 'v'.repeat(4 * rate);

async function set(
  world: ShardWorld,
  resourceType: number,
  name: string,
  key: string,
  to: string,
): Promise<void> {
  const configs = [{ name: key, configOperation: 0, value: to }];
  const resources = [{ resourceType, resourceName: name, configs }];
  const { responses } = await new WorldConnection(world).callLater('IncrementalAlterConfigs', 1, {
    resources,
    validateOnly: false,
  });
  assert.equal(responses[0]?.errorCode, 0);
}

const limit = (world: ShardWorld, bytes: number): Promise<void> =>
  set(world, 4, '1', 'leader.replication.throttled.rate', String(bytes));

/** Partition 0 of `t` is throttled here at broker 1, partition 1 is not; each has one record of four seconds' bytes. */
async function throttled(): Promise<ShardWorld> {
  const lists = { 'leader.replication.throttled.replicas': '0:1,1:2' };
  const world = await ShardWorld.start({ topics: [['t', 2, lists]] });
  await limit(world, rate);
  for (const partition of [0, 1]) {
    const parts = [{ topic: 't', partition, records: batchOf([value]) }];
    new WorldConnection(world).send('Produce', 9, produce(world, 9, -1, parts));
    const state = { replicas: [1, 2], isr: [1], leaderEpoch: 1, partitionEpoch: 1 };
    world.leader('t', partition).lead(state, world.clock.ms);
  }
  world.settle();
  return world;
}

/** What a fetch of both partitions from the start brings at once: how many records, and the high watermark, of each. */
function got(world: ShardWorld, replicaId: number): string[] {
  const wanted = [0, 1].map((partition) => ({ topic: 't', partition }));
  const request = fetch(world, 18, wanted, {
    maxWaitMs: 0,
    replicaState: { replicaId, replicaEpoch: 7 },
  });
  const answer = new WorldConnection(world).call('Fetch', 18, request);
  return fetched(answer).map((one) => `${valuesIn(one.records).length} ${one.highWatermark}`);
}

test('over the rate the records of throttled replicas are left out, and the others come', async () => {
  const world = await throttled();
  assert.deepEqual(got(world, 2), ['1 1', '1 1'], 'what is not exceeded yet goes out');
  assert.deepEqual(got(world, 2), ['0 1', '1 1']);
  assert.deepEqual(got(world, -1), ['1 1', '1 1'], 'a consumer is nobody to throttle');
  world.advance(4_200);
  assert.deepEqual(got(world, 2), ['1 1', '1 1']);
});

test('a replica that is in sync gets its records anyway', async () => {
  const world = await throttled();
  got(world, 2);
  assert.deepEqual(got(world, 2), ['0 1', '1 1']);
  // As a change of the in-sync replicas in the metadata would have it.
  const partitions = world.image.topic('t')!.partitions as PartitionImage[];
  partitions[0] = { ...partitions[0]!, isr: [1, 2] };
  assert.deepEqual(got(world, 2), ['1 1', '1 1']);
});

test('a fetch of what is held back waits its time, and not a turn without end', async () => {
  const world = await throttled();
  got(world, 2);
  const who = { maxWaitMs: 500, replicaState: { replicaId: 2, replicaEpoch: 7 } };
  const waiting = new WorldConnection(world).send(
    'Fetch',
    18,
    fetch(world, 18, [{ topic: 't' }], who),
  );
  world.settle();
  assert.equal(waiting.isAnswered, false);
  world.advance(500);
  const [one] = fetched(waiting.response());
  assert.deepEqual([valuesIn(one?.records), one?.highWatermark], [[], 1n]);
});

test('a rate and a list that are set count at once', async () => {
  const world = await throttled();
  got(world, 2);
  await limit(world, 10 * rate);
  assert.deepEqual(got(world, 2), ['1 1', '1 1']);
  await limit(world, rate / 10);
  assert.deepEqual(got(world, 2), ['0 1', '1 1']);
  await set(world, 2, 't', 'leader.replication.throttled.replicas', '1:1');
  assert.deepEqual(got(world, 2), ['1 1', '0 1']);
  await set(world, 2, 't', 'leader.replication.throttled.replicas', '*');
  assert.deepEqual(got(world, 2), ['0 1', '0 1']);
});

test.run();
