/** What the client says of a server that is not what it takes it for, and what becomes of requests whose connection ends. */
import assert from 'node:assert/strict';
import { createServer, type Server, type Socket } from 'node:net';
import { suite } from 'uvu';
import { BrokerConnection } from '../../../net/client/connection.ts';
import { ApiKey } from '../../../net/protocol/api_key.gen.ts';
import { decodeRequestHeader, encodeResponseFrame } from '../../../net/protocol/frame.ts';
import { Reader } from '../../../net/protocol/reader.ts';
import { failure } from '../../harness/client_stage.ts';

const test = suite('client connection');

interface Peer {
  readonly port: number;
  readonly sockets: Socket[];
  close(): void;
}

/** A server that hands each piece of what it receives to `onData`. */
function listen(onData: (socket: Socket, chunk: Buffer, n: number) => void): Promise<Peer> {
  const sockets: Socket[] = [];
  const server: Server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
    let n = 0;
    socket.on('data', (chunk) => {
      n += 1;
      onData(socket, chunk as Buffer, n);
    });
  });
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      assert(address !== null && typeof address === 'object');
      const close = (): void => {
        server.close();
        for (const socket of sockets) socket.destroy();
      };
      resolve({ port: address.port, sockets, close });
    });
  });
}

const versions = [
  { apiKey: ApiKey.ApiVersions, minVersion: 0, maxVersion: 4 },
  { apiKey: ApiKey.Metadata, minVersion: 4, maxVersion: 9 },
];

/** Answers ApiVersions as a broker does, and leaves all other requests to `onRequest`. */
function broker(
  onRequest: (socket: Socket, apiKey: number, correlationId: number) => void,
): Promise<Peer> {
  return listen((socket, chunk) => {
    for (let at = 0; at + 4 <= chunk.length; at += 4 + chunk.readInt32BE(at)) {
      const header = decodeRequestHeader(new Reader(chunk, at + 4));
      const { apiKey, apiVersion, correlationId } = header;
      if (apiKey !== ApiKey.ApiVersions) {
        onRequest(socket, apiKey, correlationId);
        continue;
      }
      const value = { errorCode: 0, apiKeys: versions };
      socket.write(
        encodeResponseFrame(apiKey, apiVersion, correlationId, 'ApiVersionsResponse', value).bytes,
      );
    }
  });
}

function open(port: number, connectTimeoutMs = 2_000): Promise<BrokerConnection> {
  const options = { clientId: 'test', connectTimeoutMs, tls: null };
  return BrokerConnection.open({ host: '127.0.0.1', port }, options);
}

const metadata = { topics: [], allowAutoTopicCreation: false };
const metadataAnswer = (correlationId: number): Uint8Array =>
  encodeResponseFrame(ApiKey.Metadata, 9, correlationId, 'MetadataResponse', {
    ...{ brokers: [], topics: [], clusterId: 'c', controllerId: 1 },
  }).bytes;

test('nobody listens', async () => {
  const peer = await listen(() => undefined);
  peer.close();
  const error = await failure(open(peer.port));
  assert.equal(error.code, 'BROKER_UNREACHABLE');
  assert.equal(error.message, `nothing listens at 127.0.0.1:${peer.port}`);
  assert.match(error.remedy ?? '', /broker runs/);
  assert.equal(error.isRetriable, true);
});

const strangers: readonly (readonly [string, string | Buffer, string, RegExp])[] = [
  ['an HTTP server', 'HTTP/1.1 400 Bad Request\r\n\r\n', 'NOT_KAFKA', /is an HTTP server/],
  ['an SSH server', 'SSH-2.0-OpenSSH_9.6\r\n', 'NOT_KAFKA', /begins with "SSH-2\.0-OpenSSH"?/],
  ['a TLS listener', Buffer.from('15030300020246', 'hex'), 'TLS_PORT', /is a TLS listener/],
];
for (const [name, said, code, text] of strangers)
  test(`${name} is told from a broker, and not tried again`, async () => {
    const peer = await listen((socket) => socket.write(said));
    try {
      const error = await failure(open(peer.port));
      assert.equal(error.code, code);
      assert.match(error.message, text);
      assert.equal(error.isRetriable, false);
      assert.notEqual(error.remedy, null);
    } finally {
      peer.close();
    }
  });

test('a server that hangs up, and one that says nothing', async () => {
  const rude = await listen((socket) => socket.end());
  const silent = await listen(() => undefined);
  try {
    const ended = await failure(open(rude.port));
    assert.equal(ended.code, 'CONNECTION_LOST');
    assert.match(ended.remedy ?? '', /PLAINTEXT listener/);
    const late = await failure(open(silent.port, 100));
    assert.equal(late.code, 'TIMED_OUT');
  } finally {
    rude.close();
    silent.close();
  }
});

