/**
 * Fewer copies in sync than `min.insync.replicas` (KIP-966, R6; fault 15): acks=all is refused, acks=1 is taken but not
 * shown, what was visible stays readable, and all is well again when the copies are back, without a restart of the one
 * that stayed. First with the quorum alive, then with one broker of three left.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { errorName } from '../../net/protocol/errors.ts';
import { type Client, record, textOf } from '../harness/client.ts';
import { Cluster } from '../harness/cluster.ts';
import { decodeRecords } from '../harness/fetched_records.ts';
import { runScenario, scenarioOptions } from '../harness/scenario_options.ts';

const options = scenarioOptions();
const backMs = 60_000;
const lookAgainMs = 20;
const partition = 0;
const settings = {
  'min.insync.replicas': 2,
  'broker.heartbeat.interval.ms': 300,
  'broker.session.timeout.ms': 2_000,
};

const test = suite('min.insync.replicas');

for (const [name, replicas] of [
  ['one of two copies is left', [1, 2]],
  ['one broker of three is left', [1, 2, 3]],
] as const)
  test(`${name}: nothing is acknowledged by acks=all, nothing new shown, until copies are back`, async () => {
    await runScenario(options, async ({ dataDir }) => {
      const cluster = await Cluster.start({ settings, dataDir });
      try {
        await lonely(cluster, replicas);
      } catch (error) {
        for (const { output } of cluster.brokers) console.error(output.slice(-6_000));
        throw error;
      } finally {
        await cluster.dispose();
      }
    });
  });

async function lonely(cluster: Cluster, replicas: readonly number[]): Promise<void> {
  const topic = 'lonely';
  const client = await cluster.client(1);
  await create(client, topic, replicas);
  const stays = cluster.broker(1).pid;
  const shown = ['a', 'b', 'c'];
  for (const value of shown) await eventually(() => taken(client, topic, value, -1));
  const hasQuorum = replicas.length === 2;
  for (const id of replicas.slice(1)) await cluster.kill(id);
  if (hasQuorum) await eventually(async () => (await isr(client, topic)).length === 1);

  const refused = await produce(client, topic, 'never', -1);
  if (hasQuorum) assert.equal(errorName(refused), 'NOT_ENOUGH_REPLICAS');
  else assert.notEqual(errorName(refused), 'NONE');
  const hidden = ['d', 'e'];
  for (const value of hidden) assert.equal(await produce(client, topic, value, 1), ErrorCode.NONE);
  assert.deepEqual(await read(client, topic), shown);
  await sleep(1_000);
  assert.equal(await client.endOffset(topic, partition), shown.length);
  assert.deepEqual(await read(client, topic), shown, 'what is not on two disks was shown');

  await Promise.all(replicas.slice(1).map((id) => cluster.restart(id)));
  await eventually(async () => (await isr(client, topic)).length === replicas.length);
  await eventually(async () => (await read(client, topic)).at(-1) === hidden.at(-1));
  assert.equal(await produce(client, topic, 'f', -1), ErrorCode.NONE);
  // What was refused without a word about the log may be there where the leader did not know that it was alone.
  const values = (await read(client, topic)).filter((value) => hasQuorum || value !== 'never');
  assert.deepEqual(values, [...shown, ...hidden, 'f']);
  assert.equal(cluster.broker(1).pid, stays);
  client.close();
}

async function create(client: Client, name: string, brokerIds: readonly number[]): Promise<void> {
  const { topics } = await client.request('CreateTopics', {
    topics: [
      {
        name,
        numPartitions: -1,
        replicationFactor: -1,
        assignments: [{ partitionIndex: partition, brokerIds }],
        configs: [],
      },
    ],
    timeoutMs: 30_000,
  });
  assert.equal(topics[0]?.errorCode, ErrorCode.NONE, topics[0]?.errorMessage ?? '');
}

async function produce(
  client: Client,
  topic: string,
  value: string,
  acks: -1 | 1,
): Promise<number> {
  const parts = [{ topic, partition, batch: [record(value)] }];
  const [answer] = await client.produce(parts, { acks, timeoutMs: 1_500 });
  assert(answer !== undefined);
  return answer.errorCode;
}

async function taken(client: Client, topic: string, value: string, acks: -1 | 1): Promise<boolean> {
  const code = await produce(client, topic, value, acks);
  if (code !== ErrorCode.NONE) assert.equal(errorName(code), 'NOT_LEADER_OR_FOLLOWER');
  return code === ErrorCode.NONE;
}

async function isr(client: Client, topic: string): Promise<readonly number[]> {
  const { topics } = await client.metadata([topic]);
  return topics[0]?.partitions[0]?.isrNodes ?? [];
}

/** All that a consumer is shown; it would wait for more. */
async function read(client: Client, topic: string): Promise<string[]> {
  const values: string[] = [];
  for (let offset = 0; ; ) {
    const { records } = await client.fetchOne(topic, partition, offset, { maxWaitMs: 200 });
    const found = decodeRecords(records ?? new Uint8Array(0), offset);
    if (found.records.length === 0) return values;
    values.push(...found.records.map(({ value }) => textOf(value)));
    offset = found.nextOffset;
  }
}

async function eventually(condition: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + backMs;
  while (!(await condition())) {
    assert(performance.now() < deadline, `not so within ${backMs / 1000} s: ${condition}`);
    await sleep(lookAgainMs);
  }
}

test.run();
