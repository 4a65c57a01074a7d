/**
 * The fetcher against a leader that answers as the test says: its sessions (KIP-227), and how it goes on, or rests, after
 * what a leader can answer.
 */
import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { suite } from 'uvu';
import { encodeBatch } from '../../../../engine/batch/encode.ts';
import { ErrorCode } from '../../../../engine/error_code.gen.ts';
import type { Cluster } from '../../../../net/client/cluster.ts';
import { Fetcher } from '../../../../net/client/consumer/fetcher.ts';
import { PartitionCursor } from '../../../../net/client/consumer/partition_cursor.ts';
import { MillraceError } from '../../../../net/client/errors.ts';
import { bytesDeserializer } from '../../../../net/client/serializers.ts';
import type { FetchRequest, FetchResponse } from '../../../../net/protocol/messages.gen.ts';

const test = suite('fetcher');
type Cursor = PartitionCursor<unknown, unknown>;
type PartitionAnswer = FetchResponse['responses'][number]['partitions'][number];

const topicId = 'AAAAAAAAAAAAAAAAAAAAAQ';

/** One leader of all partitions of topic `t`. Its answers wait until the test gives them. */
class Leader {
  readonly requests: FetchRequest[] = [];
  readonly waiting: {
    resolve: (answer: FetchResponse) => void;
    reject: (error: unknown) => void;
  }[] = [];
  refreshes = 0;
  connection: object = this.#connect();

  readonly cluster = {
    requestTimeoutMs: 1_000,
    metadata: {
      topic: () => ({ topicId, partitions: [{ leaderEpoch: 5 }, { leaderEpoch: 5 }] }),
      partition: () => ({ leaderId: 1 }),
      setBrokers: () => undefined,
      setLeader: () => undefined,
    },
    onMetadata: () => () => undefined,
    openConnection: () => this.connection,
    refresh: async () => {
      this.refreshes += 1;
    },
  } as unknown as Cluster;

  #connect(): object {
    return {
      close: () => undefined,
      request: (_: string, body: FetchRequest) =>
        new Promise<FetchResponse>((resolve, reject) => {
          this.requests.push(body);
          this.waiting.push({ resolve, reject });
        }),
    };
  }

  reconnect(): void {
    this.connection = this.#connect();
  }

  /** Answers the request that waits, and lets what follows from it happen. */
  async answer(partitions: PartitionAnswer[], sessionId = 9, errorCode = 0): Promise<void> {
    await until(() => this.waiting.length > 0);
    const responses = [{ topic: '', topicId, partitions }];
    const answer = { throttleTimeMs: 0, errorCode, sessionId, responses, nodeEndpoints: [] };
    this.waiting.shift()?.resolve(answer as FetchResponse);
    await turn();
  }

  /** What the last request said. */
  get said(): { session: [number, number]; asked: string[]; forgotten: number[] } {
    const { sessionId, sessionEpoch, topics, forgottenTopicsData } = this.requests.at(
      -1,
    ) as FetchRequest;
    return {
      session: [sessionId, sessionEpoch],
      asked: topics.flatMap((one) => one.partitions.map((p) => `${p.partition}@${p.fetchOffset}`)),
      forgotten: forgottenTopicsData.flatMap((one) => one.partitions),
    };
  }
}

async function until(isTrue: () => boolean): Promise<void> {
  for (let turns = 0; turns < 10_000 && !isTrue(); turns += 1) await turn();
  assert(isTrue());
}

function setUp(policy: 'earliest' | 'fail' = 'earliest'): {
  leader: Leader;
  fetcher: Fetcher;
  cursors: [Cursor, Cursor];
  failures: MillraceError[];
} {
  const leader = new Leader();
  const cursors = [0, 1].map((partition) => {
    const reader = { isCommitted: false, checksCrc: true, decompressedBytesMax: 1 << 20 };
    const cursor = new PartitionCursor<unknown, unknown>({ topic: 't', partition }, policy, {
      ...{ ...reader, keys: bytesDeserializer, values: bytesDeserializer },
    });
    cursor.seek(10, 4);
    return cursor;
  }) as [Cursor, Cursor];
  const failures: MillraceError[] = [];
  const limits = { minBytes: 1, maxWaitMs: 10, maxBytes: 1 << 20, maxPartitionBytes: 1 << 20 };
  const fetcher = new Fetcher(
    leader.cluster,
    'lane',
    { ...limits, bufferBytes: 8 << 20, isCommitted: false },
    {
      cursors,
      onReady: () => undefined,
      onLost: () => undefined,
      onFailed: (error) => failures.push(error),
    },
  );
  return { leader, fetcher, cursors, failures };
}

function data(partitionIndex: number, rest: Partial<PartitionAnswer> = {}): PartitionAnswer {
  return {
    ...{ partitionIndex, errorCode: 0, highWatermark: 100n, lastStableOffset: 100n },
    ...{ logStartOffset: 0n, abortedTransactions: null, preferredReadReplica: -1, records: null },
    divergingEpoch: { epoch: -1, endOffset: -1n },
    currentLeader: { leaderId: -1, leaderEpoch: -1 },
    snapshotId: { endOffset: -1n, epoch: -1 },
    ...rest,
  };
}

function records(baseOffset: number, count: number): Uint8Array {
  const list = Array.from({ length: count }, () => ({ value: Buffer.from('v') }));
  return encodeBatch({ records: list, baseOffset, leaderEpoch: 5 });
}

