import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { encodeRequestFrame } from '../../../net/protocol/frame.ts';
import type {
  FetchRequestInput,
  FetchResponsePartitionData,
} from '../../../net/protocol/messages.gen.ts';
import type { RequestContext } from '../../../net/server/request_context.ts';
import { WorldConnection } from '../data_path/client.ts';
import {
  batchOf,
  fetch,
  fetched,
  fetchedOne,
  produce,
  valuesIn,
  type Wanted,
} from '../data_path/requests.ts';
import type { ShardWorld } from '../data_path/shard_world.ts';
import { put, withClient } from '../data_path/world_client.ts';

const test = suite('01 fetch of followers');

test('a broker without a copy is no follower, whatever the version calls it', async () => {
  const { world, client } = await withClient();
  const old = fetch(world, 14, [{ topic: 't' }], { replicaId: 2 });
  const young = fetch(world, 15, [{ topic: 't' }], { replicaState: { replicaId: 2 } });
  for (const [version, request] of [
    [14, old],
    [15, young],
  ] as const)
    assert.equal(
      fetchedOne(client.call('Fetch', version, request)).errorCode,
      ErrorCode.UNKNOWN_LEADER_EPOCH,
    );
});

/** Broker 2 has a copy of `t-0`, and is in sync. */
function withFollower(world: ShardWorld): void {
  const state = { replicas: [1, 2], isr: [1, 2], leaderEpoch: 1, partitionEpoch: 1 };
  world.leader('t').lead(state, world.clock.ms);
}

for (const version of [14, 18])
  test(`v${version}: a follower gets what is written, and by asking for what comes next says that it has it`, async () => {
    const { world, client } = await withClient();
    withFollower(world);
    const who =
      version >= 15 ? { replicaState: { replicaId: 2, replicaEpoch: 7 } } : { replicaId: 2 };
    const asOf = (offset: number) => fetch(world, version, [{ topic: 't', offset }], who);
    const waiting = client.send('Fetch', version, asOf(0));
    const producer = new WorldConnection(world);
    const records = batchOf(['a']);
    const produced = producer.send('Produce', 9, produce(world, 9, -1, [{ topic: 't', records }]));
    assert.equal(waiting.isAnswered, false);
    world.endTurn();
    const answer = fetchedOne(waiting.response());
    assert.deepEqual([valuesIn(answer.records), answer.highWatermark], [['0 a'], 0n]);
    world.settle();
    assert.equal(produced.isAnswered, false, 'the follower has not said that it has it');
    const next = client.send('Fetch', version, asOf(1));
    assert.equal(produced.isAnswered, true);
    world.advance(500);
    assert.equal(fetchedOne(next.response()).highWatermark, 1n);
  });

test('a follower that has more to ask for does not wait longer for what there is not; a client does', async () => {
  const { world, client } = await withClient();
  withFollower(world);
  const waitingAs = (replicaId: number): RequestContext => {
    const header = { apiKey: 1, apiVersion: 18, correlationId: 1, clientId: 'test' };
    const request = fetch(world, 18, [{ topic: 't' }], {
      replicaState: { replicaId, replicaEpoch: 7 },
    });
    const { bytes } = encodeRequestFrame<'Fetch'>(header, 'FetchRequest', request);
    return client.dispatch(bytes.subarray(4));
  };
  const consumer = waitingAs(-1);
  const follower = waitingAs(2);
  assert.deepEqual([consumer.answered, follower.answered], [false, false]);
  for (const { onOvertaken } of [consumer, follower]) onOvertaken?.();
  assert.equal(follower.answered, false, 'answered from within the connection');
  await Promise.resolve();
  assert.deepEqual([consumer.answered, follower.answered], [false, true]);
});

