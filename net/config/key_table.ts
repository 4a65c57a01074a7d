/**
 * The known configuration keys, read from the tables beside this file: names, types, defaults, what is allowed,
 * and whether Millrace acts on them. Read at first use and kept; a thread that asks for none pays for none.
 */
import { readFileSync } from 'node:fs';

export type ConfigTypeName =
  | 'boolean'
  | 'string'
  | 'int'
  | 'short'
  | 'long'
  | 'double'
  | 'list'
  | 'class'
  | 'password';

/** Where the value of a key comes from when it is not set itself: that key's value times `factor`. */
export interface Synonym {
  readonly name: string;
  readonly factor: number;
}

export interface ConfigKey {
  readonly name: string;
  readonly type: ConfigTypeName;
  readonly importance: 'high' | 'medium' | 'low';
  /** False if it can change while the broker runs. Topic and group keys are never read-only. */
  readonly readOnly: boolean;
  /** Who can get a value at run time: a single broker only, or all brokers together as well; null: nobody. */
  readonly updateScope: 'broker' | 'cluster' | null;
  /** Kafka's own internal keys are not shown unless somebody sets them. */
  readonly internal: boolean;
  /** Kafka takes it from its metadata only, never from a properties file. */
  readonly dynamicOnly: boolean;
  /** True for keys that Kafka does not have. */
  readonly own: boolean;
  /** Kafka's default as text; null for none; undefined where Kafka demands a value. */
  readonly kafkaDefault: string | null | undefined;
  /** Millrace's default as text, null for none. */
  readonly defaultText: string | null;
  /** Constraint in the table's own notation, see `value_check.ts`. */
  readonly constraint: string;
  readonly synonyms: readonly Synonym[];
  /** `on`: acted on. `later`: kept and shown. `refused`: only the default is allowed. `none`: known to Kafka alone. */
  readonly effect: 'on' | 'later' | 'refused' | 'none';
  readonly documentation: string;
}

/** The keys of one table. Lines are parsed when somebody asks for them: a start with few settings needs few. */
export class KeyTable {
  readonly #lines = new Map<string, string>();
  readonly #keys = new Map<string, ConfigKey>();

  /** Reads the notation that the head of each table explains. Throws if a name stands twice. */
  constructor(text: string) {
    for (const line of text.split('\n')) {
      if (line === '' || line.startsWith('#')) continue;
      const name = line.slice(0, line.indexOf(' |'));
      if (this.#lines.has(name)) throw new Error(`config table: ${name} stands twice`);
      this.#lines.set(name, line);
    }
  }

  has(name: string): boolean {
    return this.#lines.has(name);
  }

  /** Undefined for an unknown name. Throws if its line does not follow the notation. */
  get(name: string): ConfigKey | undefined {
    const known = this.#keys.get(name);
    if (known !== undefined) return known;
    const line = this.#lines.get(name);
    if (line === undefined) return undefined;
    const key = parseLine(line);
    this.#keys.set(name, key);
    return key;
  }

  /** All names, sorted. */
  names(): Iterable<string> {
    return this.#lines.keys();
  }

  /** All keys, sorted by name. */
  *values(): Iterable<ConfigKey> {
    for (const name of this.#lines.keys()) yield this.get(name) as ConfigKey;
  }
}

const loaded = new Map<string, KeyTable>();

/** Keys of the broker: `server.properties` and `--set`. */
export function brokerKeys(): KeyTable {
  return table('broker');
}

/** Keys of a topic: CreateTopics, DescribeConfigs. */
export function topicKeys(): KeyTable {
  return table('topic');
}

/** Keys of a group: DescribeConfigs. */
export function groupKeys(): KeyTable {
  return table('group');
}

function table(name: string): KeyTable {
  let keys = loaded.get(name);
  if (keys === undefined) {
    const path = new URL(`./tables/${name}.keys`, import.meta.url);
    keys = new KeyTable(readFileSync(path, 'utf8'));
    loaded.set(name, keys);
  }
  return keys;
}

function parseLine(line: string): ConfigKey {
  const cells = line.split('|').map((cell) => cell.trim());
  const [name, meta, defaults, constraint, synonyms, effect, documentation] = cells;
  if (name === undefined || meta === undefined || defaults === undefined || cells.length !== 7) {
    throw new Error(`config table: not seven cells: ${line}`);
  }
  const words = meta.split(' ');
  const [kafka, own] = defaults.split(' => ');
  const kafkaDefault = parseDefault(kafka);
  return {
    name,
    type: words[0] as ConfigTypeName,
    importance: words[1] as ConfigKey['importance'],
    readOnly: words.includes('ro'),
    updateScope: words.includes('broker') ? 'broker' : words.includes('cluster') ? 'cluster' : null,
    internal: words.includes('internal'),
    dynamicOnly: words.includes('dynamic'),
    own: words.includes('own'),
    kafkaDefault,
    defaultText: (own === undefined ? kafkaDefault : parseDefault(own)) ?? null,
    constraint: constraint ?? '',
    synonyms: parseSynonyms(synonyms ?? ''),
    effect: effect === '-' ? 'none' : (effect as ConfigKey['effect']),
    documentation: documentation ?? '',
  };
}

function parseDefault(text: string | undefined): string | null | undefined {
  if (text === '!') return undefined;
  if (text === '~') return null;
  return text === '""' ? '' : (text ?? '');
}

const noSynonyms: readonly Synonym[] = [];

function parseSynonyms(text: string): readonly Synonym[] {
  if (text === '') return noSynonyms;
  return text.split(' ').map((item) => {
    const [name = '', factor] = item.split('*');
    return { name, factor: factor === undefined ? 1 : Number(factor) };
  });
}
