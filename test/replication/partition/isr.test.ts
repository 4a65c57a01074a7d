import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import {
  InSyncReplicas,
  type IsrAnswer,
  type IsrProposal,
  type ReplicaSet,
  type RestingFetch,
} from '../../../replication/partition/isr.ts';

const test = suite('replicas in sync');

const lagTimeMaxMs = 30_000;

/** Broker 1 leads a partition whose replicas are 1, 2 and 3. */
class Bench {
  readonly proposals: IsrProposal[] = [];
  /** By broker; absent: fenced. */
  readonly epochs: Map<number, number> = new Map([
    [1, 11],
    [2, 12],
    [3, 13],
  ]);
  readonly isr: InSyncReplicas;
  readonly state: ReplicaSet;

  constructor(
    isr: readonly number[],
    epochStartOffset = 0,
    replicas: readonly number[] = [1, 2, 3],
  ) {
    this.state = { replicas, isr, leaderEpoch: 5, partitionEpoch: 7 };
    this.isr = new InSyncReplicas(
      {
        topicId: 'id',
        partition: 0,
        brokers: {
          nodeId: 1,
          lagTimeMaxMs,
          eligibleEpoch: (id) => this.epochs.get(id) ?? -1,
        },
        propose: (proposal) => this.proposals.push(proposal),
      },
      this.state,
    );
    this.isr.begin(this.state, epochStartOffset, 0);
  }

  fetch(id: number, offset: number, leaderEnd: number, nowMs = 0, epoch = 10 + id): ErrorCode {
    return this.isr.fetched(id, epoch, offset, leaderEnd, nowMs);
  }

  answer(
    isr: readonly number[],
    partitionEpoch = 8,
    errorCode: ErrorCode = ErrorCode.NONE,
  ): boolean {
    const answer: IsrAnswer = { errorCode, leaderEpoch: 5, isr, partitionEpoch };
    return this.isr.answered(this.proposals.at(-1)!, answer);
  }

  get proposed(): (readonly number[])[] {
    return this.proposals.map(({ newIsr }) => newIsr.map(({ brokerId }) => brokerId));
  }
}

test('what counts is what all members have; nothing is known of those that have not fetched', () => {
  const bench = new Bench([1, 2, 3]);
  assert.equal(bench.isr.committable(10, 1), -1);
  bench.fetch(2, 9, 10);
  assert.equal(bench.isr.committable(10, 1), -1);
  bench.fetch(3, 4, 10);
  assert.equal(bench.isr.committable(10, 1), 4);
  bench.fetch(3, 10, 10);
  assert.equal(bench.isr.committable(10, 1), 9);
  bench.fetch(2, 12, 12);
  assert.equal(bench.isr.committable(10, 1), 10, 'no further than this replica’s own flush');
});

test('a new leader epoch forgets how far followers were', () => {
  const bench = new Bench([1, 2]);
  bench.fetch(2, 9, 9);
  assert.equal(bench.isr.committable(9, 1), 9);
  bench.isr.begin({ ...bench.state, leaderEpoch: 6, partitionEpoch: 8 }, 9, 0);
  assert.equal(bench.isr.committable(9, 1), -1);
});

test('below min.insync.replicas nothing is committed (KIP-966)', () => {
  const bench = new Bench([1]);
  assert.equal(bench.isr.committable(10, 2), -1);
  assert.equal(bench.isr.committable(10, 1), 10);
});

test('a replica alone commits what it has flushed', () => {
  const bench = new Bench([1], 0, [1]);
  assert(bench.isr.isAlone);
  assert.equal(bench.isr.committable(10, 1), 10);
});

test('a proposed member counts at once, and until it is known that it is none (KIP-497)', () => {
  const bench = new Bench([1]);
  bench.fetch(2, 10, 10);
  bench.isr.maybeExpand(2, 10);
  assert.deepEqual(bench.proposed, [[1, 2]]);
  // Long after, so that it is not for keeping pace that it counts.
  bench.isr.tick(20, 1_000_000);
  assert.equal(bench.isr.committable(20, 1), 10);
  assert.equal(bench.answer([], -1, ErrorCode.INELIGIBLE_REPLICA), true);
  assert.equal(bench.isr.committable(20, 1), 20);
});

