/** What most tests of produce and fetch begin with: a shard with a topic `t`, a client of it, and records in it. */
import assert from 'node:assert/strict';
import { type RegisterBrokerRecord, uuidZero } from '../../../replication/metadata/records.ts';
import { partitionChange } from '../../replication/metadata/fixtures.ts';
import { WorldConnection } from './client.ts';
import { fetch, fetchedOne, produce, valuesIn } from './requests.ts';
import { ShardWorld, type WorldOptions } from './shard_world.ts';

/** A topic `t` with three partitions, unless the options have others. */
export async function withClient(
  options: WorldOptions = {},
): Promise<{ world: ShardWorld; client: WorldConnection }> {
  const world = await ShardWorld.start({ topics: [['t', 3]], ...options });
  world.settle();
  return { world, client: new WorldConnection(world) };
}

/** Appends and flushes; each batch in a request of its own. */
export function put(
  world: ShardWorld,
  topic: string,
  partition: number,
  ...batches: Uint8Array[]
): void {
  const client = new WorldConnection(world);
  for (const records of batches)
    client.send('Produce', 9, produce(world, 9, -1, [{ topic, partition, records }]));
  world.settle();
}

/** What consumers read in the partition. */
export function stored(world: ShardWorld, topic = 't', partition = 0): string[] {
  const client = new WorldConnection(world);
  const answer = client.call(
    'Fetch',
    12,
    fetch(world, 12, [{ topic, partition }], { maxWaitMs: 0 }),
  );
  const { records } = fetchedOne(answer);
  return valuesIn(records);
}

/** All request memory was given back. */
export function assertNoMemoryHeld({ memory }: ShardWorld): void {
  assert.deepEqual([memory.slabs.usedBytes, memory.budget.usedBytes], [0, 0]);
}

/** From now on broker 2, `other.example:9093`, leads partition 0 of `t`, and this one has a copy. */
export function moveLeader({ image, partitions }: ShardWorld, isAlive = true): void {
  const topic = image.topic('t')!;
  const [firstOffset, lastOffset] = [image.offset + 1, image.offset + 2];
  const registration: RegisterBrokerRecord = {
    type: 'RegisterBrokerRecord',
    brokerId: 2,
    incarnationId: uuidZero,
    brokerEpoch: firstOffset,
    endPoints: [{ name: 'PLAINTEXT', host: 'other.example', port: 9093, securityProtocol: 0 }],
    features: [],
    rack: 'second',
    fenced: !isAlive,
    inControlledShutdown: false,
    logDirs: [],
  };
  const change = partitionChange(topic.id, { isr: [1, 2], leader: 2, replicas: [1, 2] });
  const { epoch, leaderId } = image;
  const at = { snapshot: false, firstOffset, lastOffset, epoch, leaderId } as const;
  partitions.apply(image.apply({ ...at, records: [registration, change] }));
}
