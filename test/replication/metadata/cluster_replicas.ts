/**
 * What replicas do with what the controller decides, in the simplest form in which committed records can be lost: logs of
 * numbered records, leaders that follow KIP-497 and KIP-966, followers that cut and copy. Every broker acts on its own,
 * perhaps outdated, view of a partition.
 */
import assert from 'node:assert/strict';
import type { PartitionToAlter } from '../../../replication/metadata/controller_api.ts';
import type { PartitionImage } from '../../../replication/metadata/image.ts';

/** Of one broker and one partition. */
export interface Replica {
  readonly brokerId: number;
  /** Numbers of records. All of them are on the disk. */
  log: number[];
  /** What the broker knows of the partition. */
  view: PartitionImage;
  highWatermark: number;
  /** While leading: since which leader epoch, from which offset on, and how far the others are known to be. */
  leading: {
    readonly epoch: number;
    readonly startOffset: number;
    readonly ends: Map<number, { readonly end: number; readonly brokerEpoch: number }>;
    /** Asked for and not answered: they count for the high watermark (KIP-497). */
    proposals: PartitionToAlter[];
  } | null;
}

export function newReplica(brokerId: number, view: PartitionImage): Replica {
  return { brokerId, log: [], view, highWatermark: 0, leading: null };
}

/** The broker hears of a newer state. */
export function learn(replica: Replica, view: PartitionImage): void {
  if (view.partitionEpoch < replica.view.partitionEpoch) return;
  replica.view = view;
  const { leading, brokerId, log } = replica;
  if (view.leader !== brokerId) replica.leading = null;
  else if (leading?.epoch !== view.leaderEpoch)
    replica.leading = {
      epoch: view.leaderEpoch,
      startOffset: log.length,
      ends: new Map(),
      proposals: [],
    };
  // What was asked for on the ground of an older state will be refused.
  else
    leading.proposals = leading.proposals.filter(
      ({ partitionEpoch }) => partitionEpoch >= view.partitionEpoch,
    );
}

/** A fetch with the epochs of both; false where they do not agree on who leads. */
export function fetch(follower: Replica, leader: Replica, brokerEpoch: number, most: number): void {
  const { leading, view } = leader;
  if (leading === null || follower.view.leader !== leader.brokerId) return;
  if (follower.view.leaderEpoch !== view.leaderEpoch) return;
  if (!view.replicas.includes(follower.brokerId)) return;
  const common = commonLength(follower.log, leader.log);
  follower.log.length = common;
  leading.ends.set(follower.brokerId, { end: common, brokerEpoch });
  follower.log.push(...leader.log.slice(common, common + most));
  follower.highWatermark = Math.min(
    Math.max(follower.highWatermark, leader.highWatermark),
    follower.log.length,
  );
}

/** Moves the high watermark of a leader over its maximal ISR. */
export function advance(leader: Replica, minIsr: number): void {
  const { leading, view } = leader;
  if (leading === null || view.isr.length < Math.min(minIsr, view.replicas.length)) return;
  const members = new Set(view.isr);
  for (const { newIsr } of leading.proposals)
    for (const { brokerId } of newIsr) members.add(brokerId);
  let end = leader.log.length;
  for (const id of members)
    if (id !== leader.brokerId) end = Math.min(end, leading.ends.get(id)?.end ?? 0);
  leader.highWatermark = Math.max(leader.highWatermark, end);
}

/** The ISR that a leader would rather have; null when it has it or waits for an answer. */
export function proposal(
  leader: Replica,
  leaderBrokerEpoch: number,
  shrinkTo: ReadonlySet<number>,
): PartitionToAlter | null {
  const { leading, view } = leader;
  if (leading === null || leading.proposals.length > 0) return null;
  const newIsr = [{ brokerId: leader.brokerId, brokerEpoch: leaderBrokerEpoch }];
  for (const [brokerId, { end, brokerEpoch }] of leading.ends) {
    if (!view.replicas.includes(brokerId) || shrinkTo.has(brokerId)) continue;
    const hasCaughtUp = end >= leader.highWatermark && end >= leading.startOffset;
    if (hasCaughtUp || view.isr.includes(brokerId)) newIsr.push({ brokerId, brokerEpoch });
  }
  // A member that has not fetched in this epoch stays, under the epoch that nobody knows.
  for (const brokerId of view.isr)
    if (!shrinkTo.has(brokerId) && !newIsr.some((member) => member.brokerId === brokerId))
      newIsr.push({ brokerId, brokerEpoch: -1 });
  const same =
    newIsr.length === view.isr.length &&
    newIsr.every(({ brokerId }) => view.isr.includes(brokerId));
  if (same) return null;
  const asked: PartitionToAlter = {
    partitionIndex: view.partitionId,
    leaderEpoch: view.leaderEpoch,
    partitionEpoch: view.partitionEpoch,
    leaderRecoveryState: 0,
    newIsr,
  };
  leading.proposals.push(asked);
  return asked;
}

function commonLength(a: readonly number[], b: readonly number[]): number {
  let length = 0;
  while (length < a.length && length < b.length && a[length] === b[length]) length += 1;
  return length;
}

/** What has been committed of one partition, as clients were told. */
export class Committed {
  #records: readonly number[] = [];

  get length(): number {
    return this.#records.length;
  }

  /** Everything below the leader's high watermark is committed now, and nothing of before may be missing in it. */
  extend({ log, highWatermark, brokerId }: Replica): void {
    const shown = log.slice(0, highWatermark);
    const common = commonLength(shown, this.#records);
    assert(
      common === Math.min(shown.length, this.#records.length),
      `broker ${brokerId} commits ${shown} after ${this.#records}`,
    );
    if (shown.length > common) this.#records = shown;
  }

  /** A leader that was elected cleanly has all of it. */
  check({ log, brokerId }: Replica): void {
    const common = commonLength(log, this.#records);
    assert.equal(
      common,
      this.#records.length,
      `broker ${brokerId} leads with ${log}, which lacks some of ${this.#records}`,
    );
  }

  /** An unclean election: what the new leader lacks is lost. */
  cut({ log }: Replica): void {
    this.#records = this.#records.slice(0, commonLength(log, this.#records));
  }
}
