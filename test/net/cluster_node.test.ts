/** Three brokers in this process as one cluster, over real sockets and disks. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { type Broker, StartAbandoned, startBroker } from '../../net/broker.ts';
import { LevelLogger } from '../../net/logger.ts';
import { freePorts } from '../harness/cluster.ts';
import { configOf } from './data_path/shard_world.ts';
import { SocketClient } from './data_path/socket_client.ts';

const test = suite('cluster_node');

const directory = mkdtempSync(join(tmpdir(), 'millrace-cluster-'));
const ids = [1, 2, 3];
const brokers = new Map<number, Broker>();
let controllerPorts: number[] = [];

test.before(async () => {
  controllerPorts = await freePorts(ids.length, '127.0.0.1');
});

test.after(async () => {
  await Promise.all([...brokers.values()].map((broker) => broker.stop().catch(() => undefined)));
  rmSync(directory, { recursive: true, force: true });
});

async function start(id: number, stopRequested?: Promise<void>): Promise<void> {
  const voters = controllerPorts.map((port, index) => `${index + 1}@127.0.0.1:${port}`);
  const config = configOf([
    `node.id=${id}`,
    `log.dirs=${join(directory, String(id))}`,
    `listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:${controllerPorts[id - 1]}`,
    `controller.quorum.voters=${voters.join(',')}`,
  ]);
  const logger = new LevelLogger(
    { format: 'text', level: 'fatal' },
    () => {},
    () => 0,
  );
  brokers.set(id, await startBroker(config, logger, {}, stopRequested));
}

async function stop(id: number): Promise<void> {
  const broker = brokers.get(id)!;
  brokers.delete(id);
  await broker.stop();
}

function connect(id: number): Promise<SocketClient> {
  return SocketClient.connect(brokers.get(id)!.address.port);
}

/** The cluster's id, and the brokers that live, as broker `id` tells them. */
async function described(id: number): Promise<[string, number[]]> {
  const client = await connect(id);
  const { clusterId, brokers: living } = await client.call('DescribeCluster', 1, {
    includeClusterAuthorizedOperations: false,
  });
  client.close();
  return [clusterId, living.map(({ brokerId }) => brokerId).sort()];
}

async function eventually(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 20));
}

test('a voter that waits for the others can be told to stop', async () => {
  await assert.rejects(start(1, Promise.resolve()), StartAbandoned);
});

test('three empty brokers become one cluster, which all of them know', async () => {
  await Promise.all(ids.map((id) => start(id)));
  const [clusterId] = await described(1);
  assert.match(clusterId, /^[A-Za-z0-9_-]{22}$/);
  for (const id of ids)
    await eventually(async () => {
      const [told, living] = await described(id);
      return told === clusterId && living.length === 3;
    });
});

test('topics can be created at any broker, which knows them when it answers', async () => {
  for (const id of ids) {
    const client = await connect(id);
    const name = `made-by-${id}`;
    const { topics } = await client.call('CreateTopics', 7, {
      topics: [
        { name, numPartitions: 3, replicationFactor: 1, assignments: [], configs: [] },
        { name: 'a/b', numPartitions: 1, replicationFactor: 1, assignments: [], configs: [] },
      ],
      timeoutMs: 30_000,
    });
    assert.deepEqual(
      topics.map(({ errorCode }) => errorCode),
      [ErrorCode.NONE, ErrorCode.INVALID_TOPIC_EXCEPTION],
    );
    const metadata = await client.call('Metadata', 12, {
      topics: [{ name }],
      allowAutoTopicCreation: false,
    });
    assert.equal(metadata.topics[0]?.errorCode, ErrorCode.NONE);
    assert.equal(metadata.topics[0]?.partitions.length, 3);
    const { errorCode, producerId } = await client.call('InitProducerId', 4, {
      transactionalId: null,
      transactionTimeoutMs: 0,
    });
    assert.deepEqual([errorCode, Number(producerId) % 1000], [ErrorCode.NONE, 0]);
    client.close();
  }
});

test('settings that are changed at one broker count at the others', async () => {
  const client = await connect(3);
  const { responses } = await client.call('IncrementalAlterConfigs', 1, {
    resources: [
      {
        resourceType: 2,
        resourceName: 'made-by-1',
        configs: [{ name: 'retention.ms', configOperation: 0, value: '777' }],
      },
    ],
    validateOnly: false,
  });
  assert.equal(responses[0]?.errorCode, ErrorCode.NONE);
  client.close();
  const other = await connect(2);
  await eventually(async () => {
    const { results } = await other.call('DescribeConfigs', 4, {
      resources: [
        { resourceType: 2, resourceName: 'made-by-1', configurationKeys: ['retention.ms'] },
      ],
    });
    return results[0]?.configs[0]?.value === '777';
  });
  other.close();
});

test('a broker that stops is gone for the others when it has stopped, and comes back', async () => {
  const [clusterId] = await described(1);
  for (const id of ids) {
    await stop(id);
    const others = ids.filter((other) => other !== id);
    for (const other of others)
      await eventually(async () => (await described(other))[1].length === 2);
    const client = await connect(others[0]!);
    const name = `without-${id}`;
    const { topics } = await client.call('CreateTopics', 7, {
      topics: [{ name, numPartitions: 1, replicationFactor: 2, assignments: [], configs: [] }],
      timeoutMs: 30_000,
    });
    assert.deepEqual(topics[0]?.errorCode, ErrorCode.NONE);
    client.close();
    await start(id);
    await eventually(async () => (await described(id))[1].length === 3);
    assert.equal((await described(id))[0], clusterId);
  }
});

test.run();