test('a follower whose end is out of range hears where it may go on', async () => {
  const { world, client } = await withClient();
  for (const value of ['a', 'b']) put(world, 't', 0, batchOf([value]));
  world.leader('t').advanceLogStart(1);
  withFollower(world);
  const request = fetch(world, 18, [{ topic: 't', offset: 0 }], {
    replicaState: { replicaId: 2, replicaEpoch: 7 },
  });
  const { errorCode, logStartOffset, highWatermark } = fetchedOne(
    client.call('Fetch', 18, request),
  );
  assert.deepEqual(
    [errorCode, logStartOffset, highWatermark],
    [ErrorCode.OFFSET_OUT_OF_RANGE, 1n, 2n],
  );
});

/** KIP-227: of what it has and knows a follower is told nothing; all else it hears, although no record is written. */
test('within a session a follower hears of each change, once', async () => {
  const { world, client } = await withClient();
  put(world, 't', 0, batchOf(['a']));
  withFollower(world);
  const asked = { topic: 't', offset: 1, currentLeaderEpoch: 1, lastFetchedEpoch: 0 };
  let session = { sessionId: 0, sessionEpoch: 0 };
  const news = (wanted: readonly Wanted[], replicaEpoch = 7): FetchResponsePartitionData[] => {
    const replicaState = { replicaId: 2, replicaEpoch };
    const request = fetch(world, 18, wanted, { ...session, maxWaitMs: 0, replicaState });
    const { sessionId, ...answer } = client.call('Fetch', 18, request);
    session = { sessionId, sessionEpoch: session.sessionEpoch + 1 };
    return fetched({ sessionId, ...answer });
  };
  assert.deepEqual(
    news([asked]).map(({ highWatermark }) => highWatermark),
    [1n],
  );
  assert.deepEqual(news([]), []);

  world.leader('t').advanceLogStart(1);
  assert.deepEqual(
    news([]).map(({ logStartOffset }) => logStartOffset),
    [1n],
  );
  assert.deepEqual(news([]), []);

  const code = (wanted: readonly Wanted[], replicaEpoch?: number): number | undefined =>
    news(wanted, replicaEpoch)[0]?.errorCode;
  assert.equal(code([], 6), ErrorCode.NOT_LEADER_OR_FOLLOWER, 'an earlier life of the broker');
  assert.equal(code([]), ErrorCode.NONE, 'the end of an error is news');
  assert.deepEqual(news([]), []);

  assert.equal(code([{ ...asked, lastFetchedEpoch: 5 }]), ErrorCode.OFFSET_OUT_OF_RANGE);
  assert.equal(code([{ ...asked, lastFetchedEpoch: 1 }]), ErrorCode.NONE);
  assert.deepEqual(news([]), []);

  const state = { replicas: [1, 2], isr: [1, 2], leaderEpoch: 2, partitionEpoch: 2 };
  world.leader('t').lead(state, world.clock.ms);
  assert.equal(code([]), ErrorCode.FENCED_LEADER_EPOCH);
});

/** Broker 2 follows three partitions within a session. */
class Idle {
  readonly world: ShardWorld;
  /** Partitions that fetches have visited. */
  visited: number[] = [];
  readonly #client: WorldConnection;
  #session = { sessionId: 0, sessionEpoch: 0 };

  static async begin(): Promise<Idle> {
    const { world } = await withClient();
    const idle = new Idle(world);
    idle.answer(partitions.map((partition) => ({ topic: 't', partition })));
    idle.answer();
    idle.visited = [];
    return idle;
  }

  private constructor(world: ShardWorld) {
    this.world = world;
    this.#client = new WorldConnection(world);
    for (const partition of partitions) {
      const leader = world.leader('t', partition);
      leader.lead({ replicas: [1, 2], isr: [1, 2], leaderEpoch: 1, partitionEpoch: 1 }, 0);
      const { followerFetched } = leader;
      leader.followerFetched = (...fetched) => {
        this.visited.push(partition);
        return followerFetched.apply(leader, fetched);
      };
    }
  }

  put(partition: number): void {
    const client = new WorldConnection(this.world);
    const produced = produce(this.world, 9, 1, [
      { topic: 't', partition, records: batchOf(['a']) },
    ]);
    client.send('Produce', 9, produced);
    this.world.settle();
  }

