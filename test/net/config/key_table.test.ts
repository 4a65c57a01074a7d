import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { suite } from 'uvu';
import {
  brokerKeys,
  type ConfigKey,
  groupKeys,
  KeyTable,
  topicKeys,
} from '../../../net/config/key_table.ts';

const test = suite('key_table');

/** A line of Kafka 4.4's own tables (test/golden/configs). */
interface KafkaConfig {
  readonly name: string;
  readonly type: string;
  readonly default?: string | number | boolean | null | readonly string[];
  readonly required?: boolean;
  readonly importance: string;
  readonly internal?: boolean;
  readonly updateMode?: string;
  readonly dynamicOnly?: boolean;
  readonly serverDefaultConfigName?: string | null;
  readonly serverSynonyms?: readonly { readonly name: string; readonly unit?: string }[];
  readonly brokerSynonym?: string | null;
  readonly validator?: Validator;
}

interface Range {
  readonly min?: number;
  readonly max?: number;
}

interface Validator extends Range {
  readonly words?: string;
  readonly anyOf?: readonly Range[];
  readonly oneOf?: readonly string[];
  readonly ignoreCase?: boolean;
  readonly eachOneOf?: readonly string[];
  readonly noDuplicates?: boolean;
  readonly emptyAllowed?: boolean;
  readonly notEmpty?: boolean;
}

function kafkaTable(name: string): KafkaConfig[] {
  const path = new URL(`../../golden/configs/${name}_configs.json`, import.meta.url);
  return JSON.parse(readFileSync(path, 'utf8')) as KafkaConfig[];
}

function defaultText(config: KafkaConfig): string | null | undefined {
  if (config.required === true) return undefined;
  const value = config.default;
  if (value === null || value === undefined) return null;
  if (Array.isArray(value)) return value.join(',');
  return value === Number.MAX_VALUE ? '1.7976931348623157E308' : String(value);
}

/** Every default that is not Kafka's, and why. */
const ownDefaults: Readonly<Record<string, string>> = {
  'node.id': 'Kafka demands one; a single node needs none',
  'process.roles': 'Kafka demands them; a node is always both here',
  'controller.listener.names': 'Kafka demands one; this is the usual name',
  listeners: 'loopback until somebody says otherwise: there is no authentication',
  'log.dir': 'a place that survives a reboot',
  'log.retention.hours': '14 days instead of 7',
  'retention.ms': 'the same for topics',
  'max.decompressed.message.bytes': 'a bomb of 2 GiB is no sensible limit',
  'offsets.topic.replication.factor': 'a single node is to work without settings',
  'background.threads': 'a thread costs about 24 MB here',
  'group.share.dlq.manager.class.name': 'names a Java class',
  'group.share.persister.class.name': 'names a Java class',
  'metric.reporters': 'names a Java class',
  'principal.builder.class': 'names a Java class',
  'remote.log.metadata.manager.class.name': 'names a Java class',
  'sasl.oauthbearer.jwt.retriever.class': 'names a Java class',
  'sasl.oauthbearer.jwt.validator.class': 'names a Java class',
  'socket.listen.backlog.size': 'thousands of clients come back at once after a restart',
};

/** What Kafka can change at run time, and Millrace only with a restart. */
const fixedHere: ReadonlySet<string> = new Set(['listeners', 'listener.security.protocol.map']);

test('every key of Kafka is known, with its type, default, importance and scope', () => {
  const updateModes: Record<string, boolean> = {
    'read-only': true,
    'per-broker': false,
    'cluster-wide': false,
  };
  for (const [table, name] of [
    [brokerKeys(), 'broker'],
    [topicKeys(), 'topic'],
    [groupKeys(), 'group'],
  ] as const) {
    const kafka = kafkaTable(name);
    const own = [...table.values()].filter((key) => key.own);
    assert.equal([...table.names()].length - own.length, kafka.length);
    for (const config of kafka) {
      const key = table.get(config.name);
      assert(key !== undefined, config.name);
      assert.deepEqual(
        [key.type, key.kafkaDefault, key.importance, key.internal, key.dynamicOnly, key.readOnly],
        [
          config.type,
          defaultText(config),
          config.importance,
          config.internal ?? false,
          config.dynamicOnly ?? false,
          updateModes[config.updateMode ?? 'cluster-wide'] || fixedHere.has(config.name),
        ],
        config.name,
      );
    }
  }
});

