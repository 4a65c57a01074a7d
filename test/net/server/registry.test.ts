import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { decodeResponse, encodeRequestFrame } from '../../../net/protocol/frame.ts';
import { Reader } from '../../../net/protocol/reader.ts';
import { Acceptor } from '../../../net/server/acceptor.ts';
import { ConnectionCounts } from '../../../net/server/connection_counts.ts';
import { ConnectionHost } from '../../../net/server/connection_host.ts';
import { Registry, rpc } from '../../../net/server/registry.ts';
import type { RequestContext } from '../../../net/server/request_context.ts';
import { connectClient, libc, TestLog } from './harness.ts';

const test = suite('registry');

const handle = (ctx: RequestContext): void => ctx.respondNothing();

test('an API has one handler, and its versions exist', () => {
  const registry = new Registry();
  registry.register({ apiKey: 3, minVersion: 0, maxVersion: 12, handle });
  assert.throws(
    () => registry.register({ apiKey: 3, minVersion: 0, maxVersion: 12, handle }),
    /Metadata has two handlers/,
  );
  assert.throws(() => registry.register({ apiKey: 12_345, minVersion: 0, maxVersion: 0, handle }));
  assert.throws(() => registry.register({ apiKey: 1, minVersion: 4, maxVersion: 400, handle }));
  assert.equal(registry.find(1), null);
});

test('what is registered is advertised, Produce from version 0 on', () => {
  const registry = new Registry();
  registry.register({ apiKey: 18, minVersion: 0, maxVersion: 3, handle });
  registry.register({ apiKey: 0, minVersion: 3, maxVersion: 11, handle });
  assert.deepEqual(registry.served(), [
    { apiKey: 0, minVersion: 0, maxVersion: 11 },
    { apiKey: 18, minVersion: 0, maxVersion: 3 },
  ]);
});

test('rpc decodes, calls and encodes, at once or later; other versions go where the handler says', async () => {
  const registry = new Registry();
  const handler = rpc('DescribeCluster', 0, 1, (request, ctx) => {
    const response = {
      throttleTimeMs: 0,
      errorCode: request.endpointType,
      errorMessage: ctx.clientId,
      clusterId: 'c',
      controllerId: 1,
      brokers: [],
      clusterAuthorizedOperations: 0,
    };
    return request.includeClusterAuthorizedOperations ? Promise.resolve(response) : response;
  });
  registry.register({
    ...handler,
    unsupportedVersion: (ctx) =>
      ctx.respond<'DescribeCluster'>(
        'DescribeClusterResponse',
        { throttleTimeMs: 0, errorCode: 35, clusterId: '', brokers: [] },
        0,
      ),
  });
  const { host, acceptor, log } = await serve(registry);
  const client = await connectClient(acceptor.port);
  const send = (correlationId: number, later: boolean): void => {
    const header = { apiKey: 60, apiVersion: 1, correlationId, clientId: 'me' };
    const value = { includeClusterAuthorizedOperations: later, endpointType: correlationId };
    const { bytes } = encodeRequestFrame<'DescribeCluster'>(
      header,
      'DescribeClusterRequest',
      value,
    );
    client.socket.write(bytes);
  };
  send(1, false);
  send(2, true);
  send(3, false);
  await client.untilFrames(3);
  for (const [at, frame] of client.frames.entries()) {
    const reader = new Reader(frame);
    const { correlationId, value } = decodeResponse<'DescribeCluster'>(
      reader,
      60,
      1,
      'DescribeClusterResponse',
    );
    assert.deepEqual([correlationId, value.errorCode, value.errorMessage], [at + 1, at + 1, 'me']);
  }
  const newer = Buffer.from('0000000c003c0063000000070000000000', 'hex').subarray(0, 16);
  client.socket.write(newer);
  await client.untilFrames(4);
  const reader = new Reader(client.frames[3] as Buffer);
  const last = decodeResponse<'DescribeCluster'>(reader, 60, 0, 'DescribeClusterResponse');
  assert.deepEqual([last.correlationId, last.value.errorCode], [7, 35]);

  // A body that is no message: the connection ends, with the field in the log.
  client.socket.write(Buffer.from('0000000d003c0001000000080002006d65', 'hex'));
  await client.untilClosed();
  assert.match(log.texts('warn').join(), /malformed request: /);
  await host.stop(1_000);
  client.socket.destroy();
  await acceptor.close();
});

async function serve(
  registry: Registry,
): Promise<{ host: ConnectionHost; acceptor: Acceptor; log: TestLog }> {
  const log = new TestLog();
  const host = new ConnectionHost({
    registry,
    log,
    limits: { frameBytesMax: 1e6, requestMemoryBytesMax: 1e6, idleMsMax: -1 },
    sendFile: null,
    onConnectionClosed: () => {},
  });
  const acceptor = await Acceptor.listen({
    listener: 'PLAINTEXT',
    host: '127.0.0.1',
    port: 0,
    log,
    counts: new ConnectionCounts({ connectionsMax: 10, connectionsPerIpMax: 10 }),
    delivery: {
      type: 'descriptor',
      dup: libc.dup,
      deliver: (fd, origin) => void host.adopt(fd, origin),
    },
  });
  return { host, acceptor, log };
}

test.run();
