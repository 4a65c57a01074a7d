/** What a leader says to a follower whose log ends before its own begins, and what that one does (KIP-630). */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type {
  FetchSnapshotReply,
  FetchSnapshotRequest,
  SnapshotId,
} from '../../../replication/raft/messages.ts';
import { clusterId } from '../metadata/fixtures.ts';
import { Driven, fetched, granted, voters } from './driven_core.ts';

const test = suite('raft_core: snapshots');
const id: SnapshotId = { endOffset: 3, epoch: 1 };

/** Leads in term 2 with a log whose first three records are in a snapshot. */
function leading(): Driven {
  const node = new Driven([1, 1, 1]);
  node.log.startOffset = 3;
  node.log.snapshotId = id;
  node.answer(node.until('vote')[0]!, granted(true, 1));
  node.answer(node.requests('vote')[0]!, granted(true, 2));
  node.step({ type: 'persisted' });
  node.log.flushedOffset = 4;
  node.step({ type: 'flushed' });
  assert.notEqual(node.core.leader, null);
  return node;
}

const who = {
  clusterId,
  replicaId: 1,
  replicaDirectoryId: voters[0]!.voterDirectoryId,
  currentLeaderEpoch: 2,
} as const;

const fetchFrom = (fetchOffset: number, lastFetchedEpoch: number) =>
  ({
    type: 'fetch',
    ...who,
    fetchOffset,
    lastFetchedEpoch,
    highWatermark: 0,
    maxWaitMs: 0,
    maxBytes: 1_000,
  }) as const;

const pieceAt = (position: number): FetchSnapshotRequest => ({
  type: 'fetchSnapshot',
  ...who,
  snapshotId: id,
  position,
  maxBytes: 100,
});

function piece(position: number, length: number, size: number): FetchSnapshotReply {
  return {
    type: 'fetchSnapshot',
    errorCode: ErrorCode.NONE,
    leaderId: 1,
    leaderEpoch: 1,
    snapshotId: id,
    size,
    position,
    unalignedRecords: new Uint8Array(length),
  };
}

test('a leader names its snapshot to whoever asks for what is below its log', () => {
  const node = leading();
  for (const [offset, epoch] of [
    [0, 0],
    [2, 1],
  ] as const) {
    const reply = node.ask(fetchFrom(offset, epoch));
    assert(reply.type === 'fetch');
    assert.deepEqual([reply.snapshotId, reply.divergingEpoch, reply.logStartOffset], [id, null, 3]);
  }
  node.step({ type: 'request', requestId: 8, request: fetchFrom(3, 1) });
  assert(node.types().includes('replyRecords'), 'who has the snapshot gets what comes behind it');
});

test('a leader hands out pieces, and takes who copies them for alive', () => {
  const node = leading();
  for (let turn = 0; turn < 12; turn += 1) {
    node.nowMs += 1_000;
    node.step({ type: 'request', requestId: 8, request: pieceAt(turn) });
    assert.deepEqual(
      node.effects.filter(({ type }) => type === 'replySnapshot'),
      [{ type: 'replySnapshot', requestId: 8, request: pieceAt(turn) }],
    );
  }
  assert.notEqual(node.core.leader, null, 'a majority listens');
});

test('who has no snapshot, or does not lead, says so', () => {
  const leader = leading();
  leader.log.snapshotId = null;
  assert.equal(leader.ask(pieceAt(0)).errorCode, ErrorCode.SNAPSHOT_NOT_FOUND);
  const follower = new Driven([1, 1, 1]);
  follower.follow(1, 2);
  assert.equal(follower.ask(pieceAt(0)).errorCode, ErrorCode.NOT_LEADER_OR_FOLLOWER);
  const stale = { ...pieceAt(0), currentLeaderEpoch: 1 };
  assert.equal(leader.ask(stale).errorCode, ErrorCode.FENCED_LEADER_EPOCH);
});

test('a follower copies a snapshot piece by piece, goes on after a break, and then fetches behind it', () => {
  const node = new Driven([]);
  node.log.voters = voters;
  node.answer(node.follow(1, 1), fetched({ snapshotId: id }));
  const [first] = node.requests('fetchSnapshot');
  assert(first?.request.type === 'fetchSnapshot');
  assert.deepEqual([first.request.snapshotId, first.request.position], [id, 0]);
  node.answer(first, piece(0, 60, 100));
  assert.deepEqual(
    node.effects.flatMap((one) => (one.type === 'keepSnapshot' ? [one.position, one.size] : [])),
    [0, 100],
  );
  const [second] = node.requests('fetchSnapshot');
  assert(second?.request.type === 'fetchSnapshot');
  assert.equal(second.request.position, 60);
  node.answer(second, 'closed');
  const [again] = node.until('fetchSnapshot');
  assert(again?.request.type === 'fetchSnapshot');
  assert.equal(again.request.position, 60, 'not from the beginning');
  node.answer(again, piece(60, 40, 100));
  assert.deepEqual(node.sent, [], 'what becomes of it is awaited');
  assert(node.core.follower?.awaits(id));
  node.log.epochs.push(1, 1, 1);
  node.log.flushedOffset = 3;
  node.log.snapshotId = id;
  node.step({ type: 'snapshotInstalled', id });
  assert.equal(node.core.highWatermark, 3);
  const [next] = node.requests('fetch');
  assert(next?.request.type === 'fetch');
  assert.deepEqual([next.request.fetchOffset, next.request.lastFetchedEpoch], [3, 1]);
});

test('a snapshot that cannot be had any more, or not be kept, is asked for anew', () => {
  const node = new Driven([]);
  node.answer(node.follow(1, 1), fetched({ snapshotId: id }));
  const [first] = node.requests('fetchSnapshot');
  node.answer(first!, { ...piece(0, 0, 0), errorCode: ErrorCode.SNAPSHOT_NOT_FOUND });
  const [fetch] = node.until('fetch');
  node.answer(fetch!, fetched({ snapshotId: { endOffset: 9, epoch: 1 } }));
  const [other] = node.requests('fetchSnapshot');
  assert(other?.request.type === 'fetchSnapshot');
  assert.equal(other.request.snapshotId.endOffset, 9);
  node.answer(other, piece(0, 10, 10));
  assert(!node.types().includes('keepSnapshot'), 'a piece of another one');
  const [third] = node.until('fetch');
  node.answer(third!, fetched({ snapshotId: id }));
  const [whole] = node.requests('fetchSnapshot');
  node.answer(whole!, piece(0, 10, 10));
  node.step({ type: 'snapshotFailed', id });
  assert.equal(node.core.follower?.awaits(id), false);
  assert.equal(node.until('fetch').length, 1);
});

test.run();
