import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { codecFor } from '../../../net/protocol/codec.ts';
import { encodeRequestFrame } from '../../../net/protocol/frame.ts';
import type { RequestContext } from '../../../net/server/request_context.ts';
import { seedsAtLeast } from '../../harness/budget.ts';
import { splitMix } from '../../harness/split_mix.ts';
import { answer, eventually, exclusive, overlapping, request, startHarness } from './harness.ts';

const test = suite('connection fuzz');

/** Live connections get random bytes, and good frames that were damaged; each ends in an answer or a closed socket. */
const rounds = seedsAtLeast(150);

test('whatever strangers send, the process lives, others are served, and all memory comes back', async () => {
  const decode = (name: 'ProduceRequest' | 'MetadataRequest') => {
    return (ctx: RequestContext): void => {
      codecFor(name, ctx.apiVersion).decode(ctx.reader);
      ctx.respondRaw(answer(ctx.correlationId));
    };
  };
  const harness = await startHarness({
    limits: { frameBytesMax: 200_000, requestMemoryBytesMax: 1_000_000 },
    onOverlapping: decode('ProduceRequest'),
    onExclusive: decode('MetadataRequest'),
  });
  const steady = await harness.connect();
  for (let seed = 1; seed <= rounds; seed += 1) {
    const random = splitMix(seed);
    const client = await harness.connect();
    const parts = Array.from({ length: 1 + random(6) }, () => hostileBytes(random));
    for (const part of parts) {
      client.socket.write(part);
      if (random(2) === 0) await new Promise(setImmediate);
    }
    if (random(4) === 0) client.socket.resetAndDestroy();
    else client.socket.end();
    if (seed % 10 === 0) {
      steady.socket.write(metadataRequest(seed));
      await steady.untilFrames(seed / 10);
    }
    await client.untilClosed();
  }
  await eventually(() => harness.host.connectionsCount === 1);
  assert.equal(harness.host.memory.budget.usedBytes, 0);
  assert.equal(harness.host.memory.slabs.usedBytes, 0);
  assert.equal(harness.host.memory.budget.waitingCount, 0);
  assert(harness.host.counters.framesRefused > 0 && harness.host.counters.framesReceived > 0);
  await harness.stop();
});

function hostileBytes(random: (bound: number) => number): Buffer {
  const kind = random(6);
  if (kind === 0) return randomBytes(random, 1 + random(2_000));
  const good = kind === 1 ? produceRequest(random) : metadataRequest(random(1_000));
  if (kind === 2) return good;
  if (kind === 3) return good.subarray(0, random(good.length));
  if (kind === 4) {
    // A size that holds, and nonsense for a body.
    const bytes = request(random(2) === 0 ? exclusive : overlapping, 1, random(150_000));
    randomBytes(random, 200).copy(bytes, 6);
    return bytes;
  }
  for (let flips = 1 + random(4); flips > 0; flips -= 1) good[random(good.length)] = random(256);
  return good;
}

function metadataRequest(correlationId: number): Buffer {
  const header = { apiKey: exclusive, apiVersion: 7, correlationId, clientId: 'fuzz' };
  const value = { topics: [{ name: 'topic' }], allowAutoTopicCreation: false };
  return Buffer.from(encodeRequestFrame<'Metadata'>(header, 'MetadataRequest', value).bytes);
}

function produceRequest(random: (bound: number) => number): Buffer {
  const header = { apiKey: overlapping, apiVersion: 8, correlationId: 1, clientId: null };
  const partitionData = [{ index: 0, records: randomBytes(random, random(150_000)) }];
  const topicData = [{ name: 'topic', partitionData }];
  const value = { transactionalId: null, acks: 1, timeoutMs: 1, topicData };
  return Buffer.from(encodeRequestFrame<'Produce'>(header, 'ProduceRequest', value).bytes);
}

function randomBytes(random: (bound: number) => number, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  for (let at = 0; at < length; at += 1) bytes[at] = random(256);
  return bytes;
}

test.run();
