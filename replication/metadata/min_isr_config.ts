/**
 * Keeps `min.insync.replicas` the same for all: by it leaders decide when the high watermark moves, and the controller who
 * is eligible to lead without being in sync (KIP-966). So, as in Kafka, the cluster has one value in its metadata, which may
 * change but not go, and single brokers have none of their own.
 */

import { ConfigOperation } from './config_alteration.ts';
import type { ConfigsToAlter } from './controller_api.ts';
import type { MetadataImage } from './image.ts';
import { type ConfigRecord, ConfigResourceType } from './records.ts';

const name = 'min.insync.replicas';

/** What a cluster without a value is to have in its metadata. */
export function missingMinIsr(image: MetadataImage, initial: number): readonly ConfigRecord[] {
  const resourceType = ConfigResourceType.broker;
  if (image.configs(resourceType, '').has(name)) return [];
  return [{ type: 'ConfigRecord', resourceType, resourceName: '', name, value: `${initial}` }];
}

/** Why an alteration is refused, for people and in Kafka's words; null when it is fine. */
export function minIsrProblem(asked: ConfigsToAlter): string | null {
  const { resourceType, resourceName, replacesAll, changes } = asked;
  if (resourceType !== ConfigResourceType.broker) return null;
  const change = changes.find((one) => one.name === name);
  const isRemoved =
    change === undefined ? replacesAll : change.operation === ConfigOperation.delete;
  if (resourceName === '')
    return isRemoved
      ? 'Cluster-level min.insync.replicas cannot be removed while ELR is enabled.'
      : null;
  return isRemoved || change === undefined
    ? null
    : 'Broker-level min.insync.replicas cannot be altered while ELR is enabled.';
}
