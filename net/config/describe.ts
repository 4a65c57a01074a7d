/**
 * What DescribeConfigs and CreateTopics tell about settings: every known key with its value, where that comes from,
 * and what else it would have been (KIP-226 sources and synonyms, KIP-569 types and documentation).
 */
import type { BrokerConfig } from './broker_config.ts';
import {
  brokerKeys,
  type ConfigKey,
  type ConfigTypeName,
  groupKeys,
  type Synonym,
  topicKeys,
} from './key_table.ts';
import { scaled } from './settings.ts';
import type { TopicOverrides } from './topic_config.ts';

/** Kafka's `DescribeConfigsResponse.ConfigSource`. */
export const ConfigSource = {
  topic: 1,
  dynamicBroker: 2,
  dynamicDefaultBroker: 3,
  staticBroker: 4,
  default: 5,
} as const;
export type ConfigSource = (typeof ConfigSource)[keyof typeof ConfigSource];

/** Kafka's `DescribeConfigsResponse.ConfigType`. */
const typeIds: Readonly<Record<ConfigTypeName, number>> = {
  boolean: 1,
  string: 2,
  int: 3,
  short: 4,
  long: 5,
  double: 6,
  list: 7,
  class: 8,
  password: 9,
};

export interface DescribedSynonym {
  readonly name: string;
  readonly value: string | null;
  readonly source: ConfigSource;
}

export interface DescribedConfig {
  readonly name: string;
  /** Null where there is none, and for sensitive keys. */
  readonly value: string | null;
  readonly source: ConfigSource;
  readonly readOnly: boolean;
  readonly sensitive: boolean;
  /** In the order of precedence; the first is where the value comes from. */
  readonly synonyms: readonly DescribedSynonym[];
  /** Kafka's `ConfigType` as a number. */
  readonly type: number;
  readonly documentation: string;
}

/** Which keys to describe; null for all. */
export type WantedKeys = ReadonlySet<string> | null;

/** Settings of a topic with these overrides. */
export function describeTopic(
  overrides: TopicOverrides,
  broker: BrokerConfig,
  wanted: WantedKeys = null,
): DescribedConfig[] {
  const described: DescribedConfig[] = [];
  for (const key of topicKeys().values()) {
    const own = overrides.get(key.name);
    if (!isWanted(key, wanted) || (key.internal && own === undefined)) continue;
    const synonyms = beginningWith(
      key.synonyms[0]?.name,
      brokerSynonyms(key.synonyms, broker, key),
    );
    if (own !== undefined) {
      const value = visible(key, own);
      described.push(
        entry(key, own, [{ name: key.name, value, source: ConfigSource.topic }, ...synonyms]),
      );
    } else described.push(entry(key, inherited(key, broker), synonyms));
  }
  return described;
}

/**
 * As Kafka tells them: what stands before the first one of this name is left out, and without one there are none. So what
 * was set in hours counts as a default of what is told in milliseconds, and tools do not take it for an override.
 */
function beginningWith(
  name: string | undefined,
  synonyms: readonly DescribedSynonym[],
): readonly DescribedSynonym[] {
  const from = synonyms.findIndex((synonym) => synonym.name === name);
  return from < 0 ? [] : synonyms.slice(from);
}

/**
 * Settings of this broker: all that are known, whether or not Millrace acts on them, but for internal ones and those that
 * cannot stand in a file and have not been set.
 */
export function describeBroker(broker: BrokerConfig, wanted: WantedKeys = null): DescribedConfig[] {
  const described: DescribedConfig[] = [];
  const { overrides, explicit } = broker;
  for (const key of brokerKeys().values()) {
    const value = overrides.broker[key.name] ?? overrides.cluster[key.name] ?? explicit[key.name];
    const isHidden = (key.internal || key.dynamicOnly) && value === undefined;
    if (!isWanted(key, wanted) || isHidden) continue;
    const chain = key.synonyms.length > 0 ? key.synonyms : [{ name: key.name, factor: 1 }];
    const synonyms = beginningWith(key.name, brokerSynonyms(chain, broker, key));
    described.push(entry(key, value ?? key.defaultText, synonyms));
  }
  if (wanted === null || wanted.has(protocolVersion.name)) described.push(protocolVersion);
  return described;
}

