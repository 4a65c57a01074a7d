/**
 * Looks at the replicas of a simulated cluster after every step of their nodes, and changes nothing.
 *
 *   I1 whoever leads has all that leaders before it have committed
 *   I2 below its high watermark a replica has what all others have there
 *   I6 what a replica has known as committed stays in its log, and its log keeps what was flushed
 *   R1, R7 what a leader shows is on stable storage on every member of the ISR
 */
import assert from 'node:assert/strict';
import { lastOffsetOf, sizeOf } from '../../../engine/batch/header.ts';
import type { PartitionLog } from '../../../engine/log/partition_log.ts';
import type { CommittedLog } from './committed_log.ts';

const readBytes = 1 << 20;

/** A replica as it is at the moment. */
export interface ReplicaView {
  readonly nodeId: number;
  readonly partition: number;
  readonly log: PartitionLog;
  readonly highWatermark: number;
  /** -1: it follows. */
  readonly leadsInEpoch: number;
  /** Its log was damaged, or its disk replaced: what it had may be gone. */
  readonly isExcused: boolean;
}

interface Known {
  log: PartitionLog | null;
  /** Below it the log has been compared with what is committed. */
  verifiedEnd: number;
  /** What is on its stable storage, whether or not it runs. */
  durableEnd: number;
  leadsInEpoch: number;
  highWatermark: number;
}

export class ReplicaWatch {
  readonly #committed: readonly CommittedLog[];
  readonly #isrOf: (partition: number, leaderEpoch: number) => readonly number[];
  readonly #known = new Map<string, Known>();

  /** @param isrOf members of the committed ISR in that epoch whose disks are whole; none when another epoch has begun */
  constructor(
    committed: readonly CommittedLog[],
    isrOf: (partition: number, leaderEpoch: number) => readonly number[],
  ) {
    this.#committed = committed;
    this.#isrOf = isrOf;
  }

  /** What the node has on stable storage of the partition for sure. */
  durableEnd(nodeId: number, partition: number): number {
    return this.#of(nodeId, partition).durableEnd;
  }

  look(view: ReplicaView): void {
    const { nodeId, partition, log } = view;
    const known = this.#of(nodeId, partition);
    if (known.log !== log) this.#opened(view, known);
    if (log.isDamaged) return;
    this.#lookAtEnd(view, known);
    // A follower that lacks something shows it to nobody; it is looked at when it has been repaired.
    const isBeingRepaired = view.isExcused && view.leadsInEpoch === -1;
    if (view.highWatermark > known.verifiedEnd && !isBeingRepaired) this.#verify(view, known);
    if (view.leadsInEpoch >= 0) this.#lookAtLeader(view, known);
    known.leadsInEpoch = view.leadsInEpoch;
    known.highWatermark = view.highWatermark;
  }

  #of(nodeId: number, partition: number): Known {
    const key = `${nodeId},${partition}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const fresh: Known = {
      log: null,
      verifiedEnd: 0,
      durableEnd: 0,
      leadsInEpoch: -1,
      highWatermark: 0,
    };
    this.#known.set(key, fresh);
    return fresh;
  }

  /** After a start of the node: everything is looked at anew. */
  #opened(view: ReplicaView, known: Known): void {
    const { log } = view;
    if (!view.isExcused && !log.isDamaged)
      assert(
        log.logEndOffset >= known.durableEnd,
        `I6 ${this.#name(view)} lost flushed records: it ends at ${log.logEndOffset}, flushed was ${known.durableEnd}`,
      );
    known.log = log;
    known.verifiedEnd = 0;
    known.durableEnd = Math.min(known.durableEnd, log.logEndOffset);
    known.leadsInEpoch = -1;
    known.highWatermark = 0;
  }

  #lookAtEnd(view: ReplicaView, known: Known): void {
    const { log } = view;
    known.durableEnd = Math.min(Math.max(known.durableEnd, log.flushedOffset), log.logEndOffset);
    assert(
      log.logEndOffset >= known.verifiedEnd || view.isExcused,
      `I6 ${this.#name(view)} is cut to ${log.logEndOffset}, and was committed up to ${known.verifiedEnd}`,
    );
    known.verifiedEnd = Math.min(known.verifiedEnd, log.logEndOffset);
    if (view.leadsInEpoch >= 0 && view.leadsInEpoch === known.leadsInEpoch)
      assert(
        view.highWatermark >= known.highWatermark,
        `I6 ${this.#name(view)}: the high watermark falls from ${known.highWatermark} to ${view.highWatermark} in epoch ${view.leadsInEpoch}`,
      );
  }

  #verify(view: ReplicaView, known: Known): void {
    const { log, highWatermark } = view;
    const committed = this.#committed[view.partition] as CommittedLog;
    while (known.verifiedEnd < highWatermark) {
      const slice = log.read(known.verifiedEnd, readBytes, highWatermark, true);
      assert(
        typeof slice === 'object',
        `${this.#name(view)} shows records up to ${highWatermark} and cannot read ${known.verifiedEnd}: ${slice as number}`,
      );
      const bytes = log.copy(slice);
      committed.verify(this.#name(view), bytes, known.verifiedEnd);
      known.verifiedEnd = endOf(bytes);
    }
  }

  #lookAtLeader(view: ReplicaView, known: Known): void {
    const committed = this.#committed[view.partition] as CommittedLog;
    if (known.leadsInEpoch !== view.leadsInEpoch) {
      const needed = committed.endBefore(view.leadsInEpoch);
      assert(
        view.log.logEndOffset >= needed,
        `I1 ${this.#name(view)} leads in epoch ${view.leadsInEpoch} and ends at ${view.log.logEndOffset}; leaders before it have committed up to ${needed}`,
      );
    }
    committed.noteLeader(view.leadsInEpoch, view.highWatermark);
    if (view.highWatermark === known.highWatermark) return;
    for (const id of this.#isrOf(view.partition, view.leadsInEpoch))
      assert(
        this.durableEnd(id, view.partition) >= view.highWatermark,
        `R1/R7 ${this.#name(view)} shows records up to ${view.highWatermark}; node ${id} of the ISR has flushed up to ${this.durableEnd(id, view.partition)}`,
      );
  }

  #name({ nodeId, partition }: ReplicaView): string {
    return `node ${nodeId} partition ${partition}`;
  }
}

function endOf(bytes: Uint8Array): number {
  let at = 0;
  let end = 0;
  while (at < bytes.length) {
    end = lastOffsetOf(bytes, at) + 1;
    at += sizeOf(bytes, at);
  }
  return end;
}
