/** Follows a leader that the test plays, over a real connection; the owners of the partitions are the test's, too. */
import assert from 'node:assert/strict';
import { createServer, type Server, type Socket } from 'node:net';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { SlabAllocator } from '../../../engine/thread/slab.ts';
import { Placements } from '../../../net/fabric/placements.ts';
import type { OnFollowed } from '../../../net/fabric/remote_followers.ts';
import { createLogger } from '../../../net/logger.ts';
import { codecFor } from '../../../net/protocol/codec.ts';
import { decodeRequestHeader, encodeResponseFrame } from '../../../net/protocol/frame.ts';
import type { FetchRequest, MessageInputs } from '../../../net/protocol/messages.gen.ts';
import { Reader } from '../../../net/protocol/reader.ts';
import { LeaderFetcher } from '../../../net/replication/leader_fetcher.ts';
import type { LeaderAnswer } from '../../../replication/partition/fetch_exchange.ts';
import { ReplicaFetch } from '../../../replication/partition/replica_fetch.ts';

const test = suite('a fetcher');

const topicId = 'BAAAAAAAAAAAAAAAAAAAAA';

/** Hands out what comes, one after another, to whoever waits. */
class Mailbox<T> {
  readonly #items: T[] = [];
  readonly #waiting: ((item: T) => void)[] = [];

  put(item: T): void {
    const waiting = this.#waiting.shift();
    if (waiting === undefined) this.#items.push(item);
    else waiting(item);
  }

  take(): Promise<T> {
    const item = this.#items.shift();
    if (item !== undefined) return Promise.resolve(item);
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}

interface Asked {
  readonly request: FetchRequest;
  answer(response: MessageInputs['FetchResponse']): void;
  readonly socket: Socket;
}

/** A broker that answers what the test says. */
class Leader {
  readonly requests = new Mailbox<Asked>();
  readonly #sockets = new Set<Socket>();
  readonly #server: Server = createServer((socket) => this.#serve(socket));

  async listen(port = 0): Promise<number> {
    await new Promise<void>((resolve) => this.#server.listen(port, '127.0.0.1', resolve));
    const address = this.#server.address();
    assert(address !== null && typeof address === 'object');
    return address.port;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    let bytes = Buffer.alloc(0);
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk]);
      while (bytes.length >= 4 && bytes.length >= 4 + bytes.readInt32BE()) {
        const end = 4 + bytes.readInt32BE();
        this.#take(socket, bytes.subarray(4, end));
        bytes = bytes.subarray(end);
      }
    });
  }

  #take(socket: Socket, frame: Buffer): void {
    const reader = new Reader(frame);
    const { apiVersion, correlationId } = decodeRequestHeader(reader);
    const request = codecFor('FetchRequest', apiVersion).decode(reader);
    const answer = (response: MessageInputs['FetchResponse']): void => {
      const { bytes } = encodeResponseFrame<'Fetch'>(
        1,
        apiVersion,
        correlationId,
        'FetchResponse',
        response,
      );
      socket.write(bytes);
    };
    this.requests.put({ request, answer, socket });
  }
}

interface Handed {
  readonly partition: number;
  readonly answer: LeaderAnswer;
  readonly done: OnFollowed | null;
}

class World {
  readonly leader: Leader = new Leader();
  readonly handed = new Mailbox<Handed>();
  readonly refused = new Mailbox<number>();
  readonly slabs: SlabAllocator = new SlabAllocator();
  readonly fetcher: LeaderFetcher;
  readonly #asked: OnFollowed[] = [];
  #heldMs: number | null = null;