/** What has been set for all brokers at run time, and nothing else. */
export function describeClusterDefaults(
  broker: BrokerConfig,
  wanted: WantedKeys = null,
): DescribedConfig[] {
  const described: DescribedConfig[] = [];
  const source = ConfigSource.dynamicDefaultBroker;
  for (const [name, text] of Object.entries(broker.overrides.cluster)) {
    const key = brokerKeys().get(name);
    if (key === undefined || !isWanted(key, wanted)) continue;
    const value = visible(key, text);
    described.push(entry(key, text, [{ name, value, source }]));
  }
  return described;
}

/** Settings of a group without any of its own: nothing can set some yet. */
export function describeGroup(broker: BrokerConfig, wanted: WantedKeys = null): DescribedConfig[] {
  const described: DescribedConfig[] = [];
  for (const key of groupKeys().values()) {
    if (!isWanted(key, wanted) || key.internal) continue;
    const synonyms = brokerSynonyms(key.synonyms, broker, key);
    const source = ConfigSource.default;
    const own = { name: key.name, value: visible(key, key.defaultText), source };
    const hasBrokerKey = key.synonyms.length > 0 || key.defaultText === null;
    described.push(entry(key, inherited(key, broker), hasBrokerKey ? synonyms : [own]));
  }
  return described;
}

/**
 * Older tools tell the broker's features by this key, which Kafka itself dropped in 4.0: without it they take Kafka 1.0
 * for granted. The value names the metadata version that new clusters are formed with.
 */
const protocolVersion: DescribedConfig = {
  name: 'inter.broker.protocol.version',
  value: '4.4-IV2',
  source: ConfigSource.default,
  readOnly: true,
  sensitive: false,
  synonyms: [],
  type: typeIds.string,
  documentation: 'Not a setting: tells older tools what this broker can do.',
};

function isWanted(key: ConfigKey, wanted: WantedKeys): boolean {
  return wanted === null || wanted.has(key.name);
}

function visible(key: ConfigKey, value: string | null): string | null {
  return key.type === 'password' ? null : value;
}

function entry(
  key: ConfigKey,
  value: string | null,
  synonyms: readonly DescribedSynonym[],
): DescribedConfig {
  return {
    name: key.name,
    value: visible(key, value),
    source: synonyms[0]?.source ?? ConfigSource.default,
    readOnly: key.readOnly,
    sensitive: key.type === 'password',
    synonyms,
    type: typeIds[key.type],
    documentation: documentationOf(key),
  };
}

/** One or two sentences for people. */
function documentationOf(key: ConfigKey): string {
  if (key.effect === 'none') return 'Known from Kafka, without effect in this version of Millrace.';
  return key.effect === 'later'
    ? `${key.documentation} Without effect in this version of Millrace.`
    : key.documentation;
}

/**
 * Broker settings behind a key, in the order of precedence, each in its own unit: all that were set at one level come
 * before those of the next one.
 */
function brokerSynonyms(
  synonyms: readonly Synonym[],
  broker: BrokerConfig,
  key: ConfigKey,
): DescribedSynonym[] {
  const found: DescribedSynonym[] = [];
  for (const { values, source } of levels(broker))
    for (const { name } of synonyms) {
      const value = values[name];
      if (value !== undefined) found.push({ name, value: visible(key, value), source });
    }
  for (const { name } of synonyms) {
    const value = brokerKeys().get(name)?.defaultText ?? null;
    if (value === null) continue;
    found.push({ name, value: visible(key, value), source: ConfigSource.default });
  }
  return found;
}

interface Level {
  readonly values: Readonly<Record<string, string>>;
  readonly source: ConfigSource;
}

/** Where a setting of the broker can come from, the strongest first. */
function levels({ overrides, explicit }: BrokerConfig): readonly Level[] {
  return [
    { values: overrides.broker, source: ConfigSource.dynamicBroker },
    { values: overrides.cluster, source: ConfigSource.dynamicDefaultBroker },
    { values: explicit, source: ConfigSource.staticBroker },
  ];
}

/** The value that a topic or group gets from the broker, in the unit of its own key. */
function inherited(key: ConfigKey, broker: BrokerConfig): string | null {
  for (const { values } of levels(broker))
    for (const { name, factor } of key.synonyms) {
      const value = values[name];
      if (value !== undefined) return scaled(value, factor);
    }
  return key.defaultText;
}
