/** Over real sockets, for a node that knows nothing. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { LevelLogger } from '../../../net/logger.ts';
import { ControllerListener } from '../../../net/peer/controller_listener.ts';
import { raftRpcs } from '../../../net/peer/raft_rpcs.ts';
import { uuidZero } from '../../../replication/metadata/records.ts';
import type { RaftReply } from '../../../replication/raft/messages.ts';
import { uuids } from '../../replication/metadata/fixtures.ts';
import { configOf } from '../data_path/shard_world.ts';
import { SocketClient } from '../data_path/socket_client.ts';
import { eventually } from '../server/harness.ts';

const test = suite('controller_listener');

const unknown: RaftReply = {
  type: 'formation',
  ...{ errorCode: ErrorCode.NONE, leaderId: -1, leaderEpoch: 0, clusterId: '', isEmpty: true },
  ...{ replicaId: 1, replicaDirectoryId: uuidZero, voterIds: [] },
};

test('a node that calls is there until the last of its connections ends', async () => {
  const news: string[] = [];
  const listener = new ControllerListener(
    configOf([
      'node.id=1',
      'listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0',
      'controller.quorum.voters=1@127.0.0.1:1,2@127.0.0.1:2',
    ]),
    {
      nodeId: 1,
      clusterId: () => '',
      raft: (_request, done) => done(unknown),
      request: () => new Promise(() => {}),
      heard: (nodeId) => news.push(`heard ${nodeId}`),
      lost: (nodeId) => news.push(`lost ${nodeId}`),
    },
    new LevelLogger(
      { format: 'text', level: 'fatal' },
      () => {},
      () => 0,
    ),
  );
  await listener.listen();
  const uuid = uuids(9);
  const ask = async (replicaId: number): Promise<SocketClient> => {
    const client = await SocketClient.connect(listener.port);
    const replica = { replicaId, replicaDirectoryId: uuid() };
    const request = { type: 'formation', ...replica, clusterId: '', voterIds: [1, 2] } as const;
    const { version, toRequest } = raftRpcs.formation;
    client.send('Formation', version, toRequest(request) as never);
    return client;
  };
  const clients = [await ask(2), await ask(2), await ask(1)];
  await eventually(() => news.length === 2);
  assert.deepEqual(news, ['heard 2', 'heard 2']);
  assert.equal(listener.hasCaller(2), true);
  clients[0]!.close();
  await eventually(() => news.length === 3);
  assert.equal(listener.hasCaller(2), true);
  clients[1]!.close();
  await eventually(() => news.length === 4);
  assert.deepEqual(news.slice(2), ['lost 2', 'lost 2']);
  assert.equal(listener.hasCaller(2), false);
  assert.equal(listener.hasCaller(1), false, 'nobody calls himself');
  clients[2]!.close();
  await listener.close(10);
});

test.run();
