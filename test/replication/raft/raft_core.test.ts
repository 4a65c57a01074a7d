import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type { FetchRequest } from '../../../replication/raft/messages.ts';
import { clusterId, uuids } from '../metadata/fixtures.ts';
import { Driven, fetched, fetchOf, granted, vote, voters } from './driven_core.ts';

const test = suite('raft_core');

test('a vote is persisted before it is told, and there is one in a term', () => {
  const node = new Driven([1, 1, 1]);
  const reply = node.ask(vote(1));
  assert.equal(reply.type === 'vote' && reply.voteGranted, true);
  assert(node.types().indexOf('persist') < node.types().indexOf('reply'));
  const states = node.effects.flatMap((effect) => (effect.type === 'persist' ? effect.state : []));
  assert.deepEqual(states.at(-1), {
    leaderId: -1,
    leaderEpoch: 2,
    votedId: 1,
    votedDirectoryId: voters[0]!.voterDirectoryId,
  });
  for (const [from, isGranted] of [
    [3, false],
    [1, true],
  ] as const) {
    const again = node.ask(vote(from));
    assert.equal(again.type === 'vote' && again.voteGranted, isGranted);
    assert(!node.types().includes('persist'));
  }
});

test('a vote survives a restart', () => {
  const votedDirectoryId = voters[0]!.voterDirectoryId;
  const node = new Driven([1, 1, 1], { leaderEpoch: 2, votedId: 1, votedDirectoryId });
  const reply = node.ask(vote(3));
  assert.equal(reply.type === 'vote' && reply.voteGranted, false);
});

test('who lacks something of the log, or means another directory, gets no vote', () => {
  for (const [request, code] of [
    [vote(1, { lastOffset: 2 }), ErrorCode.NONE],
    [vote(1, { lastOffsetEpoch: 0, lastOffset: 9 }), ErrorCode.NONE],
    [vote(1, { replicaEpoch: 0 }), ErrorCode.FENCED_LEADER_EPOCH],
    [vote(1, { voterDirectoryId: uuids(3)() }), ErrorCode.INVALID_VOTER_KEY],
    [vote(1, { clusterId: 'foreign' }), ErrorCode.INCONSISTENT_CLUSTER_ID],
  ] as const) {
    const reply = new Driven([1, 1, 1]).ask(request);
    assert.equal(reply.errorCode, code);
    assert.equal(reply.type === 'vote' && reply.voteGranted, false);
  }
});

test('a pre-vote binds nobody and is refused while the leader is heard of', () => {
  const node = new Driven([1, 1, 1]);
  const request = vote(3, { preVote: true, replicaEpoch: 1 });
  const free = node.ask(request);
  assert.equal(free.type === 'vote' && free.voteGranted, true);
  assert(!node.types().includes('persist'));
  const fetch = node.follow(1, 1);
  const hearsay = node.ask(request);
  assert.equal(hearsay.type === 'vote' && hearsay.voteGranted, true);
  node.answer(fetch, fetched());
  const refused = node.ask(request);
  assert.equal(refused.type === 'vote' && refused.voteGranted, false);
  assert.equal(refused.type === 'vote' && refused.leaderId, 1);
});

test('a leader whose port refuses is replaced without waiting for a time-out', () => {
  const node = new Driven([1, 1, 1]);
  node.answer(node.follow(1, 1), fetched());
  const beganMs = node.nowMs;
  node.answer(node.requests('fetch')[0]!, 'closed');
  node.answer(node.requests('fetch')[0]!, 'refused');
  const asked = node.until('vote');
  assert(node.nowMs - beganMs < 100, `${node.nowMs - beganMs} ms`);
  assert.deepEqual(
    asked.map(({ to, request }) => [to, request.type === 'vote' && request.preVote]),
    [
      [1, true],
      [3, true],
    ],
  );
  assert.equal(node.core.epoch, 1);
  node.answer(asked[0]!, 'refused');
  node.answer(asked[1]!, granted(true, 1));
  assert.equal(node.core.epoch, 2);
  assert(node.types().indexOf('persist') < node.types().indexOf('send'));
  const votes = node.requests('vote');
  node.answer(votes[1]!, granted(true, 2));
  assert.equal(node.core.leader, null, 'its own vote is not on stable storage yet');
  node.step({ type: 'persisted' });
  assert.equal(node.core.leaderId, 2);
  assert(node.types().includes('appendControl'));
  assert.equal(node.requests('beginQuorumEpoch').length, 2);
});

/** The node as leader of term 2, its own batch flushed, with nothing known of the others. */
function leading(): Driven {
  const node = new Driven([1, 1, 1]);
  const asked = node.until('vote');
  node.answer(asked[0]!, granted(true, 1));
  node.answer(node.requests('vote')[0]!, granted(true, 2));
  node.step({ type: 'persisted' });
  assert.equal(node.log.endOffset, 4);
  node.log.flushedOffset = 4;
  node.step({ type: 'flushed' });
  return node;
}

