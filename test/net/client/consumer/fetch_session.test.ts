/**
 * KIP-227 as a client has to follow it: full and incremental requests, their epochs, what is forgotten, and the way back
 * from every answer that says that the session is lost.
 */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../../engine/error_code.gen.ts';
import {
  FetchSession,
  type FetchTarget,
  type SessionRequest,
} from '../../../../net/client/consumer/fetch_session.ts';
import { splitMix } from '../../../harness/split_mix.ts';

const test = suite('fetch session, KIP-227');

function target(topic: string, partition: number, offset: number, rest = {}): FetchTarget {
  return {
    ...{ topic, topicId: `id-of-${topic}`, partition, offset },
    ...{ leaderEpoch: 3, lastEpoch: 2, maxBytes: 1_000, ...rest },
  };
}

/** `topic-partition@offset` of what is asked for, and `topic-partition` of what is forgotten. */
function saidIn({ topics, forgottenTopicsData }: SessionRequest): {
  asked: string[];
  forgotten: string[];
} {
  return {
    asked: topics.flatMap(({ topicId, partitions }) =>
      partitions.map((one) => `${topicId}-${one.partition}@${one.fetchOffset}`),
    ),
    forgotten: forgottenTopicsData.flatMap(({ topicId, partitions }) =>
      (partitions ?? []).map((one) => `${topicId}-${one}`),
    ),
  };
}

test('the first request asks for a session and says everything', () => {
  const session = new FetchSession();
  const request = session.next([target('a', 0, 5), target('a', 1, 6), target('b', 0, 7)]);
  assert.deepEqual([request.sessionId, request.sessionEpoch], [0, 0]);
  assert.deepEqual(saidIn(request), {
    asked: ['id-of-a-0@5', 'id-of-a-1@6', 'id-of-b-0@7'],
    forgotten: [],
  });
  assert.deepEqual(request.topics[0]?.partitions?.[0], {
    ...{ partition: 0, fetchOffset: 5, currentLeaderEpoch: 3 },
    ...{ lastFetchedEpoch: 2, partitionMaxBytes: 1_000 },
  });
});

test('later ones say what has changed, and forget what is not wanted any more', () => {
  const session = new FetchSession();
  session.next([target('a', 0, 5), target('a', 1, 6), target('b', 0, 7)]);
  assert.equal(session.onAnswer(ErrorCode.NONE, 77), true);
  const moved = session.next([target('a', 0, 9), target('a', 1, 6), target('c', 0, 1)]);
  assert.deepEqual([moved.sessionId, moved.sessionEpoch], [77, 1]);
  assert.deepEqual(saidIn(moved), {
    asked: ['id-of-a-0@9', 'id-of-c-0@1'],
    forgotten: ['id-of-b-0'],
  });
  session.onAnswer(ErrorCode.NONE, 77);
  const same = session.next([target('a', 0, 9), target('a', 1, 6), target('c', 0, 1)]);
  assert.deepEqual([same.sessionEpoch, saidIn(same)], [2, { asked: [], forgotten: [] }]);
});

test('an epoch or a size that changes is a change, too', () => {
  for (const changed of [{ leaderEpoch: 4 }, { lastEpoch: 3 }, { maxBytes: 2_000 }]) {
    const session = new FetchSession();
    session.next([target('a', 0, 5)]);
    session.onAnswer(ErrorCode.NONE, 77);
    assert.deepEqual(saidIn(session.next([target('a', 0, 5, changed)])).asked, ['id-of-a-0@5']);
  }
});

test('a topic that was made anew under its name is forgotten and asked for (KIP-516)', () => {
  const session = new FetchSession();
  session.next([target('a', 0, 5)]);
  session.onAnswer(ErrorCode.NONE, 77);
  const again = session.next([target('a', 0, 0, { topicId: 'another' })]);
  assert.deepEqual(saidIn(again), { asked: ['another-0@0'], forgotten: ['id-of-a-0'] });
});

test('a broker without room for a session is told everything each time', () => {
  const session = new FetchSession();
  for (let round = 0; round < 3; round += 1) {
    const request = session.next([target('a', 0, 5)]);
    assert.deepEqual([request.sessionId, request.sessionEpoch], [0, 0]);
    assert.deepEqual(saidIn(request), { asked: ['id-of-a-0@5'], forgotten: [] });
    assert.equal(session.onAnswer(ErrorCode.NONE, 0), true);
  }
});

