/**
 * What a change of a partition comes to: reassignment, in-sync and eligible replicas, and leader decided together, as one
 * record. A pure function with the semantics of Kafka's controller (KIP-455, KIP-704, KIP-966).
 *
 * Invariants of its result: the leader is in the ISR, or is -1; ISR and ELR are disjoint and among the replicas; there is
 * no ELR while the ISR has `minIsr` members, because then the high watermark moves without the others.
 */
import type { PartitionImage } from './image.ts';
import { type PartitionChangeRecord, uuidZero } from './records.ts';

/**
 * `online`: a leader is replaced only when it may not lead; `preferred`: the first replica takes over when it can;
 * `unclean`: as online, but a replica that lacks committed records is better than none.
 */
type Election = 'online' | 'preferred' | 'unclean';

/** What is to change; the rest stays as it is or follows from it. */
export interface WantedPartition {
  readonly election: Election;
  readonly isr?: readonly number[];
  readonly replicas?: readonly number[];
  readonly removingReplicas?: readonly number[];
  readonly addingReplicas?: readonly number[];
  readonly leaderRecoveryState?: number;
  /** A broker that may lack what it had acknowledged: it is no eligible leader replica. */
  readonly lossyReplica?: number;
  /** Its log has a hole: even when it was the last to lead, it does so again only where there is no other replica. */
  readonly isDamaged?: boolean;
}

export interface ChangeRules {
  /** Members of the ISR without which the high watermark does not move. */
  readonly minIsr: number;
  readonly mayLead: (brokerId: number) => boolean;
  /** Whether the directory in which the broker had its replica is, as far as known, still one of its own. */
  readonly keepsReplica: (brokerId: number) => boolean;
  /** Where a broker that is new to the partition has it, or all zero. */
  readonly directoryOf: (brokerId: number) => string;
}

/** Kafka's `LeaderRecoveryState`. */
export const LeaderRecoveryState = { recovered: 0, recovering: 1 } as const;

const noLeader = -1;
const leaderUnchanged = -2;

/** Who copies, and who has all that is committed. Lives while one change is planned. */
interface Copies {
  readonly replicas: readonly number[];
  readonly adding: readonly number[];
  readonly removing: readonly number[];
  readonly isr: readonly number[];
  readonly elr: readonly number[];
}

interface Elected {
  readonly leader: number;
  readonly unclean: boolean;
}

/** null when everything stays as it is. */
export function planPartitionChange(
  topicId: string,
  partition: PartitionImage,
  wanted: WantedPartition,
  rules: ChangeRules,
): PartitionChangeRecord | null {
  const copies = wantedCopies(partition, wanted, rules);
  const known = knownLeaders(partition, wanted, copies);
  const { leader, unclean } = elect(partition, known, copies, wanted.election, rules);
  const { isr, elr } = afterElection(partition, copies, leader, unclean, rules);
  const directories = directoriesAfter(partition, copies.replicas, isr, rules);
  const recovering = unclean
    ? LeaderRecoveryState.recovering
    : (wanted.leaderRecoveryState ?? partition.leaderRecoveryState);
  // A replica that is taken away must not go on with the epoch in which it was one.
  const losesReplica = partition.replicas.some((id) => !copies.replicas.includes(id));
  const { replicas, adding, removing } = copies;
  const record: PartitionChangeRecord = {
    type: 'PartitionChangeRecord',
    partitionId: partition.partitionId,
    topicId,
    isr: changed(partition.isr, isr),
    leader: leader !== partition.leader || unclean || losesReplica ? leader : leaderUnchanged,
    replicas: changed(partition.replicas, replicas),
    removingReplicas: changed(partition.removingReplicas, removing),
    addingReplicas: changed(partition.addingReplicas, adding),
    leaderRecoveryState: recovering === partition.leaderRecoveryState ? -1 : recovering,
    directories: changed(partition.directories, directories),
    eligibleLeaderReplicas: changed(partition.eligibleLeaderReplicas, elr),
    lastKnownElr: changed(partition.lastKnownElr, leader === noLeader ? known : []),
  };
  return isNothing(record) ? null : record;
}

function wantedCopies(
  partition: PartitionImage,
  wanted: WantedPartition,
  { minIsr }: ChangeRules,
): Copies {
  const adding = wanted.addingReplicas ?? partition.addingReplicas;
  const removing = wanted.removingReplicas ?? partition.removingReplicas;
  const replicas = wanted.replicas ?? partition.replicas;
  const isr = wanted.isr ?? partition.isr;
  const moved = completed({ adding, removing, replicas, isr, elr: [] });
  return { ...moved, elr: eligible(partition, moved, wanted.lossyReplica, minIsr) };
}

