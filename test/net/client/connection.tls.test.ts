/** The client and TLS listeners: spoken to in TLS, and by mistake in plain text. */
import assert from 'node:assert/strict';
import { type AddressInfo, createServer as createPlainServer, type Socket } from 'node:net';
import { createServer, type Server } from 'node:tls';
import { suite } from 'uvu';
import { Client } from '../../../net/client/client.ts';
import { BrokerConnection } from '../../../net/client/connection.ts';
import { decodeRequestHeader, encodeResponseFrame } from '../../../net/protocol/frame.ts';
import { Reader } from '../../../net/protocol/reader.ts';
import { certificate as cert, privateKey as key } from '../../harness/tls_certificate.ts';

const test = suite('client connection, TLS');

/** A TLS server that answers every request as if it were for versions. */
function listen(): Promise<{ server: Server; port: number }> {
  const server = createServer({ key, cert }, (socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => {
      const { apiKey, apiVersion, correlationId } = decodeRequestHeader(new Reader(chunk, 4));
      const value = { errorCode: 0, apiKeys: [{ apiKey: 3, minVersion: 4, maxVersion: 9 }] };
      const answer = encodeResponseFrame(
        ...([apiKey, apiVersion, correlationId, 'ApiVersionsResponse', value] as const),
      );
      socket.write(answer.bytes);
    });
  });
  server.on('tlsClientError', () => undefined);
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      assert(address !== null && typeof address === 'object');
      resolve({ server, port: address.port });
    });
  });
}

test('a TLS listener is spoken to in TLS', async () => {
  const { server, port } = await listen();
  try {
    const options = { clientId: 'test', connectTimeoutMs: 5_000, tls: { ca: cert } };
    const connection = await BrokerConnection.open({ host: 'localhost', port }, options);
    assert.equal(connection.version('Metadata'), 9);
    connection.close();
    const untrusted = BrokerConnection.open({ host: 'localhost', port }, { ...options, tls: {} });
    await assert.rejects(untrusted, {
      ...{ code: 'BROKER_UNREACHABLE', message: /certificate of .* is not trusted: self-signed/ },
      ...{ isRetriable: false, remedy: /NODE_EXTRA_CA_CERTS.*ca/ },
    });
  } finally {
    server.close();
  }
});

test('a certificate for another host is told with its names, and an address is no server name', async () => {
  const { server, port } = await listen();
  const warnings: Error[] = [];
  const onWarning = (warning: Error): void => void warnings.push(warning);
  process.on('warning', onWarning);
  try {
    const options = { clientId: 'test', connectTimeoutMs: 5_000, tls: { ca: cert } };
    const other = { ...options, tls: { ca: cert, servername: 'broker.example' } };
    await assert.rejects(BrokerConnection.open({ host: 'localhost', port }, other), {
      ...{ code: 'BROKER_UNREACHABLE', message: /is for another host: .*broker\.example/ },
      ...{ isRetriable: false, remedy: /a name that is in the certificate/ },
    });
    const connection = await BrokerConnection.open({ host: '127.0.0.1', port }, options);
    connection.close();
    assert.deepEqual(warnings, []);
  } finally {
    process.off('warning', onWarning);
    server.close();
  }
});

test('what does not speak TLS is told, whether it answers or hangs up', async () => {
  const options = { clientId: 'test', connectTimeoutMs: 5_000, tls: {} };
  const answers: [(socket: Socket) => void, RegExp][] = [
    [(socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'), /does not speak TLS$/],
    [(socket) => socket.destroy(), /hung up on the TLS handshake$/],
  ];
  for (const [answer, message] of answers) {
    const server = createPlainServer((socket) =>
      socket.on('error', () => {}).once('data', () => answer(socket)),
    );
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const opening = BrokerConnection.open({ host: '127.0.0.1', port }, options);
    await assert.rejects(opening, {
      ...{ code: 'BROKER_UNREACHABLE', message, remedy: /^Leave TLS out/ },
    });
    server.close();
  }
});

test('a TLS listener that is spoken to in plain text is told at once', async () => {
  const { server, port } = await listen();
  try {
    await using client = new Client({ bootstrap: `localhost:${port}` });
    await using producer = client.producer();
    await assert.rejects(producer.send({ topic: 't', value: 'v' }), {
      ...{
        code: 'TLS_PORT',
        message: /is a TLS listener/,
        remedy: /`tls: true`.*--tls.*PLAINTEXT listener/,
      },
    });
  } finally {
    server.close();
  }
});

test.run();