  /** Partitions 0 and 1 are followed in leader epoch 4; their owners say that they are empty. */
  constructor() {
    const shared = Buffer.alloc(64 * 1024);
    const placements = new Placements(1, 2);
    placements.add([{ topicId, partitions: [0, 1], shards: [0, 0], numbers: [1, 2] }]);
    const fetch = new ReplicaFetch({
      maxWaitMs: 500,
      minBytes: 1,
      maxBytes: 16_000_000,
      partitionMaxBytes: 1_000_000,
      backoffMs: 1_000,
    });
    this.fetcher = new LeaderFetcher(3, fetch, {
      clusterId: 'cluster',
      identity: () => ({ brokerId: 2, brokerEpoch: 77 }),
      placements,
      followers: {
        state: (_placed, _epoch, onFollowed) => {
          this.#asked.push(onFollowed);
          if (this.#asked.length === 1) setImmediate(() => this.#sayEmpty());
        },
        replicate: ({ partition }, _epoch, answer, _slab, done) =>
          this.handed.put({ partition, answer, done }),
      },
      slabs: this.slabs,
      shared,
      reader: new Reader(shared),
      frameBytesMax: 20_000_000,
      socketTimeoutMs: 30_000,
      nowMs: () => this.#heldMs ?? performance.now(),
      logger: createLogger({ format: 'text', level: 'fatal' }),
      onRefused: (brokerId) => this.refused.put(brokerId),
    });
    fetch.follow(topicId, 0, 4);
    fetch.follow(topicId, 1, 4);
  }

  #sayEmpty(): void {
    const position = { fetchOffset: 0, lastFetchedEpoch: -1, logStartOffset: 0 };
    for (const onFollowed of this.#asked.splice(0)) onFollowed(ErrorCode.NONE, position);
    this.fetcher.pump();
  }

  /** However slow the machine is, the fetcher does not get impatient. */
  holdTime(): void {
    this.#heldMs = performance.now();
  }

  async start(): Promise<number> {
    const port = await this.leader.listen();
    this.moveTo(port);
    return port;
  }

  moveTo(port: number): void {
    this.fetcher.moveTo({ host: '127.0.0.1', port });
    this.fetcher.pump();
  }

  /** The owner has flushed. */
  settle({ done }: Handed, fetchOffset: number): void {
    done?.(ErrorCode.NONE, { fetchOffset, lastFetchedEpoch: 4, logStartOffset: 0 });
    this.fetcher.pump();
  }

  async close(): Promise<void> {
    this.fetcher.close();
    await this.leader.close();
  }
}

async function withWorld(run: (world: World) => Promise<void>): Promise<void> {
  const world = new World();
  try {
    await run(world);
  } finally {
    await world.close();
  }
}

const offsets = ({ request }: Asked): (number | bigint)[][] =>
  request.topics.flatMap(({ partitions }) =>
    partitions.map(({ partition, fetchOffset }) => [partition, fetchOffset]),
  );

const empty = (sessionId: number): MessageInputs['FetchResponse'] => ({ sessionId, responses: [] });

function withRecords(sessionId: number, records: Uint8Array): MessageInputs['FetchResponse'] {
  const one = { partitionIndex: 0, errorCode: 0, highWatermark: 0, logStartOffset: 0, records };
  return { sessionId, responses: [{ topicId, partitions: [one] }] };
}

test('records go to their owner from where they were received, and the next request tells that they are flushed', () =>
  withWorld(async (world) => {
    world.holdTime();
    await world.start();
    const full = await world.leader.requests.take();
    assert.deepEqual(full.request.replicaState, { replicaId: 2, replicaEpoch: 77n });
    assert.deepEqual(
      [full.request.sessionEpoch, offsets(full)],
      [
        0,
        [
          [0, 0n],
          [1, 0n],
        ],
      ],
    );
    for (const [k, size] of [300, 3_000_000, 7_000_000].entries()) {
      const asked = k === 0 ? full : await world.leader.requests.take();
      asked.answer(withRecords(9, Buffer.alloc(size, k + 1)));
      const handed = await world.handed.take();
      assert.equal(handed.partition, 0);
      const { records } = handed.answer;
      assert(records, 'no records');
      assert(records.every((byte) => byte === k + 1));
      assert.equal(records.length, size);
      assert(records.buffer instanceof SharedArrayBuffer);
      assert(world.slabs.usedBytes >= size, 'the memory is given back before the owner is done');
      world.settle(handed, (k + 1) * 10);
      assert.equal(world.slabs.usedBytes, 0);
    }
    const next = await world.leader.requests.take();
    assert.deepEqual(
      [next.request.sessionId, next.request.sessionEpoch, offsets(next)],
      [9, 3, [[0, 30n]]],
    );
  }));

test('a connection that breaks is made again at once, and the session begins anew', () =>
  withWorld(async (world) => {
    await world.start();
    const full = await world.leader.requests.take();
    full.answer(empty(9));
    const waiting = await world.leader.requests.take();
    waiting.socket.destroy();
    const again = await world.leader.requests.take();
    assert.notEqual(again.socket, waiting.socket);
    assert.deepEqual([again.request.sessionId, again.request.sessionEpoch], [9, 0]);
    assert.equal(offsets(again).length, 2);
  }));

test('an answer that is none, or to another request, ends the connection', () =>
  withWorld(async (world) => {
    await world.start();
    const full = await world.leader.requests.take();
    full.answer(empty(9));
    const second = await world.leader.requests.take();
    second.socket.write(Buffer.from([0, 0, 0, 6, 0, 0, 0, 2, 0, 99]));
    const third = await world.leader.requests.take();
    assert.notEqual(third.socket, second.socket);
    third.answer(empty(10));
    const fourth = await world.leader.requests.take();
    fourth.answer(empty(10));
    fourth.answer(empty(10));
    const fifth = await world.leader.requests.take();
    const sixth = await world.leader.requests.take();
    assert(fifth.socket !== fourth.socket || sixth.socket !== fourth.socket);
    assert.equal(world.slabs.usedBytes, 0);
  }));

test('a refused connection is reported, and tried again until somebody listens', () =>
  withWorld(async (world) => {
    const port = await world.start();
    (await world.leader.requests.take()).answer(empty(9));
    await world.leader.requests.take();
    await world.leader.close();
    assert.equal(await world.refused.take(), 3);
    assert.equal(await world.refused.take(), 3);
    const other = new Leader();
    await other.listen(port);
    const asked = await other.requests.take();
    assert.equal(asked.request.sessionEpoch, 0);
    await other.close();
  }));

test('a broker that has moved is followed to its new address', () =>
  withWorld(async (world) => {
    await world.start();
    await world.leader.requests.take();
    const other = new Leader();
    world.moveTo(await other.listen());
    assert.equal(offsets(await other.requests.take()).length, 2);
    await other.close();
  }));

test.run();
