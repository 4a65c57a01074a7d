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
    const synonyms = brokerSynonyms(key.synonyms, broker, key);
    if (own !== undefined) {
      const value = visible(key, own);
      described.push(
        entry(key, own, [{ name: key.name, value, source: ConfigSource.topic }, ...synonyms]),
      );
    } else described.push(entry(key, inherited(key, broker), synonyms));
  }
  return described;
}

/** Settings of this broker: all that are known, whether or not Millrace acts on them, but for internal ones. */
export function describeBroker(broker: BrokerConfig, wanted: WantedKeys = null): DescribedConfig[] {
  const described: DescribedConfig[] = [];
  for (const key of brokerKeys().values()) {
    const value = broker.explicit[key.name];
    if (!isWanted(key, wanted) || (key.internal && value === undefined)) continue;
    const chain = key.synonyms.length > 0 ? key.synonyms : [{ name: key.name, factor: 1 }];
    const all = brokerSynonyms(chain, broker, key);
    const from = all.findIndex(({ name }) => name === key.name);
    described.push(entry(key, value ?? key.defaultText, from < 0 ? [] : all.slice(from)));
  }
  if (wanted === null || wanted.has(protocolVersion.name)) described.push(protocolVersion);
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

/** Broker settings behind a key: first those that were set, then those with a default, each in its own unit. */
function brokerSynonyms(
  synonyms: readonly Synonym[],
  broker: BrokerConfig,
  key: ConfigKey,
): DescribedSynonym[] {
  const found: DescribedSynonym[] = [];
  for (const { name } of synonyms) {
    const value = broker.explicit[name];
    if (value === undefined) continue;
    found.push({ name, value: visible(key, value), source: ConfigSource.staticBroker });
  }
  for (const { name } of synonyms) {
    const value = brokerKeys().get(name)?.defaultText ?? null;
    if (value === null) continue;
    found.push({ name, value: visible(key, value), source: ConfigSource.default });
  }
  return found;
}

/** The value that a topic or group gets from the broker, in the unit of its own key. */
function inherited(key: ConfigKey, broker: BrokerConfig): string | null {
  for (const { name, factor } of key.synonyms) {
    const value = broker.explicit[name];
    if (value !== undefined) return scaled(value, factor);
  }
  return key.defaultText;
}