test('without an answer, or with one that says nothing of it, the proposed member goes on counting, and is asked for again', () => {
  const bench = new Bench([1]);
  bench.fetch(2, 10, 10);
  bench.isr.maybeExpand(2, 10);
  const [proposal] = bench.proposals;
  bench.isr.answered(proposal!, null);
  bench.isr.tick(20, 1_000_000);
  assert.equal(bench.isr.committable(20, 1), 10);
  for (const code of [ErrorCode.NOT_CONTROLLER, ErrorCode.INVALID_UPDATE_VERSION]) {
    bench.answer([], -1, code);
    assert.equal(bench.isr.committable(20, 1), 10);
    bench.isr.tick(20, 1_000_000);
  }
  assert.deepEqual(bench.proposals, [proposal, proposal, proposal, proposal]);
});

test('a proposal says which state it rests on, and under which broker epochs its members were seen', () => {
  const bench = new Bench([1, 3]);
  bench.fetch(2, 10, 10);
  bench.isr.maybeExpand(2, 10);
  assert.deepEqual(bench.proposals, [
    {
      topicId: 'id',
      partition: 0,
      leaderEpoch: 5,
      partitionEpoch: 7,
      newIsr: [
        { brokerId: 1, brokerEpoch: 11 },
        { brokerId: 3, brokerEpoch: -1 },
        { brokerId: 2, brokerEpoch: 12 },
      ],
    },
  ]);
});

test('nobody is taken in below the high watermark, or below the first offset of the leader’s epoch', () => {
  const bench = new Bench([1], 8);
  bench.fetch(2, 7, 10);
  bench.isr.maybeExpand(2, 7);
  bench.fetch(2, 9, 10);
  bench.isr.maybeExpand(2, 10);
  assert.deepEqual(bench.proposals, []);
  bench.fetch(2, 10, 12);
  bench.isr.maybeExpand(2, 10);
  assert.deepEqual(bench.proposed, [[1, 2]]);
});

test('nobody is taken in who is fenced, or whose broker has started anew since (KIP-903)', () => {
  const bench = new Bench([1]);
  bench.fetch(2, 10, 10);
  bench.epochs.delete(2);
  bench.isr.maybeExpand(2, 10);
  bench.epochs.set(2, 20);
  bench.isr.maybeExpand(2, 10);
  assert.deepEqual(bench.proposals, []);
  bench.fetch(2, 10, 10, 0, 20);
  bench.isr.maybeExpand(2, 10);
  assert.deepEqual(bench.proposed, [[1, 2]]);
});

test('a fetch of an earlier life of the broker is refused, and one of a broker without a copy', () => {
  const bench = new Bench([1, 2]);
  bench.fetch(2, 4, 10, 0, 20);
  assert.equal(bench.fetch(2, 10, 10, 0, 12), ErrorCode.NOT_LEADER_OR_FOLLOWER);
  assert.equal(bench.isr.committable(10, 1), 4);
  assert.equal(bench.fetch(4, 10, 10), ErrorCode.UNKNOWN_LEADER_EPOCH);
});

test('one proposal at a time', () => {
  const bench = new Bench([1]);
  bench.fetch(2, 10, 10);
  bench.fetch(3, 10, 10);
  bench.isr.maybeExpand(2, 10);
  bench.isr.maybeExpand(3, 10);
  bench.isr.tick(10, 1_000_000);
  assert.deepEqual(bench.proposed, [[1, 2]]);
  assert.equal(bench.answer([1, 2]), true);
  bench.isr.maybeExpand(3, 10);
  assert.deepEqual(bench.proposals.at(-1)?.partitionEpoch, 8);
  assert.deepEqual(bench.proposed.at(-1), [1, 2, 3]);
});