  send(wanted: readonly Wanted[] = [], rest: Partial<FetchRequestInput> = {}, replicaEpoch = 7) {
    const replicaState = { replicaId: 2, replicaEpoch };
    const request = fetch(this.world, 18, wanted, {
      ...{ maxWaitMs: 500, ...this.#session, replicaState },
      ...rest,
    });
    this.#session.sessionEpoch += 1;
    return this.#client.send('Fetch', 18, request);
  }

  /** What a fetch is answered at its end. */
  answer(...request: Parameters<Idle['send']>): FetchResponsePartitionData[] {
    const sent = this.send(...request);
    if (!sent.isAnswered) this.world.advance(500);
    const response = sent.response();
    this.#session.sessionId = response.sessionId;
    return fetched(response);
  }
}

const partitions = [0, 1, 2] as const;

test('the fetches of an idle follower visit no partition', async () => {
  const idle = await Idle.begin();
  for (let round = 0; round < 3; round += 1) assert.deepEqual(idle.answer(), []);
  assert.deepEqual(idle.visited, []);
});

test('a record ends the wait, and only its partition is visited; what comes after it does so, too', async () => {
  const idle = await Idle.begin();
  const waiting = idle.send();
  idle.put(1);
  const [answer, ...others] = fetched(waiting.response());
  assert.deepEqual(
    [answer?.partitionIndex, valuesIn(answer?.records ?? null), others],
    [1, ['0 a'], []],
  );
  assert.deepEqual(new Set(idle.visited), new Set([1]));
  const next = idle.send([{ topic: 't', partition: 1, offset: 1 }]);
  assert.equal(next.isAnswered, false);
  idle.put(1);
  assert.deepEqual(valuesIn(fetchedOne(next.response()).records), ['1 a']);
  assert.deepEqual(new Set(idle.visited), new Set([1]));
});

test('of what else happens to a resting partition the next answer tells', async () => {
  const idle = await Idle.begin();
  idle.put(0);
  idle.answer([{ topic: 't', partition: 0, offset: 1 }]);
  assert.deepEqual([idle.answer(), idle.answer()], [[], []]);
  const codeAfter = (happens: () => void): (readonly [number, number, bigint])[] => {
    const sent = idle.send();
    happens();
    idle.world.wake();
    if (!sent.isAnswered) idle.world.advance(500);
    return fetched(sent.response()).map(
      ({ partitionIndex, errorCode, logStartOffset }) =>
        [partitionIndex, errorCode, logStartOffset] as const,
    );
  };
  const [first, second] = [idle.world.leader('t', 0), idle.world.leader('t', 1)];
  assert.deepEqual(
    codeAfter(() => first.advanceLogStart(1)),
    [[0, ErrorCode.NONE, 1n]],
  );
  assert.deepEqual(
    codeAfter(() => second.refuse(ErrorCode.KAFKA_STORAGE_ERROR)),
    [[1, ErrorCode.KAFKA_STORAGE_ERROR, -1n]],
  );
});

test('what the follower names or forgets rests no more', async () => {
  const idle = await Idle.begin();
  assert.equal(
    idle.answer([{ topic: 't', partition: 2, offset: 5 }])[0]?.errorCode,
    ErrorCode.OFFSET_OUT_OF_RANGE,
  );
  idle.answer([{ topic: 't', partition: 2, offset: 0 }]);
  const forgotten = { topic: 't', topicId: idle.world.idOf('t'), partitions: [1] };
  idle.answer([], { forgottenTopicsData: [forgotten] });
  const waiting = idle.send();
  idle.put(1);
  assert.equal(waiting.isAnswered, false);
  idle.world.advance(500);
  assert.deepEqual(fetched(waiting.response()), []);
});

test('another life of the follower’s broker is looked at anew', async () => {
  const idle = await Idle.begin();
  assert.deepEqual(idle.answer([], {}, 8), []);
  assert.deepEqual(new Set(idle.visited), new Set(partitions));
});

test.run();
