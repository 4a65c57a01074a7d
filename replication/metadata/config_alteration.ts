/**
 * What altering the settings of a topic or of brokers means (KIP-226, KIP-339): which records, or why not. A pure function
 * of image and request. Each resource is changed as a whole or not at all, and what results is checked as a whole.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type {
  AlterConfigsResult,
  ConfigChange,
  ConfigEntry,
  ConfigsToAlter,
} from './controller_api.ts';
import type { MetadataImage } from './image.ts';
import { type ConfigRecord, ConfigResourceType } from './records.ts';

/** Kafka's `AlterConfigOp.OpType`. */
export const ConfigOperation = { set: 0, delete: 1, append: 2, subtract: 3 } as const;

/** In UTF-16 units; Kafka's controller takes values up to the largest int16. */
export const configValueLengthMax = 32_767;

/**
 * Checks all overrides of a resource together. `error` says for people why they are refused, or is null; `values` are
 * the texts to be stored, in their normal form.
 */
export interface ConfigCheck {
  readonly error: string | null;
  readonly values: ReadonlyMap<string, string>;
}

export interface ConfigRules {
  /** `altered`: what the request changes, null for all; the others stand already, perhaps from another version's time. */
  readonly checkTopicConfigs: (
    configs: readonly ConfigEntry[],
    altered: ReadonlySet<string> | null,
  ) => ConfigCheck;
  /** Overrides of one broker, or with `resourceName` '' of all brokers. */
  readonly checkBrokerConfigs: (
    resourceName: string,
    configs: readonly ConfigEntry[],
    altered: ReadonlySet<string>,
  ) => ConfigCheck;
  /** The default text of a key whose type is a list, null where it has none; undefined for any other key. */
  readonly listDefault: (resourceType: number, name: string) => string | null | undefined;
}

export interface AlterationPlan {
  readonly result: AlterConfigsResult['resources'][number];
  /** Empty when `result` is an error, or when nothing changes. */
  readonly records: readonly ConfigRecord[];
}

interface Problem {
  readonly errorCode: Exclude<ErrorCode, 0>;
  readonly errorMessage: string;
}

/** Plans one resource. The caller has made sure that no key is altered twice and that only deletions have no value. */
export function planAlteration(
  image: MetadataImage,
  asked: ConfigsToAlter,
  rules: ConfigRules,
): AlterationPlan {
  const { resourceType, resourceName } = asked;
  const current = image.configs(resourceType, resourceName);
  const wanted = wantedValues(current, asked, rules);
  if ('errorCode' in wanted) return refuseAlteration(asked, wanted);
  const altered = new Set(asked.changes.map(({ name }) => name));
  const checked = check(image, asked, wanted, altered, rules);
  if ('errorCode' in checked) return refuseAlteration(asked, checked);
  const records: ConfigRecord[] = [];
  const record = (name: string, value: string | null): void => {
    records.push({ type: 'ConfigRecord', resourceType, resourceName, name, value });
  };
  for (const [name, value] of wanted) {
    // What was not asked for stays as it is written, also when an older version wrote it otherwise.
    const text = altered.has(name) ? (checked.get(name) ?? value) : value;
    if (current.get(name) !== text) record(name, text);
  }
  for (const name of current.keys()) if (!wanted.has(name)) record(name, null);
  return {
    result: { resourceType, resourceName, errorCode: ErrorCode.NONE, errorMessage: null },
    records,
  };
}

function wantedValues(
  current: ReadonlyMap<string, string>,
  { resourceType, replacesAll, changes }: ConfigsToAlter,
  rules: ConfigRules,
): Map<string, string> | Problem {
  const wanted = new Map(replacesAll ? [] : current);
  for (const change of changes) {
    const { name, operation, value } = change;
    if (value !== null && value.length > configValueLengthMax)
      return invalid(`The value of ${name} is longer than ${configValueLengthMax}.`);
    if (operation === ConfigOperation.delete) wanted.delete(name);
    else if (operation === ConfigOperation.set) wanted.set(name, value ?? '');
    else {
      const initial = rules.listDefault(resourceType, name);
      if (initial === undefined) {
        const verb = operation === ConfigOperation.append ? 'APPEND' : 'SUBTRACT';
        return invalid(`Can't ${verb} to key ${name} because its type is not LIST.`);
      }
      wanted.set(name, changedList(current.get(name) ?? initial ?? '', change));
    }
  }
  return wanted;
}

/** An item that is there is not appended again; one that is not there needs no taking away. */
function changedList(text: string, { operation, value }: ConfigChange): string {
  const items = itemsOf(text);
  for (const item of itemsOf(value ?? '')) {
    const at = items.indexOf(item);
    if (operation === ConfigOperation.append) {
      if (at === -1) items.push(item);
    } else if (at !== -1) items.splice(at, 1);
  }
  return items.join(',');
}

function itemsOf(text: string): string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

function check(
  image: MetadataImage,
  { resourceType, resourceName }: ConfigsToAlter,
  wanted: ReadonlyMap<string, string>,
  altered: ReadonlySet<string>,
  rules: ConfigRules,
): ReadonlyMap<string, string> | Problem {
  const entries = [...wanted].map(([name, value]) => ({ name, value }));
  if (resourceType === ConfigResourceType.topic) {
    const { error, values } = rules.checkTopicConfigs(entries, altered);
    if (error !== null) return invalid(error);
    if (image.topic(resourceName) !== undefined) return values;
    return {
      errorCode: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
      errorMessage: `The topic '${resourceName}' does not exist.`,
    };
  }
  const { error, values } = rules.checkBrokerConfigs(resourceName, entries, altered);
  // Kafka's code for a setting of brokers that is not allowed (KAFKA-13609).
  if (error !== null) return { errorCode: ErrorCode.INVALID_REQUEST, errorMessage: error };
  if (resourceName === '' || image.broker(Number(resourceName)) !== undefined) return values;
  return {
    errorCode: ErrorCode.BROKER_ID_NOT_REGISTERED,
    errorMessage: `No broker with id ${resourceName} found.`,
  };
}

function invalid(errorMessage: string): Problem {
  return { errorCode: ErrorCode.INVALID_CONFIG, errorMessage };
}

export function refuseAlteration(
  { resourceType, resourceName }: ConfigsToAlter,
  problem: Problem,
): AlterationPlan {
  return { result: { resourceType, resourceName, ...problem }, records: [] };
}