test('a broker that does not know the version of ApiVersions is asked in version 0', async () => {
  const asked: number[] = [];
  const peer = await listen((socket, chunk) => {
    const header = decodeRequestHeader(new Reader(chunk, 4));
    asked.push(header.apiVersion);
    const errorCode = header.apiVersion === 0 ? 0 : 35;
    const value = { errorCode, apiKeys: versions };
    const { apiKey, correlationId } = header;
    socket.write(encodeResponseFrame(apiKey, 0, correlationId, 'ApiVersionsResponse', value).bytes);
  });
  try {
    const connection = await open(peer.port);
    assert.deepEqual(asked, [3, 0]);
    assert.equal(connection.version('Metadata'), 9);
    assert.equal(connection.version('Metadata', 0, 5), 5);
    assert.throws(() => connection.version('Metadata', 10), { code: 'UNSUPPORTED_VERSION' });
    assert.throws(() => connection.version('Produce'), /does not serve it/);
    connection.close();
  } finally {
    peer.close();
  }
});

test('pipelined answers, in one piece or byte by byte, find their requests', async () => {
  const peer = await broker((socket, _apiKey, correlationId) => {
    const answer = metadataAnswer(correlationId);
    if (correlationId % 2 === 0) socket.write(answer);
    else for (const byte of answer) socket.write(Uint8Array.of(byte));
  });
  try {
    const connection = await open(peer.port);
    const asked = Array.from({ length: 200 }, () =>
      connection.request('Metadata', metadata, { timeoutMs: 5_000 }),
    );
    assert.equal(connection.inFlight, 200);
    for (const reply of await Promise.all(asked)) assert.equal(reply.clusterId, 'c');
    assert.equal(connection.inFlight, 0);
    connection.close();
  } finally {
    peer.close();
  }
});

test('an answer that is cut off: what was sent is lost, what was not has not been sent', async () => {
  const peer = await broker((socket, _apiKey, correlationId) => {
    socket.end(metadataAnswer(correlationId).subarray(0, 9));
  });
  try {
    const connection = await open(peer.port);
    const lost = await failure(connection.request('Metadata', metadata, { timeoutMs: 5_000 }));
    assert.equal(lost.code, 'CONNECTION_LOST');
    assert.match(lost.message, /in the middle of an answer/);
    assert.equal((await connection.closed).code, 'CONNECTION_LOST');
    const unsent = await failure(connection.request('Metadata', metadata, { timeoutMs: 5_000 }));
    assert.equal(unsent.code, 'BROKER_UNREACHABLE');
  } finally {
    peer.close();
  }
});

test('a request without an answer ends the connection in its time', async () => {
  const peer = await broker(() => undefined);
  try {
    const connection = await open(peer.port);
    const long = connection.request('Metadata', metadata, { timeoutMs: 30_000 });
    const short = connection.request('Metadata', metadata, { timeoutMs: 50 });
    assert.equal((await failure(short)).code, 'TIMED_OUT');
    assert.equal((await failure(long)).code, 'TIMED_OUT');
    assert.equal(connection.isOpen, false);
  } finally {
    peer.close();
  }
});

test('an aborted request rejects with its reason, and its answer harms nobody', async () => {
  let release: () => void = () => undefined;
  const peer = await broker((socket, _apiKey, correlationId) => {
    const answer = (): void => void socket.write(metadataAnswer(correlationId));
    const before = release;
    release = () => {
      before();
      answer();
    };
  });
  try {
    const connection = await open(peer.port);
    const controller = new AbortController();
    const { signal } = controller;
    const aborted = connection.request('Metadata', metadata, { timeoutMs: 5_000, signal });
    const other = connection.request('Metadata', metadata, { timeoutMs: 5_000 });
    const reason = new Error('enough');
    controller.abort(reason);
    assert.equal(await aborted.catch((error: unknown) => error), reason);
    setTimeout(() => release(), 20);
    assert.equal((await other).clusterId, 'c');
    connection.close();
  } finally {
    peer.close();
  }
});

test('an answer that nobody asked for ends the connection', async () => {
  const peer = await broker((socket, _apiKey, correlationId) => {
    socket.write(metadataAnswer(correlationId + 5));
  });
  try {
    const connection = await open(peer.port);
    const error = await failure(connection.request('Metadata', metadata, { timeoutMs: 5_000 }));
    assert.match(error.message, /nobody asked for/);
  } finally {
    peer.close();
  }
});

test.run();
