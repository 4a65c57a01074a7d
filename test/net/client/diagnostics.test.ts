/** What listeners hear of a client's requests and batches, by `observe` and by Node's own channels. */
import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { type AddressInfo, createServer } from 'node:net';
import { suite } from 'uvu';
import { BufferPool } from '../../../net/client/buffer_pool.ts';
import { type BatchEvent, Client, observe, type RequestEvent } from '../../../net/client/client.ts';
import { BrokerConnection } from '../../../net/client/connection.ts';
import { tellBatch } from '../../../net/client/diagnostics.ts';
import { MillraceError } from '../../../net/client/errors.ts';
import { PartitionQueue } from '../../../net/client/partition_queue.ts';
import { noHeaderBytes, RecordBatch } from '../../../net/client/record_batch.ts';
import { ApiKey } from '../../../net/protocol/api_key.gen.ts';
import { decodeRequestHeader, encodeResponseFrame } from '../../../net/protocol/frame.ts';
import { Reader } from '../../../net/protocol/reader.ts';
import { BrokerProcess, millrace } from '../../harness/broker_process.ts';

const test = suite('diagnostics');
let broker: BrokerProcess;

test.before(async () => {
  broker = await BrokerProcess.start({ launcher: millrace });
});

test.after(() => broker.dispose());

test('every request and every batch is told, until nobody listens', async () => {
  const requests: RequestEvent[] = [];
  const batches: BatchEvent[] = [];
  const stop = observe('request', (event) => requests.push(event));
  const stopBatches = observe('batch', (event) => batches.push(event));
  await using client = new Client({ bootstrap: broker.bootstrap, clientId: 'watched' });
  await client.admin().createTopic('orders');
  await using producer = client.producer();
  const value = 'x'.repeat(1_000);
  await Promise.all(Array.from({ length: 3 }, () => producer.send({ topic: 'orders', value })));
  const produce = requests.filter(({ api }) => api === 'Produce');
  assert.equal(produce.length, producer.metrics.requests);
  const [one] = produce;
  assert(one !== undefined && one.requestBytes > 3_000 && one.responseBytes > 20);
  assert(one.latencyMs > 0);
  assert.deepEqual([one.broker, one.clientId, one.error], [broker.bootstrap, 'watched', null]);
  for (const api of ['ApiVersions', 'Metadata', 'CreateTopics', 'InitProducerId'])
    assert(
      requests.some((event) => event.api === api),
      api,
    );
  const records = batches.reduce((sum, batch) => sum + batch.records, 0);
  const { topic, partition, retries, error, bytes } = batches[0] as BatchEvent;
  assert.deepEqual([records, topic, partition, retries, error], [3, 'orders', 0, 0, null]);
  assert(bytes > 1_000 && (batches[0] as BatchEvent).latencyMs >= one.latencyMs);
  stop();
  stopBatches();
  const count = requests.length + batches.length;
  await producer.send({ topic: 'orders', value });
  assert.equal(requests.length + batches.length, count);
});

test('whoever does not import the client subscribes to the channel', async () => {
  const heard: RequestEvent[] = [];
  const listener = (event: unknown): void => void heard.push(event as RequestEvent);
  subscribe('millrace.client.request', listener);
  await using client = new Client({ bootstrap: broker.bootstrap });
  await client.clusterId();
  unsubscribe('millrace.client.request', listener);
  assert(heard.some(({ api, version }) => api === 'Metadata' && version > 0));
});

test('a request that has no answer is told with its error', async () => {
  // Says which versions it serves, and hangs up on what comes next.
  const server = createServer((socket) => {
    socket.on('data', (chunk: Buffer) => {
      const { apiKey, apiVersion, correlationId } = decodeRequestHeader(new Reader(chunk, 4));
      if (apiKey !== ApiKey.ApiVersions) {
        socket.destroy();
        return;
      }
      const value = { errorCode: 0, apiKeys: [{ apiKey: 3, minVersion: 4, maxVersion: 9 }] };
      const answer = encodeResponseFrame(
        ...([apiKey, apiVersion, correlationId, 'ApiVersionsResponse', value] as const),
      );
      socket.write(answer.bytes);
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const heard: RequestEvent[] = [];
  const stop = observe('request', (event) => heard.push(event));
  const options = { clientId: 'gone', connectTimeoutMs: 5_000, tls: null };
  const connection = await BrokerConnection.open({ host: '127.0.0.1', port }, options);
  const asked = connection.request('Metadata', { topics: null }, { timeoutMs: 5_000 });
  await assert.rejects(asked, { code: 'CONNECTION_LOST' });
  stop();
  server.close();
  assert.deepEqual(
    heard.map(({ api, responseBytes, error }) => [api, responseBytes > 0, error?.code ?? null]),
    [
      ['ApiVersions', true, null],
      ['Metadata', false, 'CONNECTION_LOST'],
    ],
  );
});

test('a batch that was sent again says how often', () => {
  const heard: BatchEvent[] = [];
  const stop = observe('batch', (event) => heard.push(event));
  const batch = new RecordBatch(new BufferPool(0), 1_000, 500, performance.now());
  batch.append(0, null, -1, 'v', 1, noHeaderBytes);
  batch.attempts = 3;
  const error = new MillraceError('TIMED_OUT', 'too late');
  tellBatch(new PartitionQueue('t', 4), batch, error);
  stop();
  assert.equal(heard.length, 1);
  const { topic, partition, records, retries } = heard[0] as BatchEvent;
  assert.deepEqual([topic, partition, records, retries], ['t', 4, 1, 2]);
  assert.equal(heard[0]?.error, error);
});

test.run();