function fetch(from: number, overrides: Partial<FetchRequest> = {}): FetchRequest {
  return fetchOf(from, { currentLeaderEpoch: 2, ...overrides });
}

test('earlier terms are committed by an entry of the own term alone', () => {
  const node = leading();
  node.step({ type: 'request', requestId: 1, request: fetch(1) });
  assert(!node.types().includes('commit'), 'all have offset 3 of term 1, which proves nothing');
  node.step({
    type: 'request',
    requestId: 2,
    request: fetch(1, { fetchOffset: 4, lastFetchedEpoch: 2 }),
  });
  const commit = node.effects.find((effect) => effect.type === 'commit');
  assert.equal(commit?.endOffset, 4);
  assert(node.types().indexOf('commit') < node.types().indexOf('elected'));
});

test('another directory under a voter’s number does not count', () => {
  const node = leading();
  const stranger = { replicaDirectoryId: uuids(4)(), fetchOffset: 4, lastFetchedEpoch: 2 };
  node.step({ type: 'request', requestId: 1, request: fetch(1, stranger) });
  assert(!node.types().includes('commit'));
});

test('a follower that has gone another way is told where the ways part', () => {
  const node = leading();
  const reply = node.ask(fetch(1, { fetchOffset: 9, lastFetchedEpoch: 1 }));
  assert.deepEqual(reply.type === 'fetch' && reply.divergingEpoch, { epoch: 1, endOffset: 3 });
});

test('a follower truncates, and then asks from there', () => {
  const node = new Driven([1, 1, 1, 1, 1]);
  node.answer(node.follow(1, 3), {
    ...fetched({ leaderEpoch: 3, highWatermark: 5 }),
    divergingEpoch: { epoch: 1, endOffset: 3 },
  });
  assert.deepEqual(node.types(), ['truncate'], 'nothing of the high watermark before that');
  node.log.flushedOffset = 3;
  node.step({ type: 'tick' });
  const [next] = node.requests('fetch');
  assert.equal(next?.request.type === 'fetch' && next.request.fetchOffset, 3);
});

test('a follower does not ask on before what it got is flushed', () => {
  const node = new Driven([1, 1, 1]);
  node.answer(node.follow(1, 1), fetched({ records: new Uint8Array(1), highWatermark: 3 }));
  assert(node.types().includes('appendFetched'));
  node.log.epochs.push(1);
  node.wait(400);
  assert.equal(node.sent.length, 0);
  node.log.flushedOffset = 4;
  node.step({ type: 'flushed' });
  const [next] = node.requests('fetch');
  assert.equal(next?.request.type === 'fetch' && next.request.fetchOffset, 4);
});

test('a leader that a majority does not ask any more resigns, and never leads in that term again', () => {
  const node = leading();
  node.wait(1_500);
  node.step({
    type: 'request',
    requestId: 1,
    request: fetch(3, { fetchOffset: 4, lastFetchedEpoch: 2, maxWaitMs: 0 }),
  });
  node.wait(2_900);
  assert.notEqual(node.core.leader, null);
  node.wait(200);
  assert.equal(node.core.leader, null);
  assert.equal(node.core.leaderId, -1);
  assert(node.types().includes('resigned'));
  const reply = node.ask(vote(1, { replicaEpoch: 2, lastOffsetEpoch: 2, lastOffset: 9 }));
  assert.equal(reply.type === 'vote' && reply.voteGranted, false);
});

test('who resigns names the best successor, who stands at once', () => {
  const node = leading();
  node.step({
    type: 'request',
    requestId: 1,
    request: fetch(3, { fetchOffset: 4, lastFetchedEpoch: 2 }),
  });
  node.step({ type: 'resign' });
  const [told] = node.requests('endQuorumEpoch');
  assert(told?.request.type === 'endQuorumEpoch');
  assert.deepEqual(
    told.request.preferredCandidates.map(({ candidateId }) => candidateId),
    [3, 1],
  );
  node.wait(60_000);
  assert.equal(node.requests('vote').length, 0, 'it stands itself');

  const heir = new Driven([1, 1, 1]);
  heir.answer(heir.follow(1, 1), fetched());
  const candidates = [{ candidateId: 2, candidateDirectoryId: voters[1]!.voterDirectoryId }];
  heir.ask({
    type: 'endQuorumEpoch',
    clusterId,
    leaderId: 1,
    leaderEpoch: 1,
    preferredCandidates: candidates,
    leaderEndpoints: [],
  });
  assert.equal(heir.requests('vote').length, 2);
});

test.run();