/** A reassignment is complete when all replicas that stay are in sync. */
function completed(copies: Copies): Copies {
  const { adding, removing } = copies;
  if (adding.length === 0 && removing.length === 0) return copies;
  const replicas = copies.replicas.filter((id) => !removing.includes(id));
  const isr = copies.isr.filter((id) => !removing.includes(id));
  if (replicas.length === 0 || !replicas.every((id) => isr.includes(id))) return copies;
  return { replicas, isr, adding: [], removing: [], elr: [] };
}

/** Whoever was in sync when the ISR fell below the minimum has all that is committed until it is back. */
function eligible(
  partition: PartitionImage,
  { isr, replicas }: Copies,
  lossyReplica: number | undefined,
  minIsr: number,
): readonly number[] {
  if (isr.length >= minIsr) return [];
  const candidates = new Set([...partition.eligibleLeaderReplicas, ...partition.isr]);
  return [...candidates].filter(
    (id) => !isr.includes(id) && replicas.includes(id) && id !== lossyReplica,
  );
}

function elect(
  partition: PartitionImage,
  known: readonly number[],
  copies: Copies,
  election: Election,
  { mayLead, keepsReplica }: ChangeRules,
): Elected {
  const { isr, elr, replicas } = copies;
  const candidates = isr.length > 0 ? isr : elr;
  const isGood = (id: number): boolean => candidates.includes(id) && mayLead(id);
  const preferred = replicas[0]!;
  if (election === 'preferred' && isGood(preferred)) return clean(preferred);
  if (isGood(partition.leader)) return clean(partition.leader);
  const good = replicas.find(isGood);
  if (good !== undefined) return clean(good);
  // Nobody is known to have everything. The leader that was the last to go has most of it, unless its disk is another one.
  const last = replicas.find((id) => known.includes(id) && mayLead(id));
  if (last !== undefined && known.length === 1 && candidates.length === 0 && keepsReplica(last))
    return { leader: last, unclean: true };
  const any = election === 'unclean' ? replicas.find(mayLead) : undefined;
  return any === undefined ? clean(noLeader) : { leader: any, unclean: true };
}

function clean(leader: number): Elected {
  return { leader, unclean: false };
}

function afterElection(
  partition: PartitionImage,
  copies: Copies,
  leader: number,
  unclean: boolean,
  { minIsr }: ChangeRules,
): { readonly isr: readonly number[]; readonly elr: readonly number[] } {
  if (unclean) return { isr: [leader], elr: [] };
  if (leader === noLeader || leader === partition.leader || copies.isr.includes(leader))
    return copies;
  const elr = minIsr > 1 ? copies.elr.filter((id) => id !== leader) : [];
  return { isr: [leader], elr };
}

/**
 * Who led last, remembered while a partition has neither leader nor ISR, in the field that Kafka keeps it in. Forgotten when
 * that replica has a hole and others have not been asked: what is the least loss is for people to decide then.
 */
function knownLeaders(
  { leader, lastKnownElr, isr: isrBefore }: PartitionImage,
  { lossyReplica, isDamaged }: WantedPartition,
  { isr, replicas }: Copies,
): readonly number[] {
  let known = lastKnownElr;
  if (isr.length === 0 && isrBefore.length > 0)
    known = leader !== noLeader ? [leader] : isrBefore.length === 1 ? isrBefore : known;
  if (isDamaged !== true || replicas.length === 1) return known;
  return known.filter((id) => id !== lossyReplica);
}

/** Whoever joins the ISR has the replica in a directory that it is registered with, also where the old one is gone. */
function directoriesAfter(
  partition: PartitionImage,
  replicas: readonly number[],
  isr: readonly number[],
  { keepsReplica, directoryOf }: ChangeRules,
): readonly string[] {
  return replicas.map((id) => {
    const at = partition.replicas.indexOf(id);
    const joins = isr.includes(id) && !partition.isr.includes(id);
    if (at === -1 || (joins && !keepsReplica(id))) return directoryOf(id);
    return partition.directories[at] ?? uuidZero;
  });
}

function changed<T extends number | string>(
  from: readonly T[],
  to: readonly T[],
): readonly T[] | null {
  const same = from.length === to.length && from.every((one, index) => one === to[index]);
  return same ? null : to;
}

function isNothing(record: PartitionChangeRecord): boolean {
  return (
    record.leader === leaderUnchanged &&
    record.leaderRecoveryState === -1 &&
    record.isr === null &&
    record.replicas === null &&
    record.removingReplicas === null &&
    record.directories === null &&
    record.addingReplicas === null &&
    record.eligibleLeaderReplicas === null &&
    record.lastKnownElr === null
  );
}
