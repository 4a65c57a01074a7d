/**
 * What must hold in every history of a quorum, checked with every event:
 *
 *   one leader in a term
 *   one vote of a replica in a term
 *   what one node has reported as committed, all others report at the same place, and the order has no holes
 *   a leader begins where the log ends, with all data before it reported
 */
import assert from 'node:assert/strict';
import type { MetadataBatch } from '../../replication/metadata/records.ts';
import type { RaftReply, RaftRequest } from '../../replication/raft/messages.ts';

interface CheckedNode {
  readonly id: number;
  readonly directoryId: string;
  readonly store: { readonly endOffset: number };
}

interface Committed {
  readonly lastOffset: number;
  readonly text: string;
}

export class RaftChecks {
  readonly counts: Record<string, number> = {};
  readonly #leaders = new Map<number, string>();
  readonly #votes = new Map<string, string>();
  /** By first offset. */
  readonly #committed = new Map<number, Committed>();
  readonly #nextOffsets = new Map<number, number>();
  #endOffset = 0;
  /** Values of records that have been committed. */
  readonly values: Set<string> = new Set();

  get endOffset(): number {
    return this.#endOffset;
  }

  count(what: string): void {
    this.counts[what] = (this.counts[what] ?? 0) + 1;
  }

  reportedBy(node: CheckedNode): number {
    return this.#nextOffsets.get(node.id) ?? 0;
  }

  started(node: CheckedNode): void {
    this.#nextOffsets.set(node.id, 0);
    this.count('starts');
  }

  refused(_node: CheckedNode, reason: string): void {
    assert.match(reason, /vote file/);
    this.count('refused starts');
  }

  /** @returns whether the request tells of a new leader */
  sent(node: CheckedNode, request: RaftRequest): boolean {
    this.count(request.type);
    if (request.type === 'vote' && !request.preVote)
      this.#vote(request.replicaEpoch, nameOf(node), nameOf(node));
    if (request.type !== 'beginQuorumEpoch') return false;
    const isNew = !this.#leaders.has(request.leaderEpoch);
    this.#lead(node, request.leaderEpoch);
    return isNew;
  }

  replied(node: CheckedNode, request: RaftRequest, reply: RaftReply): void {
    if (request.type !== 'vote' || reply.type !== 'vote') return;
    if (request.preVote || !reply.voteGranted) return;
    const candidate = `${request.replicaId}/${request.replicaDirectoryId}`;
    this.#vote(request.replicaEpoch, nameOf(node), candidate);
  }

  elected(node: CheckedNode, epoch: number, nextOffset: number): void {
    this.count('elections');
    this.#lead(node, epoch);
    assert.equal(nextOffset, node.store.endOffset);
  }

  committed(node: CheckedNode, batch: MetadataBatch): void {
    const { firstOffset, lastOffset, epoch, records } = batch;
    const expected = this.#nextOffsets.get(node.id);
    assert.equal(firstOffset, expected, `node ${node.id} leaves something out`);
    this.#nextOffsets.set(node.id, lastOffset + 1);
    const text = `${epoch} ${JSON.stringify(records)}`;
    const known = this.#committed.get(firstOffset);
    if (known === undefined) {
      assert.equal(firstOffset, this.#endOffset, `node ${node.id} has other batches`);
      this.#committed.set(firstOffset, { lastOffset, text });
      this.#endOffset = lastOffset + 1;
      this.count('batches');
      for (const record of records)
        if (record.type === 'ConfigRecord') this.values.add(record.name);
      return;
    }
    assert.deepEqual(
      { lastOffset, text },
      known,
      `node ${node.id}: what was committed at ${firstOffset} has changed`,
    );
  }

  #lead(node: CheckedNode, epoch: number): void {
    const name = nameOf(node);
    const known = this.#leaders.get(epoch) ?? name;
    assert.equal(name, known, `two leaders in term ${epoch}`);
    this.#leaders.set(epoch, name);
  }

  #vote(epoch: number, voter: string, candidate: string): void {
    const key = `${epoch} ${voter}`;
    const known = this.#votes.get(key) ?? candidate;
    assert.equal(candidate, known, `${voter} votes twice in term ${epoch}`);
    this.#votes.set(key, candidate);
  }
}

function nameOf({ id, directoryId }: CheckedNode): string {
  return `${id}/${directoryId}`;
}
