import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ensureOffsetsTopic, partitionOfGroup } from '../../../net/groups/offsets_topic.ts';
import { ShardWorld } from '../data_path/shard_world.ts';

const test = suite('the topic of the offsets');

/** The absolute value of what Java's `String.hashCode` gives for each, as the documentation of the class defines it. */
const hashes: readonly (readonly [string, number])[] = [
  ['', 0],
  ['a', 97],
  ['hello', 99_162_322],
  ['Aa', 2_112],
  ['BB', 2_112],
  // Integer.MIN_VALUE, which has none.
  ['polygenelubricants', 0],
];

function javaHash(text: string): number {
  let hash = 0n;
  for (let k = 0; k < text.length; k += 1)
    hash = BigInt.asIntN(32, hash * 31n + BigInt(text.charCodeAt(k)));
  return Math.abs(Number(hash));
}

test("a group's partition is the absolute value of Java's hash of its id, modulo the partitions", () => {
  for (const [group, hash] of hashes) {
    assert.equal(partitionOfGroup(group, 50), hash % 50, group);
    assert.equal(partitionOfGroup(group, 7), hash % 7, group);
  }
  // Where Kafka 4.4 was seen to put it.
  assert.equal(partitionOfGroup('grp', 50), 29);
  // Negative hashes.
  assert.equal(partitionOfGroup('modern', 50), 1);
  assert.equal(partitionOfGroup('static', 50), 38);
  assert.equal(partitionOfGroup('cooperative', 50), 21);
  for (const group of ['grüppe', '東京', '\u{1f600}', 'x'.repeat(1_000), 'console-consumer-4711'])
    assert.equal(partitionOfGroup(group, 50), javaHash(group) % 50, group);
});

/** Lets the quorum and the shard of the world go on. */
async function settled<T>(world: ShardWorld, promise: Promise<T>): Promise<T> {
  let done = false;
  void promise.then(() => {
    done = true;
  });
  for (let turn = 0; !done && turn < 200; turn += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    world.settle();
  }
  return promise;
}

test('it is made when it is first needed, compacted, as the settings say', async () => {
  const world = await ShardWorld.start({
    settings: ['offsets.topic.num.partitions=5', 'offsets.topic.segment.bytes=2097152'],
  });
  const { services, config } = world;
  assert.equal(world.image.topic('__consumer_offsets'), undefined);
  const [first, second] = await settled(
    world,
    Promise.all([
      ensureOffsetsTopic(services, config.groups),
      ensureOffsetsTopic(services, config.groups),
    ]),
  );
  assert.equal(first?.partitions.length, 5);
  assert.equal(first?.id, second?.id);
  assert.equal(first?.partitions[0]?.replicas.length, 1);
  const log = world.leader('__consumer_offsets', 4).log;
  assert.deepEqual(log.config.cleanupPolicy, { compact: true, delete: false });
  assert.equal(log.config.segmentBytes, 2_097_152);
  assert.deepEqual(world.lines, []);
});

test('what keeps it from being made is in the log, once', async () => {
  const world = await ShardWorld.start({ settings: ['offsets.topic.replication.factor=3'] });
  for (let time = 0; time < 3; time += 1) {
    const topic = await settled(world, ensureOffsetsTopic(world.services, world.config.groups));
    assert.equal(topic, undefined);
  }
  assert.equal(world.lines.length, 1);
  assert.match(world.lines.join('\n'), /warn the topic for the state of consumer groups could not/);
});

test.run();
