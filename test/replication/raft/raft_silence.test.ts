/**
 * What a node that takes a leader's place knows of that one's silence. The rule is `broker.session.timeout.ms` (KIP-500):
 * a broker is fenced when the controllers have not heard of it for so long, whichever of them leads.
 */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import type { SilentNode } from '../../../replication/metadata/broker_sessions.ts';
import { Driven, fetched, fetchOf, granted } from './driven_core.ts';
import { raftTimeouts } from './quorum_of_one.ts';

const test = suite('raft_silence');

/** Node 2, which follows node 1 and has an answer of it. */
function following(): Driven {
  const node = new Driven([1, 1, 1]);
  node.answer(node.follow(1, 1), fetched());
  return node;
}

/** It stands, and node 3 votes for it. Returns what it says of the leader before. */
function lead(node: Driven): SilentNode | null {
  const preVotes = node.until('vote');
  node.answer(preVotes.find(({ to }) => to === 3)!, granted(true, node.core.epoch));
  const votes = node.requests('vote');
  node.answer(votes.find(({ to }) => to === 3)!, granted(true, node.core.epoch));
  node.step({ type: 'persisted' });
  const end = node.log.endOffset;
  node.log.flushedOffset = end;
  node.step({ type: 'flushed' });
  const { epoch: currentLeaderEpoch } = node.core;
  const whole = { currentLeaderEpoch, fetchOffset: end, lastFetchedEpoch: currentLeaderEpoch };
  node.step({ type: 'request', requestId: 1, request: fetchOf(3, whole) });
  const elected = node.effects.find((effect) => effect.type === 'elected');
  assert(elected !== undefined, 'it does not lead');
  return elected.silent;
}

test('a leader’s silence began with its last answer', () => {
  const node = following();
  node.nowMs += 300;
  node.answer(node.requests('fetch')[0]!, fetched());
  const heardMs = node.nowMs;
  assert.deepEqual(lead(node), { nodeId: 1, sinceMs: heardMs });
  assert(node.nowMs - heardMs >= raftTimeouts.fetchTimeoutMs);
});

test('a connection that breaks tells nothing', () => {
  const node = following();
  const heardMs = node.nowMs;
  node.answer(node.requests('fetch')[0]!, 'closed');
  assert.deepEqual(lead(node), { nodeId: 1, sinceMs: heardMs });
});

test('a leader that is known by hearsay alone is not silent', () => {
  const node = new Driven([1, 1, 1]);
  node.follow(1, 1);
  assert.equal(lead(node), null);
});

test('whatever comes of it ends its silence', () => {
  const late = following();
  const [asked] = late.requests('fetch');
  late.until('vote');
  late.nowMs += 5;
  late.answer(asked!, fetched());
  const answeredMs = late.nowMs;
  assert.deepEqual(lead(late), { nodeId: 1, sinceMs: answeredMs });

  const asking = following();
  asking.until('vote');
  asking.step({ type: 'request', requestId: 9, request: fetchOf(1) });
  const askedMs = asking.nowMs;
  asking.wait(raftTimeouts.electionTimeoutMs);
  assert.deepEqual(lead(asking), { nodeId: 1, sinceMs: askedMs });
});

test('who led before the last leader may have been with that one', () => {
  const node = following();
  node.nowMs += 100;
  node.follow(3, 2);
  assert.equal(lead(node)?.nodeId, 3, 'which has voted');
});

test('a leader whom others still hear is the same leader', () => {
  const node = following();
  const heardMs = node.nowMs;
  const [, toThree] = node.until('vote');
  node.answer(toThree!, granted(false, 1, 1));
  assert.equal(node.core.follower?.leaderId, 1);
  const silent = lead(node);
  assert.equal(silent?.nodeId, 1);
  assert(silent.sinceMs > heardMs, 'the others heard it later');
});

test('a node that was cut off for long speaks for itself alone', () => {
  const node = following();
  for (let round = 0; round < 20; round += 1) {
    node.until('vote');
    node.wait(raftTimeouts.electionTimeoutMs);
  }
  const silent = lead(node);
  assert.equal(silent?.nodeId, 1);
  const silentMs = node.nowMs - silent.sinceMs;
  const { fetchTimeoutMs } = raftTimeouts;
  assert(silentMs >= fetchTimeoutMs && silentMs <= fetchTimeoutMs * 1.25, `${silentMs} ms`);
});

test.run();