test('who has not caught up for replica.lag.time.max.ms is left out, and counts until it is', () => {
  const bench = new Bench([1, 2, 3]);
  bench.fetch(2, 10, 10, 1_000);
  bench.fetch(3, 5, 10, 1_000);
  bench.isr.tick(10, lagTimeMaxMs);
  assert.deepEqual(bench.proposals, []);
  bench.isr.tick(10, lagTimeMaxMs + 1);
  assert.deepEqual(bench.proposed, [[1, 2]]);
  assert.equal(bench.isr.committable(10, 1), 5);
  assert.equal(bench.answer([1, 2]), true);
  assert.equal(bench.isr.committable(10, 1), 10);
});

test('who stands at the log’s end stays, however long nothing is written', () => {
  const bench = new Bench([1, 2]);
  bench.fetch(2, 10, 10, 0);
  bench.isr.tick(10, 10 * lagTimeMaxMs);
  assert.deepEqual(bench.proposals, []);
  bench.isr.tick(11, 10 * lagTimeMaxMs);
  assert.deepEqual(bench.proposed, [[1]]);
});

test('who keeps pace with a log that is always written to stays', () => {
  const bench = new Bench([1, 2]);
  let nowMs = 0;
  for (let end = 10; end < 500; end += 10) {
    nowMs += 1_000;
    // It has what there was when it last asked.
    bench.fetch(2, end - 10, end, nowMs);
    bench.isr.tick(end, nowMs);
  }
  assert.deepEqual(bench.proposals, []);
});

test('the high watermark waits for who keeps pace and may come back, or it would never reach it', () => {
  const bench = new Bench([1]);
  bench.fetch(2, 10, 10, 1_000);
  bench.fetch(3, 4, 10, 1_000);
  assert.equal(bench.isr.committable(20, 1), 10, 'broker 2 has just had everything; 3 never');
  bench.isr.tick(20, 1_000 + lagTimeMaxMs + 1);
  assert.equal(bench.isr.committable(20, 1), 20);
});

test('the high watermark does not wait for who was away: it has to keep pace anew', () => {
  const bench = new Bench([1, 2]);
  bench.fetch(2, 10, 10, 1_000);
  bench.fetch(3, 10, 10, 1_000);
  bench.epochs.set(3, 23);
  bench.fetch(2, 900, 900, 2_000);
  bench.fetch(3, 10, 900, 2_000, 23);
  assert.equal(bench.isr.committable(900, 1), 900, 'its broker has started anew');
  bench.isr.update({ ...bench.state, isr: [1], partitionEpoch: 8 });
  bench.fetch(2, 900, 2_000, 3_000);
  assert.equal(bench.isr.committable(2_000, 1), 2_000, 'it was silent, and left the set');
  bench.fetch(3, 900, 2_000, 3_000, 23);
  assert.equal(bench.isr.committable(2_000, 1), 900, 'it has what there was when it last asked');
});

test('who has come back gets as long as it may lag to reach the log’s end', () => {
  const bench = new Bench([1]);
  bench.fetch(2, 4, 10, 1_000);
  bench.isr.maybeExpand(2, 4);
  bench.answer([1, 2]);
  bench.isr.tick(20, 1_000 + lagTimeMaxMs);
  assert.deepEqual(bench.proposed, [[1, 2]]);
  bench.isr.tick(20, 1_001 + lagTimeMaxMs);
  assert.deepEqual(bench.proposed, [[1, 2], [1]]);
});

test('the metadata count when they are newer, and end what was proposed', () => {
  const bench = new Bench([1]);
  bench.fetch(2, 10, 10);
  bench.isr.maybeExpand(2, 10);
  assert.equal(bench.isr.update({ ...bench.state, partitionEpoch: 6, isr: [1, 2, 3] }), false);
  assert.equal(bench.isr.size, 1);
  assert.equal(bench.isr.update({ ...bench.state, partitionEpoch: 8, isr: [1, 2] }), true);
  assert.equal(bench.isr.size, 2);
  assert.equal(bench.answer([1, 2]), false, 'the answer comes after it');
  assert.equal(bench.isr.size, 2);
});

