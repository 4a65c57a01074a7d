/**
 * Settings of topics: checking them when a topic is created or altered, and what they come to for a partition's log.
 * `logConfigFor` reads no table and so is cheap on every thread.
 */
import type { LogConfig } from '../../engine/log/log_config.ts';
import type { BrokerConfig } from './broker_config.ts';
import { topicKeys } from './key_table.ts';
import { nearestName } from './nearest.ts';
import type { Settings } from './settings.ts';
import { canonicalText, checkValue, numberOf, splitList } from './value_check.ts';

type Draft = { -readonly [Name in keyof LogConfig]: LogConfig[Name] };

type NumberField = Exclude<
  keyof LogConfig,
  'messageTimestampType' | 'durability' | 'cleanupPolicy'
>;

const numberFields: Readonly<Record<string, NumberField>> = {
  'segment.bytes': 'segmentBytes',
  'segment.ms': 'segmentMs',
  'segment.jitter.ms': 'segmentJitterMs',
  'segment.index.bytes': 'segmentIndexBytes',
  'index.interval.bytes': 'indexIntervalBytes',
  'max.message.bytes': 'maxMessageBytes',
  'max.decompressed.message.bytes': 'decompressedMaxBytes',
  'message.timestamp.before.max.ms': 'messageTimestampBeforeMaxMs',
  'message.timestamp.after.max.ms': 'messageTimestampAfterMaxMs',
  'flush.messages': 'flushMessages',
  'flush.ms': 'flushMs',
  'retention.ms': 'retentionMs',
  'retention.bytes': 'retentionBytes',
  'delete.retention.ms': 'deleteRetentionMs',
  'file.delete.delay.ms': 'fileDeleteDelayMs',
  'min.cleanable.dirty.ratio': 'minCleanableDirtyRatio',
  'min.compaction.lag.ms': 'minCompactionLagMs',
  'max.compaction.lag.ms': 'maxCompactionLagMs',
};

function apply(draft: Draft, name: string, text: string): void {
  const field = Object.hasOwn(numberFields, name) ? numberFields[name] : undefined;
  if (field !== undefined) draft[field] = numberOf(text);
  else if (name === 'message.timestamp.type') {
    draft.messageTimestampType = text === 'LogAppendTime' ? 'LogAppendTime' : 'CreateTime';
  } else if (name === 'cleanup.policy') {
    const policies = splitList(text);
    draft.cleanupPolicy = {
      compact: policies.includes('compact'),
      delete: policies.includes('delete'),
    };
  }
}

/** Overrides of a topic: as the metadata holds them, texts by key. */
export type TopicOverrides = ReadonlyMap<string, string>;

/** The broker's settings for topics without any of their own. */
export function logDefaults(settings: Settings, durability: LogConfig['durability']): LogConfig {
  const draft: Partial<Draft> = {
    durability,
    producerIdExpirationMs: settings.number('producer.id.expiration.ms'),
  };
  for (const key of topicKeys().values()) {
    if (key.effect === 'none' || key.synonyms.length === 0) continue;
    const text = settings.textFromSynonyms(key.synonyms);
    if (key.name === 'compression.type' && text !== 'producer') {
      settings.refuse('compression.type', `${onlyProducer}. Allowed: producer`);
    }
    apply(draft as Draft, key.name, text);
  }
  return draft as Draft;
}

const onlyProducer =
  'not supported yet in this version: batches are stored with the compression they came with';

/**
 * Settings of a partition's log: the broker's, with the topic's own over them. Overrides have been checked before. Topics
 * without any share one object.
 */
export function logConfigFor(overrides: TopicOverrides, broker: BrokerConfig): LogConfig {
  if (overrides.size === 0) return broker.logDefaults;
  const draft: Draft = { ...broker.logDefaults };
  for (const [name, text] of overrides) apply(draft, name, text);
  return draft;
}

/** `min.insync.replicas` of a topic: how many replicas must have a record before acks=all is answered. */
export function minInsyncReplicasFor(overrides: TopicOverrides, broker: BrokerConfig): number {
  const own = overrides.get('min.insync.replicas');
  return own === undefined ? broker.minInsyncReplicas : numberOf(own);
}

export interface TopicConfigCheck {
  /** Why the settings are refused (INVALID_CONFIG), or null. */
  readonly error: string | null;
  /** Normalised texts by key, to be stored in the metadata. Empty on an error. */
  readonly values: ReadonlyMap<string, string>;
}

/**
 * Checks the settings of CreateTopics, or the whole set that results from an alteration. The first problem is
 * reported, in words that start as Kafka's do. Settings that Millrace does not act on are checked and kept all the same:
 * clients read them back. With `altered`, other keys are let pass: they stand already, perhaps from another broker's
 * time, and must not be in the way of what is changed.
 */
export function checkTopicConfigs(
  configs: Iterable<{ readonly name: string; readonly value: string | null }>,
  altered: ReadonlySet<string> | null = null,
): TopicConfigCheck {
  const values = new Map<string, string>();
  for (const { name, value } of configs) {
    if (altered?.has(name) === false) {
      values.set(name, value ?? '');
      continue;
    }
    const error = checkOne(name, value);
    if (error !== null) return { error, values: new Map() };
    const key = topicKeys().get(name);
    if (key !== undefined && value !== null) values.set(name, canonicalText(key, value));
  }
  const least = Number(values.get('min.compaction.lag.ms') ?? 0);
  const most = Number(values.get('max.compaction.lag.ms') ?? Number.POSITIVE_INFINITY);
  if (least > most) {
    return {
      error: `conflict topic config setting min.compaction.lag.ms (${least}) > max.compaction.lag.ms (${most})`,
      values: new Map(),
    };
  }
  return { error: null, values };
}

function checkOne(name: string, value: string | null): string | null {
  const key = topicKeys().get(name);
  if (key === undefined) return unknownTopicKey(name);
  if (value === null) return `Null value not supported for topic configs: ${name}`;
  const allowed = checkValue(key, value);
  if (allowed !== null)
    return `Invalid value ${value} for configuration ${name}: allowed: ${allowed}`;
  const text = canonicalText(key, value);
  if (name === 'compression.type' && text !== 'producer') {
    return `Invalid value ${value} for configuration ${name}: ${onlyProducer}. Allowed: producer`;
  }
  if (key.effect === 'refused' && text !== key.defaultText) {
    return `Invalid value ${value} for configuration ${name}: not supported by Millrace. Allowed: ${key.defaultText}`;
  }
  return checkThrottledReplicas(name, text);
}

function checkThrottledReplicas(name: string, text: string): string | null {
  if (!name.endsWith('.throttled.replicas') || text === '' || text === '*') return null;
  if (splitList(text).every((item) => /^\d+:\d+$/.test(item))) return null;
  return `Invalid value ${text} for configuration ${name}: allowed: *, or partition:brokerId, comma-separated`;
}

function unknownTopicKey(name: string): string {
  for (const key of topicKeys().values()) {
    if (key.synonyms.some((synonym) => synonym.name === name)) {
      return `Unknown topic config name: ${name}. For a topic it is ${key.name}`;
    }
  }
  const nearest = nearestName(name, topicKeys().names());
  return `Unknown topic config name: ${name}${nearest === null ? '' : `. Did you mean ${nearest}?`}`;
}
