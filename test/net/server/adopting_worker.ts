/** A worker that serves the descriptors it is sent, for the acceptor's test. Pings and stops by message. */
import { parentPort } from 'node:worker_threads';
import type { ConnectionOrigin } from '../../../net/server/connection.ts';
import { ConnectionHost } from '../../../net/server/connection_host.ts';
import { Registry } from '../../../net/server/registry.ts';
import { answer, exclusive, libc, TestLog } from './harness.ts';

const registry = new Registry();
registry.register({
  apiKey: exclusive,
  minVersion: 0,
  maxVersion: 8,
  handle: (ctx) => ctx.respondRaw(answer(ctx.correlationId)),
});
const host = new ConnectionHost({
  registry,
  log: new TestLog(),
  limits: { frameBytesMax: 1e6, requestMemoryBytesMax: 1e6, idleMsMax: -1 },
  sendFile: libc.sendfile,
  onConnectionClosed: (id) => parentPort?.postMessage(id),
});
parentPort?.on('message', ({ fd, origin }: { fd: number; origin: ConnectionOrigin }) => {
  host.adopt(fd, origin);
});
