/** What the broker's log says of a partition whose log has been opened and was not quite as it should be. */
import { partitionDirectoryName } from '../engine/log/partition_directory.ts';
import type { PartitionLog } from '../engine/log/partition_log.ts';
import type { DamagedReplicas } from '../replication/metadata/controller_api.ts';
import type { MetadataImage } from '../replication/metadata/image.ts';
import type { Logger } from './logger.ts';

/**
 * Whether something is missing that may have been acknowledged: more than an unflushed tail. What an earlier start has found
 * missing counts until it is fetched again, which only a replica of several can be.
 * @param known as below
 */
export function lacksRecords(
  { recovery, holeFrom }: PartitionLog,
  known: boolean,
  isReplicated: boolean,
): boolean {
  return (
    (recovery.isNew && known) ||
    recovery.lost !== null ||
    recovery.setAside.length > 0 ||
    (isReplicated && holeFrom >= 0)
  );
}

/**
 * The broker is registered: which of its damaged replicas lead no more although nobody else is known to have everything. They
 * wait for people, since whatever is elected loses something.
 */
export function reportUndecided(
  image: MetadataImage,
  damaged: readonly DamagedReplicas[],
  logger: Logger,
): void {
  for (const { topicId, partitions } of damaged) {
    const topic = image.topicById(topicId);
    for (const id of partitions) {
      const state = topic?.partitions[id];
      if (topic === undefined || state === undefined || state.leader !== -1) continue;
      const { isr, eligibleLeaderReplicas: elr, lastKnownElr, replicas } = state;
      if (isr.length + elr.length + lastKnownElr.length > 0) continue;
      logger.error(
        { partition: partitionDirectoryName(topic.name, id), replicas },
        'nobody leads the partition: this broker was the last one in sync, and its log lacks records. Start the brokers of the other replicas, and choose with kafka-leader-election.sh --election-type unclean, which loses what the first living replica does not have',
      );
    }
  }
}

/** @param known a checkpoint had the partition: it was not expected to be empty */
export function reportRecovery(log: PartitionLog, known: boolean, logger: Logger): void {
  const { recovery } = log;
  const partition = partitionDirectoryName(log.topic, log.partition);
  if (recovery.isNew && known)
    logger.error(
      { partition },
      'the directory of a partition was gone and has been made anew, empty',
    );
  if (recovery.cutBytes > 0)
    logger.info({ partition, bytes: recovery.cutBytes }, 'cut an unfinished write off the log');
  if (recovery.lost !== null)
    logger.error(
      { partition, ...recovery.lost },
      'the log ends before what was flushed: records are lost',
    );
  if (recovery.strayPath !== null)
    logger.warn(
      { partition, renamed: recovery.strayPath },
      'the directory held the records of an older topic of this name and was set aside',
    );
  for (const range of recovery.setAside)
    logger.error({ partition, ...range }, 'damaged records were set aside in a file of their own');
}
