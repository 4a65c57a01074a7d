import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { splitMix } from '../harness/split_mix.ts';
import { newTopic, registration } from '../replication/metadata/fixtures.ts';
import { SimulatedStore } from '../replication/raft/simulated_store.ts';
import { attachShard, newCluster, newHost } from './cluster_fixture.ts';

const test = suite('quorum_host');

function create(...names: string[]) {
  return { topics: names.map((name) => newTopic(name)), validateOnly: false };
}

test('a thread that joins late gets everything, then each change', async () => {
  const { host, shard } = await newCluster([
    ['a', 3],
    ['b', 1],
  ]);
  assert.equal(shard.image.partitionCount, 4);
  assert.deepEqual(shard.image.snapshot(), host.image.snapshot());
  const reply = await shard.quorum.createTopics(create('c'), 1000);
  assert.equal(reply.errorCode, ErrorCode.NONE);
  assert(shard.image.topic('c') !== undefined, 'the asking thread knows it when it is answered');
  assert.deepEqual(shard.image.snapshot(), host.image.snapshot());
});

test('the answer to createTopics waits until every thread has acted on it', async () => {
  const { host, shard } = await newCluster();
  const gate = Promise.withResolvers<void>();
  const seen: string[] = [];
  await attachShard(host, {}, (changes) => {
    for (const { topic } of changes.createdPartitions) seen.push(topic.name);
    return changes.createdPartitions.length > 0 ? gate.promise : undefined;
  });
  let answered = false;
  const reply = shard.quorum.createTopics(create('a'), 5000).then((value) => {
    answered = true;
    return value;
  });
  for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
  assert.deepEqual(seen, ['a']);
  assert.equal(answered, false, 'the slow thread has not acted yet');
  const ids = await shard.quorum.allocateProducerIds(5000);
  assert.equal(ids.errorCode, ErrorCode.NONE, 'a commit alone is enough for producer ids');
  gate.resolve();
  assert.equal((await reply).errorCode, ErrorCode.NONE);
});

test('a thread that has ended is not waited for', async () => {
  const { host, shard } = await newCluster();
  const silent = { postMessage: () => {}, on: () => {} };
  host.attach(silent).catch(() => {});
  const reply = shard.quorum.createTopics(create('a'), 5000);
  for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate);
  host.detach(silent);
  assert.equal((await reply).errorCode, ErrorCode.NONE);
});

test('a request that takes too long is answered, and done all the same', async () => {
  const { shard } = await newCluster();
  const reply = await shard.quorum.createTopics(create('a'), 0);
  assert.equal(reply.errorCode, ErrorCode.REQUEST_TIMED_OUT);
  await shard.quorum.createTopics(create('b'), 1000);
  assert(shard.image.topic('a') !== undefined);
});

test('after a restart all is there, and the next ids are new', async () => {
  const store = new SimulatedStore(splitMix(9));
  const first = newHost(store);
  await first.start();
  const registered = await first.request(registration(1));
  await first.request({ type: 'createTopics', ...create('a', 'b') });
  await first.request({ type: 'deleteTopics', topics: [{ name: 'a', topicId: null }] });
  const epoch = registered.result?.brokerEpoch ?? -1;
  await first.request({ type: 'allocateProducerIds', brokerId: 1, brokerEpoch: epoch });
  await first.close();

  const second = newHost(store);
  await second.start();
  assert.deepEqual([...second.image.topics.keys()], ['b']);
  assert.equal(second.image.features.get('metadata.version'), 33);
  const again = await second.request(registration(1, { previousBrokerEpoch: epoch }));
  assert(again.result !== null && again.result.brokerEpoch > epoch);
  assert.equal(second.image.partition('b', 0)?.leaderEpoch, 0, 'a clean restart keeps the epoch');
  const shard = await attachShard(second);
  const ids = await shard.quorum.allocateProducerIds(1000);
  assert.equal(ids.result?.firstProducerId, 1000);
  assert.deepEqual(shard.image.snapshot(), second.image.snapshot());
});

test('producer ids are refused to a broker that is not registered', async () => {
  const host = newHost(new SimulatedStore(splitMix(3)));
  await host.start();
  const shard = await attachShard(host);
  const reply = await shard.quorum.allocateProducerIds(1000);
  assert.equal(reply.errorCode, ErrorCode.BROKER_ID_NOT_REGISTERED);
});

test.run();