const lost = [
  ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
  ErrorCode.INVALID_FETCH_SESSION_EPOCH,
  ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
  ErrorCode.UNKNOWN_SERVER_ERROR,
];

test('an error of the session makes the next request a full one that closes it', () => {
  for (const errorCode of lost) {
    const session = new FetchSession();
    session.next([target('a', 0, 5), target('b', 0, 1)]);
    session.onAnswer(ErrorCode.NONE, 77);
    session.next([target('a', 0, 6)]);
    assert.equal(session.onAnswer(errorCode, 0), false);
    const full = session.next([target('a', 0, 6)]);
    // Epoch 0 with an id: that session is closed, and another one begun.
    assert.deepEqual([full.sessionId, full.sessionEpoch], [77, 0]);
    assert.deepEqual(saidIn(full), { asked: ['id-of-a-0@6'], forgotten: [] });
    session.onAnswer(ErrorCode.NONE, 78);
    const next = session.next([target('a', 0, 6)]);
    assert.deepEqual([next.sessionId, next.sessionEpoch], [78, 1]);
    assert.deepEqual(saidIn(next), { asked: [], forgotten: [] });
  }
});

test('a request that nobody knows the fate of makes the next one full', () => {
  const session = new FetchSession();
  session.next([target('a', 0, 5)]);
  session.onAnswer(ErrorCode.NONE, 77);
  session.next([target('b', 0, 5)]);
  session.onFailure();
  const full = session.next([target('b', 0, 5)]);
  assert.deepEqual([full.sessionId, full.sessionEpoch], [77, 0]);
  assert.deepEqual(saidIn(full).asked, ['id-of-b-0@5']);
});

test('over another connection there is no session to close', () => {
  const session = new FetchSession();
  session.next([target('a', 0, 5)]);
  session.onAnswer(ErrorCode.NONE, 77);
  session.forget();
  const { sessionId, sessionEpoch } = session.next([target('a', 0, 5)]);
  assert.deepEqual([sessionId, sessionEpoch], [0, 0]);
});

/** A broker as the KIP describes it, with one slot for a session. */
class ModelBroker {
  #id = 0;
  #epoch = 0;
  #nextId = 1;
  readonly cached = new Map<string, unknown>();

  /** Null: its answer is an error. */
  take({ sessionId, sessionEpoch, topics, forgottenTopicsData }: SessionRequest): number | null {
    if (sessionEpoch === 0) {
      this.evict();
      this.#id = this.#nextId;
      this.#nextId += 1;
    } else if (sessionId !== this.#id || sessionEpoch !== this.#epoch) return null;
    this.#epoch = sessionEpoch + 1;
    for (const { topicId, partitions } of forgottenTopicsData)
      for (const one of partitions ?? []) this.cached.delete(`${topicId}-${one}`);
    for (const { topicId, partitions } of topics)
      for (const one of partitions ?? [])
        this.cached.set(`${topicId}-${one.partition}`, one.fetchOffset);
    return this.#id;
  }

  evict(): void {
    this.#id = -1;
    this.cached.clear();
  }
}

test('whatever is lost on the way, a broker that accepts a request knows exactly what is wanted', () => {
  const random = splitMix(Number(process.env['MILLRACE_SEED'] ?? 1));
  const chance = (one: number): boolean => random(one) === 0;
  const session = new FetchSession();
  const broker = new ModelBroker();
  let incremental = 0;
  for (let round = 0; round < 3_000; round += 1) {
    const targets = ['a', 'b', 'c']
      .flatMap((topic) => [0, 1, 2].map((partition) => target(topic, partition, random(3))))
      .filter(() => !chance(3));
    const request = session.next(targets);
    if (chance(20)) broker.evict();
    if (chance(10)) {
      session.onFailure();
      continue;
    }
    const id = broker.take(request);
    if (id !== null) {
      incremental += request.sessionEpoch > 0 ? 1 : 0;
      const wanted = targets.map((one) => [`${one.topicId}-${one.partition}`, one.offset] as const);
      assert.deepEqual(broker.cached, new Map<string, unknown>(wanted));
    }
    // The broker has taken it in, and its answer is lost.
    if (chance(10)) session.onFailure();
    else if (id === null) session.onAnswer(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0);
    else session.onAnswer(ErrorCode.NONE, id);
  }
  assert(incremental > 1_000, `only ${incremental} were incremental`);
});

test.run();
