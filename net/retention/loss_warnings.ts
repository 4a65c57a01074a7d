/**
 * Tells people when retention is about to delete records that a consumer group has not read: once for each group and
 * segment, some time before, with numbers.
 *
 * Thread: the partition's shard.
 */
import type { DeletableSegment, RetentionRules } from '../../engine/log/retention.ts';
import type { PartitionLeader } from '../../replication/partition/leader.ts';
import type { ShardLogger } from '../shard_context.ts';

/** Asks a shard for its groups that have not read all of a partition below `endOffset`. */
export interface GroupsBehindCall {
  readonly topic: string;
  readonly partition: number;
  readonly endOffset: number;
}

/** A group with a committed offset for the partition that lies below what was asked for. */
export interface GroupBehind {
  readonly groupId: string;
  readonly committedOffset: number;
  /** Members now; a group without any may still come back for its records. */
  readonly members: number;
}

export interface LossWarningsOptions {
  /** Asks the groups of all shards. */
  readonly groupsBehind: (asked: GroupsBehindCall) => Promise<readonly GroupBehind[]>;
  readonly logger: ShardLogger;
  /** How long before a segment goes for its age people are told, milliseconds; negative: never, nor at any other time. */
  readonly aheadMs: number;
}

/** Warning of a segment's whole life would warn of every reader that is not at the end. */
const aheadShareMax = 0.25;

export class LossWarnings {
  readonly #options: LossWarningsOptions;
  /** Base offsets of segments that were warned of, by partition and then by group. */
  readonly #warned = new WeakMap<PartitionLeader, Map<string, Set<number>>>();

  constructor(options: LossWarningsOptions) {
    this.#options = options;
  }

  /** Looks at what will go soon. @param rules as of now @throws DiskError */
  async check(leader: PartitionLeader, rules: RetentionRules): Promise<void> {
    const { aheadMs, groupsBehind } = this.#options;
    const { log, topic, partition } = leader;
    if (aheadMs < 0) return;
    const earlier = Math.min(aheadMs, Math.max(0, log.config.retentionMs) * aheadShareMax);
    const soon = { ...rules, nowMs: rules.nowMs + earlier };
    // What lies below the log start is lost to its readers already.
    const atRisk = log.deletion.find(soon).filter(({ reason }) => reason !== 'start');
    this.#forgetBelow(leader, log.deletion.firstBaseOffset);
    const endOffset = atRisk[atRisk.length - 1]?.endOffset;
    if (endOffset === undefined) return;
    for (const group of await groupsBehind({ topic, partition, endOffset }))
      for (const segment of atRisk) this.#warnOnce(leader, group, segment);
  }

  #warnOnce(leader: PartitionLeader, group: GroupBehind, segment: DeletableSegment): void {
    const { log, topic, partition } = leader;
    const { groupId, committedOffset, members } = group;
    const { baseOffset, endOffset, reason } = segment;
    const from = Math.max(committedOffset, baseOffset, log.logStartOffset);
    if (from >= endOffset || this.#isKnown(leader, groupId, baseOffset)) return;
    this.#options.logger.warn(
      {
        group: groupId,
        members,
        partition: `${topic}-${partition}`,
        committedOffset,
        segment: baseOffset,
        records: endOffset - from,
        bytes: log.deletion.bytesFrom(from, endOffset),
        because: reason === 'bytes' ? 'retention.bytes' : 'retention.ms',
      },
      'retention is about to delete records that a group has not read',
    );
  }

  /** And notes it. */
  #isKnown(leader: PartitionLeader, groupId: string, baseOffset: number): boolean {
    let groups = this.#warned.get(leader);
    if (groups === undefined) {
      groups = new Map();
      this.#warned.set(leader, groups);
    }
    const segments = groups.get(groupId);
    if (segments?.has(baseOffset)) return true;
    if (segments === undefined) groups.set(groupId, new Set([baseOffset]));
    else segments.add(baseOffset);
    return false;
  }

  /** Of segments that are gone. */
  #forgetBelow(leader: PartitionLeader, baseOffset: number): void {
    const groups = this.#warned.get(leader);
    if (groups === undefined) return;
    for (const [groupId, segments] of groups) {
      for (const base of segments) if (base < baseOffset) segments.delete(base);
      if (segments.size === 0) groups.delete(groupId);
    }
  }
}
