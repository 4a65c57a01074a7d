/**
 * The life of a broker process: clean stops, restarts, a second broker in the way, and what has to survive them.
 *
 *   node test/scenario/life.test.ts
 */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import { encodeBatch } from '../../engine/batch/encode.ts';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { errorName } from '../../net/protocol/errors.ts';
import { BrokerProcess } from '../harness/broker_process.ts';
import { Client, type ProducerIdentity, record, textOf } from '../harness/client.ts';
import { ConnectionLostError } from '../harness/connection.ts';
import { GroupSession } from '../harness/group_session.ts';

const cleanMarker = '.kafka_cleanshutdown';
const exitedCleanly = { code: 0, signal: null };

const test = suite('life');

let broker: BrokerProcess;

test.before(async () => {
  broker = await BrokerProcess.start();
});

test.after(async () => {
  await broker.dispose();
});

async function withClient<T>(body: (client: Client) => Promise<T>): Promise<T> {
  const client = await Client.connect(broker);
  try {
    return await body(client);
  } finally {
    client.close();
  }
}

/** Ends the broker in one of two ways and starts it again. */
async function restart(how: 'stop' | 'kill'): Promise<void> {
  await broker[how]();
  await broker.restart();
}

function idempotent(identity: ProducerIdentity, baseSequence: number, count = 1): Uint8Array {
  const records = Array.from({ length: count }, (_, index) => record(`${baseSequence + index}`));
  return encodeBatch({ ...identity, baseSequence, records });
}

test('SIGTERM answers what is in flight, ends with 0 and leaves the mark of a clean stop', async () => {
  const client = await Client.connect(broker);
  await client.createTopic('drained', 2);
  const produced: Promise<number | null>[] = [];
  for (let index = 0; index < 60; index += 1)
    produced.push(
      client.produceOne('drained', index % 2, [record(`${index}`)]).catch((error: unknown) => {
        assert(error instanceof ConnectionLostError, String(error));
        return null;
      }),
    );
  const waiting = client
    .fetchOne('drained', 0, 1_000_000, { maxWaitMs: 60_000 })
    .catch((error: unknown) => error);
  await produced[9];
  const exit = await broker.stop();
  assert.deepEqual(exit, exitedCleanly);
  assert(existsSync(join(broker.dataDir, cleanMarker)));
  const offsets = await Promise.all(produced);
  await waiting;
  await broker.restart();
  assert(!existsSync(join(broker.dataDir, cleanMarker)), 'the mark outlived the next start');
  await withClient(async (again) => {
    for (const partition of [0, 1]) {
      const values = (await again.readAll('drained', partition)).map(({ value }) => textOf(value));
      for (const [index, offset] of offsets.entries())
        if (offset !== null && index % 2 === partition) assert.equal(values[offset], `${index}`);
    }
  });
});

test('a produce request that was taken before SIGTERM is answered with success', async () => {
  for (let round = 0; round < 5; round += 1) {
    const client = await Client.connect(broker);
    if (round === 0) await client.createTopic('taken', 1);
    // The answer to the second request says that the broker has read the first one, and it is a large one.
    const large = client.produce([
      { topic: 'taken', partition: 0, batch: [{ value: new Uint8Array(900_000) }] },
    ]);
    const small = client.produce([{ topic: 'taken', partition: 0, batch: [record('small')] }]);
    const both = Promise.all([large, small]);
    await new Promise((resolve) => setTimeout(resolve, round * 4));
    const stopped = broker.stop();
    const answers = await both.catch((error: unknown) => {
      assert(error instanceof ConnectionLostError, String(error));
      return [];
    });
    for (const { errorCode } of answers.flat()) assert.equal(errorName(errorCode), 'NONE');
    assert.deepEqual(await stopped, exitedCleanly);
    await broker.restart();
  }
});

test('a second broker on the same data directory is told so, and disturbs nothing', async () => {
  await assert.rejects(
    BrokerProcess.start({ dataDir: broker.dataDir }),
    /cannot start: log\.dirs: .*(another|in use|lock)/,
  );
  await withClient(async (client) => {
    await client.createTopic('undisturbed', 1);
    assert.equal(await client.produceOne('undisturbed', 0, [record('here')]), 0);
  });
});

test('a port in use is an error that names the setting and the address', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'millrace-scenario-'));
  await assert.rejects(
    BrokerProcess.start({ dataDir, port: broker.port }),
    new RegExp(`cannot start: listeners: .*:${broker.port} is in use`),
  );
  rmSync(dataDir, { recursive: true });
});

test('a setting that makes no sense is an error that names it, and nothing is started', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'millrace-scenario-'));
  await assert.rejects(
    BrokerProcess.start({ dataDir, settings: { 'log.segment.bytes': 'many' } }),
    /log\.segment\.bytes.*many/,
  );
  assert(!existsSync(join(dataDir, 'meta.properties')));
  rmSync(dataDir, { recursive: true });
});

