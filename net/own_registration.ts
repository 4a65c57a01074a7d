/** What a broker tells the controller of itself when it registers. */
import { nodeRandom } from '../engine/node_ports.ts';
import type {
  DamagedReplicas,
  RegisterBrokerRequest,
} from '../replication/metadata/controller_api.ts';
import type { MetadataImage } from '../replication/metadata/image.ts';
import type { BrokerEndpoint } from '../replication/metadata/records.ts';
import type { BrokerConfig } from './config/broker_config.ts';
import type { LogDirectories } from './log_directories.ts';
import { randomUuid, supportedFeatures } from './metadata_quorum.ts';

/** Of a process that has just started: the incarnation is new. */
export function ownRegistration(
  { nodeId, rack }: BrokerConfig,
  endPoints: readonly BrokerEndpoint[],
  directories: LogDirectories,
  previousBrokerEpoch: number,
  damagedReplicas: readonly DamagedReplicas[],
): RegisterBrokerRequest {
  return {
    brokerId: nodeId,
    incarnationId: randomUuid(nodeRandom),
    endPoints,
    features: supportedFeatures,
    rack,
    logDirs: directories.directoryIds,
    previousBrokerEpoch,
    damagedReplicas,
  };
}

/**
 * What a broker says of its last run when it registers, see `RegisterBrokerRequest`. Its logs are open by then: with
 * fsync all that it acknowledged as a replica is there, after a crash as well, unless a log was found damaged. The
 * directories must be those that it had.
 */
export function previousEpochOf(
  config: BrokerConfig,
  directories: LogDirectories,
  image: MetadataImage,
  damaged: readonly DamagedReplicas[],
): number {
  if (damaged.length > 0) return -1;
  if (directories.cleanShutdown || config.durability !== 'fsync')
    return directories.cleanBrokerEpoch;
  const last = image.broker(config.nodeId);
  const own = new Set(directories.directoryIds);
  return last?.logDirs.every((id) => own.has(id)) === true ? last.epoch : -1;
}
