/** Settings of topics, brokers and groups: what they are, where that comes from, and changing them (KIP-339). */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { type AdminOptions, quoted } from './admin_options.ts';
import type { Cluster, Target } from './cluster.ts';
import { brokerError, ClientCode, MillraceError } from './errors.ts';

const resourceTypes = { topic: 2, broker: 4, group: 32 } as const;
export type ConfigResourceType = keyof typeof resourceTypes;

export interface ConfigResource {
  readonly type: ConfigResourceType;
  /** Of a broker its id; '' for what holds for all brokers. */
  readonly name: string;
}

/** Where a value comes from, Kafka's names in lower case. */
const sources: Readonly<Record<number, ConfigSource>> = {
  1: 'topic',
  2: 'broker',
  3: 'cluster',
  4: 'file',
  5: 'default',
  8: 'group',
};
export type ConfigSource =
  | 'topic'
  | 'broker'
  | 'cluster'
  | 'file'
  | 'default'
  | 'group'
  | 'unknown';

export interface ConfigEntry {
  readonly name: string;
  /** Null for a secret, and for what is not set. */
  readonly value: string | null;
  readonly source: ConfigSource;
  readonly isReadOnly: boolean;
  readonly isSensitive: boolean;
  /** What holds when this is not set any more, the nearest one first. */
  readonly synonyms: readonly {
    readonly name: string;
    readonly value: string | null;
    readonly source: ConfigSource;
  }[];
}

export interface ConfigChanges {
  readonly set?: Readonly<Record<string, string>> | undefined;
  /** Back to what holds without it. */
  readonly unset?: readonly string[] | undefined;
  /** To lists. */
  readonly append?: Readonly<Record<string, string>> | undefined;
  readonly subtract?: Readonly<Record<string, string>> | undefined;
}

/** By name. Throws UNKNOWN_TOPIC_OR_PARTITION, INVALID_REQUEST, … */
export async function describeConfig(
  cluster: Cluster,
  resource: ConfigResource,
  options: AdminOptions = {},
): Promise<ConfigEntry[]> {
  const what = `settings of ${resource.type} ${quoted(resource.name)}`;
  const reply = await cluster.request(
    targetOf(resource),
    'DescribeConfigs',
    {
      resources: [
        {
          resourceType: resourceTypes[resource.type],
          resourceName: resource.name,
          configurationKeys: null,
        },
      ],
      includeSynonyms: true,
    },
    options,
  );
  const result = reply.results[0];
  const errorCode = result?.errorCode ?? ErrorCode.UNKNOWN_SERVER_ERROR;
  if (result === undefined || errorCode !== ErrorCode.NONE)
    throw brokerError(errorCode, what, result?.errorMessage, { isRetriable: false });
  return result.configs
    .map(
      ({ name, value, configSource, readOnly, isSensitive, synonyms }): ConfigEntry => ({
        name,
        value,
        source: sourceOf(configSource),
        isReadOnly: readOnly,
        isSensitive,
        synonyms: synonyms.map((one) => ({
          name: one.name,
          value: one.value,
          source: sourceOf(one.source),
        })),
      }),
    )
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

const operations = { set: 0, unset: 1, append: 2, subtract: 3 } as const;

/** All of the changes or none. Throws INVALID_CONFIG, UNKNOWN_TOPIC_OR_PARTITION, … */
export async function alterConfig(
  cluster: Cluster,
  resource: ConfigResource,
  changes: ConfigChanges,
  options: AdminOptions & { readonly validateOnly?: boolean | undefined } = {},
): Promise<void> {
  const { validateOnly = false } = options;
  const what = `changing settings of ${resource.type} ${quoted(resource.name)}`;
  const configs = (['set', 'append', 'subtract'] as const).flatMap((operation) =>
    Object.entries(changes[operation] ?? {}).map(([name, value]) => ({
      name,
      value: value as string | null,
      configOperation: operations[operation] as number,
    })),
  );
  for (const name of changes.unset ?? [])
    configs.push({ name, value: null, configOperation: operations.unset });
  if (configs.length === 0)
    throw new MillraceError(ClientCode.INVALID_ARGUMENT, `${what}: there is nothing to change`);
  const reply = await cluster.request(
    targetOf(resource),
    'IncrementalAlterConfigs',
    {
      resources: [
        { resourceType: resourceTypes[resource.type], resourceName: resource.name, configs },
      ],
      validateOnly,
    },
    { signal: options.signal, timeoutMs: options.timeoutMs, isRepeatable: false },
  );
  const { errorCode = ErrorCode.UNKNOWN_SERVER_ERROR, errorMessage } = reply.responses[0] ?? {};
  if (errorCode !== ErrorCode.NONE)
    throw brokerError(errorCode, what, errorMessage, { isRetriable: false });
}

/** What a broker's own file says, only that broker knows. */
function targetOf({ type, name }: ConfigResource): Target {
  if (type !== 'broker' || name === '') return 'any';
  const id = Number(name);
  if (!Number.isInteger(id) || id < 0)
    throw new MillraceError(
      ClientCode.INVALID_ARGUMENT,
      `broker ${quoted(name)}: a broker's name is its id, a whole number`,
    );
  return id;
}

function sourceOf(source: number): ConfigSource {
  return sources[source] ?? 'unknown';
}