for (const how of ['stop', 'kill'] as const) {
  test(`topics, their ids and settings, and the cluster id survive a ${how}`, async () => {
    const name = `kept-over-${how}`;
    const before = await withClient(async (client) => {
      await client.createTopic(name, 3, { 'segment.bytes': 2_097_152 });
      await client.produceOne(name, 2, [record('one'), record('two')]);
      return client.metadata();
    });
    const properties = readFileSync(join(broker.dataDir, 'meta.properties'), 'utf8');
    await restart(how);
    assert.equal(readFileSync(join(broker.dataDir, 'meta.properties'), 'utf8'), properties);
    await withClient(async (client) => {
      const after = await client.metadata();
      assert.equal(after.clusterId, before.clusterId);
      const shape = ({ topics }: typeof after): unknown[] =>
        topics
          .map(({ name: topic, topicId, partitions }) => [topic, topicId, partitions.length])
          .sort((a, b) => String(a[0]).localeCompare(String(b[0])));
      assert.deepEqual(shape(after), shape(before));
      const records = await client.readAll(name, 2);
      assert.deepEqual(
        records.map(({ offset, value }) => [offset, textOf(value)]),
        [
          [0, 'one'],
          [1, 'two'],
        ],
      );
      const described = await client.request('DescribeConfigs', {
        resources: [{ resourceType: 2, resourceName: name, configurationKeys: ['segment.bytes'] }],
      });
      assert.equal(described.results[0]?.configs[0]?.value, '2097152');
    });
  });

  test(`a deleted topic stays deleted over a ${how}, and its name is free for another`, async () => {
    const name = `gone-before-${how}`;
    const first = await withClient(async (client) => {
      const id = await client.createTopic(name, 1);
      await client.produceOne(name, 0, [record('old')]);
      const answer = await client.request('DeleteTopics', {
        topics: [{ name: null, topicId: id }],
        timeoutMs: 10_000,
      });
      assert.equal(answer.responses[0]?.errorCode, ErrorCode.NONE);
      return id;
    });
    await restart(how);
    await withClient(async (client) => {
      const { topics } = await client.metadata();
      assert(!topics.some((topic) => topic.name === name), 'the topic is back');
      assert.notEqual(await client.createTopic(name, 1), first);
      assert.equal(await client.produceOne(name, 0, [record('new')]), 0);
    });
  });

  test(`an idempotent producer goes on over a ${how}: duplicates are found, gaps refused`, async () => {
    const topic = `exact-over-${how}`;
    const identity = await withClient(async (client) => {
      await client.createTopic(topic, 1);
      const fresh = await client.initProducerId();
      for (let batch = 0; batch < 7; batch += 1)
        assert.equal(await client.produceOne(topic, 0, idempotent(fresh, batch * 3, 3)), batch * 3);
      return fresh;
    });
    await restart(how);
    await withClient(async (client) => {
      for (let batch = 2; batch < 7; batch += 1)
        assert.equal(
          await client.produceOne(topic, 0, idempotent(identity, batch * 3, 3)),
          batch * 3,
          `batch ${batch} came again`,
        );
      const gap = await client.produce([{ topic, partition: 0, batch: idempotent(identity, 24) }]);
      assert.equal(gap[0]?.errorCode, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER);
      assert.equal(await client.produceOne(topic, 0, idempotent(identity, 21)), 21);
      assert.equal((await client.readAll(topic, 0)).length, 22);
      const next = await client.initProducerId();
      assert.notEqual(next.producerId, identity.producerId, 'a producer id was handed out twice');
    });
  });
}

test('after a clean stop nothing has to be recovered; after kill -9 the log says what was', async () => {
  await withClient(async (client) => {
    await client.createTopic('checked', 1);
    await client.produceOne('checked', 0, [record('kept')]);
  });
  await restart('stop');
  assert.doesNotMatch(broker.output, /recover|WARN|ERROR/i);
  await restart('kill');
  assert.doesNotMatch(broker.output, /ERROR|FATAL/);
  await withClient(async (client) => assert.equal((await client.readAll('checked', 0)).length, 1));
});

test('SIGTERM sends those away who wait for a rebalance to end', async () => {
  const options = {
    group: 'waiting',
    topic: 'any',
    partitions: 1,
    instance: null,
    sessionTimeoutMs: 120_000,
    rebalanceTimeoutMs: 120_000,
  };
  const first = await GroupSession.connect(broker, options);
  await first.join('');
  // The first member never comes back, so this one waits for two minutes.
  const second = await GroupSession.connect(broker, options);
  const waiting = second.join('').catch((error: unknown) => error);
  const state = async (): Promise<string | undefined> => {
    const { groups } = await first.client.request('DescribeGroups', { groups: ['waiting'] });
    return groups[0]?.groupState;
  };
  while ((await state()) !== 'PreparingRebalance') await sleep(20);
  const startedMs = performance.now();
  assert.deepEqual(await broker.stop(), exitedCleanly);
  // A broker that waited for it would take its whole time of grace.
  const tookMs = performance.now() - startedMs;
  assert(tookMs < 8_000, `${tookMs} ms`);
  assert((await waiting) instanceof ConnectionLostError);
  first.close();
  second.close();
  await broker.restart();
});

test.run();