/** Keys that Kafka takes any number for, and what makes sense. */
const tightened: Readonly<Record<string, string>> = {
  'broker.id': '-1..',
  'default.replication.factor': '1..',
  'group.consumer.assignors': 'each of uniform, range; unique; not empty',
  'offsets.topic.replication.factor': '-1; 1..',
  'log.flush.interval.ms': '0..',
  'log.flush.scheduler.interval.ms': '0..',
  'log.retention.bytes': '-1..',
  'log.retention.hours': '-1..',
  'log.retention.minutes': '-1..',
  'log.retention.ms': '-1..',
  'log.roll.jitter.ms': '0..',
  'log.roll.ms': '1..',
  'queued.max.request.bytes': '-1..',
  'retention.bytes': '-1..',
};

function rangeText({ min, max }: Range): string {
  return min === max ? String(min) : `${min ?? ''}..${max ?? ''}`;
}

function constraintText(validator: Validator | undefined): string {
  if (validator === undefined) return '';
  if (validator.words !== undefined) return `words ${validator.words}`;
  const { anyOf, oneOf, eachOneOf } = validator;
  const parts: string[] = [];
  if (validator.min !== undefined || validator.max !== undefined) parts.push(rangeText(validator));
  if (anyOf !== undefined) parts.push(...anyOf.map(rangeText));
  if (oneOf !== undefined) {
    parts.push(`${validator.ignoreCase === true ? 'any case' : 'one'} of ${oneOf.join(', ')}`);
  }
  if (eachOneOf !== undefined) parts.push(`each of ${eachOneOf.join(', ')}`);
  if (validator.noDuplicates === true) parts.push('unique');
  if (validator.emptyAllowed === false || validator.notEmpty === true) parts.push('not empty');
  return parts.join('; ');
}

test('what is allowed is what Kafka allows, but for a few numbers', () => {
  const tables = { broker: brokerKeys(), topic: topicKeys(), group: groupKeys() };
  for (const [name, table] of Object.entries(tables)) {
    for (const config of kafkaTable(name)) {
      const expected = tightened[config.name] ?? constraintText(config.validator);
      assert.equal(table.get(config.name)?.constraint, expected, config.name);
    }
  }
});

test('defaults are those of Kafka but for a listed few', () => {
  const different = new Set<string>();
  for (const table of [brokerKeys(), topicKeys(), groupKeys()]) {
    for (const key of table.values()) {
      if (!key.own && key.defaultText !== key.kafkaDefault) different.add(key.name);
    }
  }
  assert.deepEqual(different, new Set(Object.keys(ownDefaults)));
});

test('a topic key falls back to the broker keys that Kafka names, in its order and units', () => {
  const factors: Record<string, number> = { hours: 3_600_000, minutes: 60_000 };
  for (const config of kafkaTable('topic')) {
    const single = config.serverDefaultConfigName;
    const kafka = config.serverSynonyms ?? (single ? [{ name: single }] : []);
    const expected = kafka.map((synonym) => ({
      name: synonym.name,
      factor: ('unit' in synonym && synonym.unit ? factors[synonym.unit] : undefined) ?? 1,
    }));
    assert.deepEqual(topicKeys().get(config.name)?.synonyms, expected, config.name);
  }
  for (const config of kafkaTable('group')) {
    const names = groupKeys()
      .get(config.name)
      ?.synonyms.map(({ name }) => name);
    assert.deepEqual(names, config.brokerSynonym ? [config.brokerSynonym] : [], config.name);
  }
});

test('a topic default is what its broker keys come to', () => {
  for (const key of topicKeys().values()) {
    const source = key.synonyms
      .map(({ name, factor }) => ({ text: brokerKeys().get(name)?.defaultText ?? null, factor }))
      .find(({ text }) => text !== null);
    if (source === undefined) continue;
    const value = source.factor === 1 ? source.text : String(Number(source.text) * source.factor);
    assert.equal(key.defaultText, value, key.name);
  }
});

test('keys that Millrace acts on are documented, others are not', () => {
  const check = (key: ConfigKey): void => {
    assert.equal(key.documentation !== '', key.effect !== 'none', key.name);
    assert(['on', 'later', 'refused', 'none'].includes(key.effect), key.name);
  };
  for (const table of [brokerKeys(), topicKeys(), groupKeys()]) [...table.values()].forEach(check);
});

test('a table with a repeated name or a missing cell is refused', () => {
  const line = 'a | int low ro | 1 | 0.. |  | on | Text.';
  assert.equal(new KeyTable(`# head\n${line}\n`).get('a')?.defaultText, '1');
  assert.throws(() => new KeyTable(`${line}\n${line}\n`), /a stands twice/);
  assert.throws(() => new KeyTable('a | int low ro | 1\n').get('a'), /not seven cells/);
});

test.run();
