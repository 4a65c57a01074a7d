/**
 * Settings of brokers that are changed at run time (KIP-226): what may be set, and what it comes to. They are stored as
 * overrides in the metadata, for one broker or (under the name '') for all of them. Precedence as in Kafka: this broker's
 * override, the one of all brokers, the properties file, the default.
 */
import type { MetadataImage } from '../../replication/metadata/image.ts';
import { ConfigResourceType } from '../../replication/metadata/records.ts';
import { type BrokerConfig, readDynamicConfig } from './broker_config.ts';
import { brokerKeys, type ConfigKey, topicKeys } from './key_table.ts';
import { nearestName } from './nearest.ts';
import { type Assignment, Problems, Settings } from './settings.ts';
import { canonicalText, checkValue } from './value_check.ts';

export interface DynamicConfigCheck {
  /** Why the settings are refused (INVALID_REQUEST, as in Kafka), or null. */
  readonly error: string | null;
  /** Normalised texts by key. Empty on an error. */
  readonly values: ReadonlyMap<string, string>;
}

/**
 * Checks the overrides that a broker, or with `resourceName` '' all brokers, would have. Those that the request did not
 * touch are let pass: they may have been written by another version. Error texts begin as Kafka's do.
 */
export function checkDynamicConfigs(
  resourceName: string,
  configs: Iterable<{ readonly name: string; readonly value: string | null }>,
  altered: ReadonlySet<string>,
): DynamicConfigCheck {
  const values = new Map<string, string>();
  for (const { name, value } of configs) {
    if (value === null) return refused(`Null value not supported for : ${name}`);
    const key = brokerKeys().get(name);
    if (!altered.has(name)) {
      values.set(name, value);
      continue;
    }
    const error = problemOf(name, key, value, resourceName !== '');
    if (error !== null) return refused(error);
    if (key !== undefined) values.set(name, canonicalText(key, value));
  }
  return { error: null, values };
}

function refused(error: string): DynamicConfigCheck {
  return { error, values: new Map() };
}

function problemOf(
  name: string,
  key: ConfigKey | undefined,
  value: string,
  isPerBroker: boolean,
): string | null {
  if (key === undefined) return unknownKey(name);
  if (key.readOnly)
    return `Cannot update these configs dynamically: [${name}]. Set it in the properties file and restart`;
  if (key.updateScope === 'broker' && /^(ssl|sasl)\./.test(name))
    return `These security configs can be dynamically updated only per-listener using the listener prefix: [${name}]`;
  if (key.updateScope === 'broker' && !isPerBroker)
    return `Cannot update these configs at default cluster level, broker id must be specified: [${name}]`;
  const allowed = checkValue(key, value);
  if (allowed !== null)
    return `Invalid value ${value} for configuration ${name}: allowed: ${allowed}`;
  const text = canonicalText(key, value);
  if (name === 'compression.type' && text !== 'producer')
    return `Invalid value ${value} for configuration ${name}: not supported yet in this version. Allowed: producer`;
  const problems = new Problems();
  readDynamicConfig(new Settings(new Map([[name, { key: name, value, origin: '' }]]), problems));
  return problems.errors[0] ?? null;
}

function unknownKey(name: string): string {
  const listener = /^listener\.name\.[^.]+\.(.+)$/.exec(name)?.[1];
  if (listener !== undefined)
    return `Invalid config ${name}: settings for one listener are not supported yet in this version`;
  const forTopics = topicKeys().get(name)?.synonyms[0]?.name;
  if (forTopics !== undefined)
    return `Unknown broker config name: ${name}. For a broker it is ${forTopics}`;
  const dynamic = [...brokerKeys().values()].filter((key) => !key.readOnly);
  const nearest = nearestName(
    name,
    dynamic.map((key) => key.name),
  );
  return `Unknown broker config name: ${name}${nearest === null ? '' : `. Did you mean ${nearest}?`}`;
}

/** The default text of a setting of brokers whose type is a list; undefined for any other key. */
export function listDefault(resourceType: number, name: string): string | null | undefined {
  const key = (resourceType === ConfigResourceType.topic ? topicKeys() : brokerKeys()).get(name);
  return key?.type === 'list' ? key.defaultText : undefined;
}

/**
 * The configuration with the overrides over it. Those that this version cannot follow are left out; `onIgnored` gets a
 * sentence for people for each.
 */
export function withOverrides(
  start: BrokerConfig,
  image: MetadataImage,
  onIgnored: (problem: string) => void,
): BrokerConfig {
  const read = (resourceName: string): Record<string, string> =>
    usable(image.configs(ConfigResourceType.broker, resourceName), resourceName, onIgnored);
  const cluster = read('');
  const broker = read(String(start.nodeId));
  const merged = { ...start.explicit, ...cluster, ...broker };
  const assignments = new Map<string, Assignment>();
  for (const [key, value] of Object.entries(merged))
    assignments.set(key, { key, value, origin: 'metadata' });
  const settings = new Settings(assignments, new Problems());
  return { ...start, ...readDynamicConfig(settings), overrides: { cluster, broker } };
}

function usable(
  overrides: ReadonlyMap<string, string>,
  resourceName: string,
  onIgnored: (problem: string) => void,
): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [name, value] of overrides) {
    const key = brokerKeys().get(name);
    const problem = problemOf(name, key, value, resourceName !== '');
    if (problem !== null) onIgnored(problem);
    else if (key !== undefined) found[name] = canonicalText(key, value);
  }
  return found;
}

/** Keys among the overrides that are kept and shown, but not acted on: whoever sets one should hear of it. */
export function withoutEffect(names: Iterable<string>): string[] {
  return [...names].filter((name) => {
    const effect = brokerKeys().get(name)?.effect;
    return effect === 'none' || effect === 'later';
  });
}
