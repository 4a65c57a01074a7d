/** What people do to partitions of three brokers in this process: moving, electing, stopping, forgetting one. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { type Broker, startBroker } from '../../net/broker.ts';
import { LevelLogger } from '../../net/logger.ts';
import { freePorts } from '../harness/cluster.ts';
import { configOf } from './data_path/shard_world.ts';
import { SocketClient } from './data_path/socket_client.ts';

const test = suite('administration of a cluster');

const directory = mkdtempSync(join(tmpdir(), 'millrace-cluster-'));
const brokers = new Map<number, Broker>();
let voters = '';

test.before(async () => {
  const ports = await freePorts(3, '127.0.0.1');
  voters = ports.map((port, index) => `${index + 1}@127.0.0.1:${port}`).join(',');
  await Promise.all(ports.map((port, index) => start(index + 1, port)));
});

test.after(async () => {
  await Promise.all([...brokers.values()].map((broker) => broker.stop().catch(() => undefined)));
  rmSync(directory, { recursive: true, force: true });
});

async function start(id: number, controllerPort: number): Promise<void> {
  const config = configOf([
    `node.id=${id}`,
    `log.dirs=${join(directory, String(id))}`,
    `listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:${controllerPort}`,
    `controller.quorum.voters=${voters}`,
  ]);
  const logger = new LevelLogger(
    { format: 'text', level: 'fatal' },
    () => {},
    () => 0,
  );
  brokers.set(id, await startBroker(config, logger, {}));
}

async function stop(id: number): Promise<void> {
  const broker = brokers.get(id)!;
  brokers.delete(id);
  await broker.stop();
}

/** Asks broker 1, which never stops here. */
async function asking<T>(ask: (client: SocketClient) => Promise<T>): Promise<T> {
  const client = await SocketClient.connect(brokers.get(1)!.address.port);
  try {
    return await ask(client);
  } finally {
    client.close();
  }
}

/** Leader and ISR, ascending, of partition 0 as broker 1 tells them: `2 [2,3]`. */
async function state(topic: string): Promise<string> {
  const { topics } = await asking((client) =>
    client.call('DescribeTopicPartitions', 0, { topics: [{ name: topic }] }),
  );
  const { leaderId, isrNodes } = topics[0]!.partitions[0]!;
  return `${leaderId} [${[...isrNodes].sort((a, b) => a - b)}]`;
}

async function eventually(topic: string, expected: string): Promise<void> {
  while ((await state(topic)) !== expected) await new Promise((resolve) => setTimeout(resolve, 20));
}

async function create(name: string, brokerIds: number[]): Promise<void> {
  const { topics } = await asking((client) =>
    client.call('CreateTopics', 7, {
      topics: [
        {
          name,
          numPartitions: -1,
          replicationFactor: -1,
          assignments: [{ partitionIndex: 0, brokerIds }],
          configs: [],
        },
      ],
      timeoutMs: 30_000,
    }),
  );
  assert.equal(topics[0]?.errorCode, ErrorCode.NONE);
}

test('a partition moves to other brokers, and is where it was asked to be', async () => {
  await create('moved', [1]);
  const partitions = [{ partitionIndex: 0, replicas: [2, 3] }];
  const { responses } = await asking((client) =>
    client.call('AlterPartitionReassignments', 1, {
      topics: [{ name: 'moved', partitions }],
      timeoutMs: 30_000,
      allowReplicationFactorChange: true,
    }),
  );
  assert.equal(responses[0]?.partitions[0]?.errorCode, ErrorCode.NONE);
  await eventually('moved', '2 [2,3]');
  const { topics } = await asking((client) =>
    client.call('ListPartitionReassignments', 0, { topics: null }),
  );
  assert.deepEqual(topics, []);
});

test('the quorum tells how far its voters are', async () => {
  const topics = [{ topicName: '__cluster_metadata', partitions: [{ partitionIndex: 0 }] }];
  const response = await asking((client) => client.call('DescribeQuorum', 2, { topics }));
  assert.equal(response.errorCode, ErrorCode.NONE);
  const { leaderId, currentVoters, observers } = response.topics[0]!.partitions[0]!;
  assert(leaderId >= 1 && leaderId <= 3);
  assert.deepEqual(currentVoters.map(({ replicaId }) => replicaId).sort(), [1, 2, 3]);
  assert.deepEqual(observers, []);
  assert.equal(response.nodes.length, 3);
});

test('leadership moves when a broker stops, and back when that is asked for', async () => {
  await create('led', [3, 1, 2]);
  assert.equal(await state('led'), '3 [1,2,3]');
  await stop(3);
  assert.equal(await state('led'), '1 [1,2]');
  await start(3, Number(voters.split(',')[2]!.split(':')[1]));
  await eventually('led', '1 [1,2,3]');
  const { replicaElectionResults } = await asking((client) =>
    client.call('ElectLeaders', 2, {
      electionType: 0,
      topicPartitions: [{ topic: 'led', partitions: [0] }],
      timeoutMs: 30_000,
    }),
  );
  assert.equal(replicaElectionResults[0]?.partitionResult[0]?.errorCode, ErrorCode.NONE);
  assert.equal(await state('led'), '3 [1,2,3]');
});

test('a broker that has stopped can be forgotten', async () => {
  await stop(2);
  const unregister = () => asking((client) => client.call('UnregisterBroker', 0, { brokerId: 2 }));
  assert.equal((await unregister()).errorCode, ErrorCode.NONE);
  assert.equal((await unregister()).errorCode, ErrorCode.BROKER_ID_NOT_REGISTERED);
  const { brokers: known } = await asking((client) =>
    client.call('DescribeCluster', 2, {
      includeClusterAuthorizedOperations: false,
      endpointType: 1,
      includeFencedBrokers: true,
    }),
  );
  assert.deepEqual(known.map(({ brokerId }) => brokerId).sort(), [1, 3]);
});

test.run();