test('an answer that is older than the metadata says nothing', () => {
  const bench = new Bench([1, 2]);
  bench.isr.tick(10, lagTimeMaxMs + 1);
  const [proposal] = bench.proposals;
  assert.deepEqual(bench.proposed, [[1]]);
  bench.isr.update({ ...bench.state, partitionEpoch: 9, isr: [1, 2] });
  const late = { errorCode: ErrorCode.NONE, leaderEpoch: 5, isr: [1], partitionEpoch: 8 };
  assert.equal(bench.isr.answered(proposal!, late), false);
  assert.equal(bench.isr.size, 2);
});

test('a replica that is moved away does not count any more, and a new one has to catch up first', () => {
  const bench = new Bench([1, 2]);
  bench.fetch(2, 4, 10);
  bench.isr.update({ ...bench.state, replicas: [1, 3], isr: [1], partitionEpoch: 8 });
  assert.equal(bench.isr.committable(10, 1), 10);
  assert.equal(bench.fetch(2, 10, 10), ErrorCode.UNKNOWN_LEADER_EPOCH);
  assert.equal(bench.fetch(3, 0, 10), ErrorCode.NONE);
});

/** A fetch that rests, and counts how often it is disturbed. */
class Resting implements RestingFetch {
  lastFetchMs = 0;
  disturbed = 0;

  disturb(): void {
    this.disturbed += 1;
  }
}

test('who rests counts as one that asks for the log’s end with each fetch, and as no more once it is disturbed', () => {
  const bench = new Bench([1, 2]);
  const resting = new Resting();
  bench.fetch(2, 10, 10, 0);
  assert.equal(bench.isr.rest(2, 10, resting), true);
  resting.lastFetchMs = 100_000;
  bench.isr.tick(10, 200_000);
  assert.deepEqual([bench.proposed, resting.disturbed], [[], 0], 'it has all there is');
  // Something is appended.
  bench.isr.disturbAll();
  assert.equal(resting.disturbed, 1);
  resting.lastFetchMs = 200_000;
  bench.isr.tick(11, 100_000 + lagTimeMaxMs);
  assert.deepEqual(bench.proposed, []);
  bench.isr.tick(11, 100_001 + lagTimeMaxMs);
  assert.deepEqual(bench.proposed, [[1]], 'it was last heard before that');
});

test('a follower that is behind, not in sync, or part of a proposal does not rest', () => {
  const bench = new Bench([1, 2]);
  const may = (id: number, leaderEnd: number): boolean =>
    bench.isr.rest(id, leaderEnd, new Resting());
  assert.equal(may(2, 0), false, 'it has not fetched');
  bench.fetch(2, 9, 10);
  assert.equal(may(2, 10), false);
  bench.fetch(2, 10, 10);
  bench.fetch(3, 10, 10);
  assert.deepEqual([may(3, 10), may(4, 10), may(2, 10)], [false, false, true]);
  bench.isr.maybeExpand(3, 10);
  assert.equal(may(2, 10), false, 'the answer may be another set');
  bench.answer([1, 2, 3]);
  assert.deepEqual([may(2, 10), may(3, 10)], [true, true]);
});

for (const [what, change] of [
  ['a fetch of its own', (bench: Bench) => bench.fetch(2, 10, 10)],
  ['another fetch that rests', (bench: Bench) => bench.isr.rest(2, 10, new Resting())],
  ['its own change', (bench: Bench) => bench.isr.disturb(2)],
  ['a new epoch', (bench: Bench) => bench.isr.begin({ ...bench.state, leaderEpoch: 6 }, 10, 0)],
  ['another set', (bench: Bench) => bench.isr.update({ ...bench.state, partitionEpoch: 8 })],
] as const)
  test(`${what} ends a rest, once`, () => {
    const bench = new Bench([1, 2, 3]);
    const resting = new Resting();
    bench.fetch(2, 10, 10);
    bench.isr.rest(2, 10, resting);
    change(bench);
    bench.isr.disturbAll();
    assert.equal(resting.disturbed, 1);
  });

test.run();
