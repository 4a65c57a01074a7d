/** The client and TLS listeners: spoken to in TLS, and by mistake in plain text. */
import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:tls';
import { suite } from 'uvu';
import { Client } from '../../../net/client/client.ts';
import { BrokerConnection } from '../../../net/client/connection.ts';
import { decodeRequestHeader, encodeResponseFrame } from '../../../net/protocol/frame.ts';
import { Reader } from '../../../net/protocol/reader.ts';

const test = suite('client connection, TLS');

/** For localhost, made for this test alone and trusted by nobody else. */
const key = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgoAy0l1BybmOWh2hf
m9N6eWHIkvz7eUVNr0P8wLYMTsehRANCAAQ5rTaylA33IpeET2QA8V0Mu1BBSTZu
V9C5QeQcUkwhxUycjjJSslrqZskiy3XeWAuDzm/NvaWZUYQP5YBlt7DM
-----END PRIVATE KEY-----`;
const cert = `-----BEGIN CERTIFICATE-----
MIIBmzCCAUGgAwIBAgIUUj/33knZk0whzqy4herveY5jfp8wCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEzMDA1MTMxM1oYDzIxMjYxMTA2
MDUxMzEzWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAQ5rTaylA33IpeET2QA8V0Mu1BBSTZuV9C5QeQcUkwhxUycjjJSslrq
Zskiy3XeWAuDzm/NvaWZUYQP5YBlt7DMo28wbTAdBgNVHQ4EFgQUDm4fa58QNf5S
Rn0ftn+kfU2Rt+8wHwYDVR0jBBgwFoAUDm4fa58QNf5SRn0ftn+kfU2Rt+8wDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
zj0EAwIDSAAwRQIhANCgMHVjtPCZ6ReOxoJHNirxPkIICdJH4JEj6k7yUvUgAiAc
2PbMvoYzwZddWD1OGocx1cPpdhP/eW5mfDNrAETq6w==
-----END CERTIFICATE-----`;

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
    await assert.rejects(untrusted, { code: 'BROKER_UNREACHABLE', message: /self-signed/ });
  } finally {
    server.close();
  }
});

test('a TLS listener that is spoken to in plain text is told at once', async () => {
  const { server, port } = await listen();
  try {
    await using client = new Client({ bootstrap: `localhost:${port}` });
    await using producer = client.producer();
    await assert.rejects(producer.send({ topic: 't', value: 'v' }), {
      ...{ code: 'TLS_PORT', message: /is a TLS listener/, remedy: /PLAINTEXT listener.*`tls`/ },
    });
  } finally {
    server.close();
  }
});

test.run();
