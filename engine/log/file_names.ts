/** Kafka's names for what lies in a partition's directory. */

export const leaderEpochFile = 'leader-epoch-checkpoint';
export const partitionMetadataFile = 'partition.metadata';

/** What a segment's files end in: the batches, and what can be made again from them. */
export const segmentSuffixes = ['.log', '.index', '.timeindex', '.txnindex'] as const;
/** Of a file that is out of use and waits to be removed. */
export const deletedSuffix = '.deleted';
/** Of a cleaned segment: while it is written, and when it is whole but has not taken its sources' place yet. */
export const cleanedSuffix = '.cleaned';
export const swapSuffix = '.swap';

/** A segment's files are named after its base offset in 20 digits. */
export function segmentFileName(baseOffset: number, suffix: string): string {
  return baseOffset.toString().padStart(20, '0') + suffix;
}

/** The offset in a name of that form, or -1. */
export function offsetInFileName(name: string, suffix: string): number {
  if (name.length !== 20 + suffix.length || !name.endsWith(suffix)) return -1;
  const digits = name.slice(0, 20);
  return /^\d{20}$/.test(digits) ? Number(digits) : -1;
}