test('within a session only partitions that have moved are asked for again', async () => {
  const { leader, fetcher, cursors } = setUp();
  fetcher.poke();
  await until(() => leader.requests.length === 1);
  assert.deepEqual(leader.said, { session: [0, 0], asked: ['0@10', '1@10'], forgotten: [] });
  await leader.answer([data(0, { records: records(10, 3) })]);
  await until(() => leader.requests.length === 2);
  assert.deepEqual(leader.said, { session: [9, 1], asked: ['0@13'], forgotten: [] });
  // An answer without partitions says that there is nothing new.
  await leader.answer([]);
  await until(() => leader.requests.length === 3);
  assert.deepEqual(leader.said, { session: [9, 2], asked: [], forgotten: [] });
  // A partition that nothing was said about goes on where it was.
  await leader.answer([data(1, { records: records(10, 1) })]);
  assert.deepEqual([cursors[0].fetchOffset, cursors[1].fetchOffset], [13, 11]);
  fetcher.close();
});

test('a partition that is paused is forgotten, and asked for when it goes on', async () => {
  const { leader, fetcher, cursors } = setUp();
  fetcher.poke();
  await leader.answer([]);
  cursors[1].isPaused = true;
  await leader.answer([]);
  await until(() => leader.requests.length === 3);
  assert.deepEqual(leader.said, { session: [9, 2], asked: [], forgotten: [1] });
  cursors[1].isPaused = false;
  await leader.answer([]);
  await until(() => leader.requests.length === 4);
  assert.deepEqual(leader.said, { session: [9, 3], asked: ['1@10'], forgotten: [] });
  fetcher.close();
});

for (const errorCode of [
  ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
  ErrorCode.INVALID_FETCH_SESSION_EPOCH,
])
  test(`a session that the broker has lost (${errorCode}) is begun anew with everything`, async () => {
    const { leader, fetcher, cursors, failures } = setUp();
    fetcher.poke();
    await leader.answer([data(0, { records: records(10, 3) })]);
    await leader.answer([], 0, errorCode);
    await until(() => leader.requests.length === 3);
    const { session, asked, forgotten } = leader.said;
    assert.deepEqual([session[1], asked, forgotten], [0, ['0@13', '1@10'], []]);
    await leader.answer([data(1, { records: records(10, 1) })], 10);
    await until(() => leader.requests.length === 4);
    assert.deepEqual(leader.said, { session: [10, 1], asked: ['1@11'], forgotten: [] });
    assert.deepEqual([cursors[0].fetchOffset, failures.length, leader.refreshes], [13, 0, 0]);
    fetcher.close();
  });

test('another connection begins another session', async () => {
  const { leader, fetcher } = setUp();
  fetcher.poke();
  await leader.answer([]);
  await until(() => leader.waiting.length > 0);
  leader.reconnect();
  leader.waiting.shift()?.reject(new MillraceError('CONNECTION_LOST', 'gone'));
  while (leader.requests.length < 3) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.deepEqual(leader.said, { session: [0, 0], asked: ['0@10', '1@10'], forgotten: [] });
  assert.equal(leader.refreshes, 1);
  fetcher.close();
});

/** Answers at once for many turns; returns how many requests came meanwhile. */
async function askedWithin(leader: Leader, answer: PartitionAnswer): Promise<number> {
  const before = leader.requests.length;
  for (let turns = 0; turns < 300; turns += 1) {
    if (leader.waiting.length > 0) await leader.answer([answer]);
    await turn();
  }
  return leader.requests.length - before;
}

test('what the reader has to be told first is not asked for over and over', async () => {
  const { leader, fetcher, cursors } = setUp('fail');
  cursors[1].isPaused = true;
  fetcher.poke();
  const outOfRange = data(0, { errorCode: ErrorCode.OFFSET_OUT_OF_RANGE });
  const count = await askedWithin(leader, outOfRange);
  assert(count <= 2, `${count} requests`);
  assert.throws(() => cursors[0].next(), { code: 'OFFSET_OUT_OF_RANGE' });
  cursors[0].seek(20, 4);
  fetcher.onRead(cursors[0]);
  await until(() => leader.waiting.length > 0);
  assert.deepEqual(leader.said.asked, ['0@20']);
  fetcher.close();
});

test('an offset that is gone behind what is buffered is not asked for over and over', async () => {
  const { leader, fetcher, cursors } = setUp();
  cursors[1].isPaused = true;
  fetcher.poke();
  await leader.answer([data(0, { records: records(10, 3) })]);
  const outOfRange = data(0, { errorCode: ErrorCode.OFFSET_OUT_OF_RANGE });
  const count = await askedWithin(leader, outOfRange);
  assert(count <= 3, `${count} requests`);
  assert.deepEqual([cursors[0].state, cursors[0].next() === null], ['reading', false]);
  fetcher.close();
});

test('a log that was cut is read on with from where the histories part', async () => {
  const { leader, fetcher, cursors } = setUp();
  cursors[1].isPaused = true;
  fetcher.poke();
  await leader.answer([data(0, { divergingEpoch: { epoch: 2, endOffset: 6n } })]);
  await until(() => leader.requests.length === 2);
  assert.deepEqual(leader.said, { session: [9, 1], asked: ['0@6'], forgotten: [] });
  assert.equal(leader.requests[1]?.topics[0]?.partitions[0]?.lastFetchedEpoch, 2);
  fetcher.close();
});

test.run();
