/**
 * Brings an image in line with a snapshot of what is committed: of a node that starts, or one that was away for so long that
 * the log which it lacks is gone.
 */
import assert from 'node:assert/strict';
import { MetadataImage, type PartitionImage, type TopicImage } from './image.ts';
import { registrationOf } from './image_parts.ts';
import {
  ConfigResourceType,
  type MetadataDelta,
  type MetadataRecord,
  type MetadataSnapshot,
} from './records.ts';

/**
 * What to apply to the image. That is the snapshot itself where nothing was applied before; otherwise what is different, as
 * one batch, so that whoever has followed the image sees what came, went and changed.
 */
export function deltaTo(image: MetadataImage, snapshot: MetadataSnapshot): MetadataDelta {
  if (image.offset === -1) return snapshot;
  assert(
    snapshot.lastOffset > image.offset,
    `a snapshot up to ${snapshot.lastOffset} for metadata of ${image.offset}`,
  );
  const to = new MetadataImage(image.clusterId);
  to.follow(snapshot);
  const { lastOffset, epoch, leaderId } = snapshot;
  const records = [...difference(image, to)];
  return { snapshot: false, firstOffset: image.offset + 1, lastOffset, epoch, leaderId, records };
}

function* difference(
  from: MetadataImage,
  to: MetadataImage,
): Generator<MetadataRecord, void, void> {
  for (const name of from.features.keys())
    if (!to.features.has(name)) yield { type: 'FeatureLevelRecord', name, featureLevel: 0 };
  for (const [name, featureLevel] of to.features)
    if (from.features.get(name) !== featureLevel)
      yield { type: 'FeatureLevelRecord', name, featureLevel };
  yield* brokersIn(from, to);
  for (const { id, name } of from.topics.values())
    if (to.topicById(id) === undefined || to.topicById(id)?.name !== name)
      yield { type: 'RemoveTopicRecord', topicId: id };
  for (const topic of to.topics.values()) yield* partitionsIn(from.topicById(topic.id), topic);
  yield* configsIn(from, to);
  const { producerIds } = to;
  if (producerIds !== null && producerIds.nextProducerId !== from.producerIds?.nextProducerId)
    yield producerIds;
}

function* brokersIn(from: MetadataImage, to: MetadataImage): Generator<MetadataRecord, void, void> {
  for (const { id: brokerId, epoch: brokerEpoch } of from.brokers.values())
    if (to.broker(brokerId) === undefined)
      yield { type: 'UnregisterBrokerRecord', brokerId, brokerEpoch };
  for (const broker of to.brokers.values()) {
    const before = from.broker(broker.id);
    if (before === undefined || JSON.stringify(before) !== JSON.stringify(broker))
      yield registrationOf(broker);
  }
}

function* partitionsIn(
  from: TopicImage | undefined,
  { id: topicId, name, partitions }: TopicImage,
): Generator<MetadataRecord, void, void> {
  if (from === undefined) yield { type: 'TopicRecord', name, topicId };
  for (const partition of partitions) {
    const before = from?.partitions[partition.partitionId];
    if (before === undefined || isChanged(before, partition))
      yield { type: 'PartitionRecord', topicId, ...partition };
  }
}

/** Every change raises the partition's epoch. */
function isChanged(before: PartitionImage, after: PartitionImage): boolean {
  return before.partitionEpoch !== after.partitionEpoch || before.leaderEpoch !== after.leaderEpoch;
}

/** Overrides of a topic that is removed go with it, also where another one has its name. */
function* configsIn(from: MetadataImage, to: MetadataImage): Generator<MetadataRecord, void, void> {
  for (const record of from.configRecords()) {
    const { resourceType, resourceName, name } = record;
    const isGone = !to.configs(resourceType, resourceName).has(name);
    if (isGone) yield { ...record, value: null };
  }
  for (const record of to.configRecords()) {
    const { resourceType, resourceName, name, value } = record;
    const isOfNewTopic =
      resourceType === ConfigResourceType.topic &&
      from.topic(resourceName)?.id !== to.topic(resourceName)?.id;
    if (isOfNewTopic || from.configs(resourceType, resourceName).get(name) !== value) yield record;
  }
}
