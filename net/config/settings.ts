/**
 * What was set, by whom, and what follows from it. `gather` sorts the assignments of a file and the command line into
 * known and unknown keys; `Settings` hands out checked values and falls back to defaults, so that one pass over the
 * configuration reports everything that is wrong with it.
 */
import { brokerKeys, type ConfigKey, type Synonym, topicKeys } from './key_table.ts';
import { nearestName } from './nearest.ts';
import { canonicalText, checkValue, numberOf, splitList } from './value_check.ts';

/** One `key=value` and where it stands, such as `server.properties:12` or `--set`. */
export interface Assignment {
  readonly key: string;
  readonly value: string;
  readonly origin: string;
}

/** Collects every problem of a configuration, in the order in which they are found. */
export class Problems {
  readonly errors: string[] = [];
  readonly warnings: string[] = [];

  error(text: string): void {
    this.errors.push(text);
  }

  warn(text: string): void {
    this.warnings.push(text);
  }
}

/** Keys of Kafka before 4.0, or of its plugins, that stand in many files. A nearest name would mislead. */
const formerKeys: Readonly<Record<string, string>> = {
  'zookeeper.connect': 'Kafka dropped it in 4.0, Millrace has no ZooKeeper',
  'zookeeper.connection.timeout.ms': 'Kafka dropped it in 4.0, Millrace has no ZooKeeper',
  'zookeeper.session.timeout.ms': 'Kafka dropped it in 4.0, Millrace has no ZooKeeper',
  'inter.broker.protocol.version': 'Kafka dropped it in 4.0',
  'log.message.format.version': 'Kafka dropped it in 4.0',
  'log.message.timestamp.difference.max.ms':
    'Kafka dropped it in 4.0; see log.message.timestamp.before.max.ms and log.message.timestamp.after.max.ms',
  'broker.id.generation.enable': 'Kafka dropped it in 4.0',
  'reserved.broker.max.id': 'Kafka dropped it in 4.0',
  port: 'Kafka dropped it in 3.0; see listeners',
  'host.name': 'Kafka dropped it in 3.0; see listeners',
  'advertised.port': 'Kafka dropped it in 3.0; see advertised.listeners',
  'advertised.host.name': 'Kafka dropped it in 3.0; see advertised.listeners',
};

/** Settings of Kafka's authorizer: whoever sets one expects access control. */
const authorizerKeys: ReadonlySet<string> = new Set([
  'super.users',
  'allow.everyone.if.no.acl.found',
]);

/**
 * Values by key after the rules "the last one wins" and "unknown keys are warnings". Records errors for known keys
 * that are acted on and have a bad value; keys without effect are not checked, but named in one warning.
 */
export function gather(assignments: readonly Assignment[], problems: Problems): Settings {
  const explicit = new Map<string, Assignment>();
  for (const assignment of assignments) {
    const earlier = explicit.get(assignment.key);
    if (earlier !== undefined && earlier.origin !== '--set' && assignment.origin !== '--set') {
      problems.warn(
        `${assignment.key} is set twice (${earlier.origin} and ${assignment.origin}): the last one counts.`,
      );
    }
    explicit.set(assignment.key, assignment);
  }
  for (const assignment of explicit.values()) {
    if (brokerKeys().has(assignment.key)) continue;
    explicit.delete(assignment.key);
    explainUnknown(assignment, problems);
  }
  warnOfKeysWithoutEffect([...explicit.keys()], problems);
  return new Settings(explicit, problems);
}

function warnOfKeysWithoutEffect(names: readonly string[], problems: Problems): void {
  const without = names.filter((name) => ['none', 'later'].includes(known(name).effect));
  const security = without.filter((name) => /^(ssl|sasl)\./.test(name));
  const others = without.filter((name) => !security.includes(name));
  if (others.length > 0) {
    problems.warn(`No effect in this version of Millrace: ${others.join(', ')}.`);
  }
  if (security.length > 0) {
    problems.warn(
      `No TLS and no SASL yet, connections are plain text without authentication. No effect: ${security.join(', ')}.`,
    );
  }
}

function explainUnknown(assignment: Assignment, problems: Problems): void {
  const { key, origin } = assignment;
  if (authorizerKeys.has(key)) {
    problems.error(
      `${key}=${assignment.value} (${origin}): Millrace has no authorization yet. Allowed: leave it out.`,
    );
    return;
  }
  const former = Object.hasOwn(formerKeys, key) ? formerKeys[key] : undefined;
  if (former !== undefined) {
    problems.warn(`${key} (${origin}) has no effect: ${former}.`);
    return;
  }
  const suffix = /^listener\.name\.[^.]+\.(.+)$/.exec(key)?.[1];
  if (suffix !== undefined) {
    problems.warn(
      `${key} (${origin}) has no effect: settings for one listener are not supported yet.`,
    );
    return;
  }
  const synonym = topicKeys().get(key)?.synonyms[0]?.name;
  if (synonym !== undefined) {
    problems.warn(
      `${key} (${origin}) is a setting of topics. For the whole broker it is ${synonym}.`,
    );
    return;
  }
  const nearest = nearestName(key, brokerKeys().names());
  const hint = nearest === null ? '' : ` Did you mean ${nearest}?`;
  problems.warn(`Unknown key ${key} (${origin}) is ignored.${hint}`);
}

export class Settings {
  /** Every known key that was set, with the last value. */
  readonly explicit: ReadonlyMap<string, Assignment>;
  /** Keys that somebody asked for: a test holds it against the table's "on" and "later". */
  readonly asked: Set<string> = new Set();
  readonly problems: Problems;
  readonly #bad = new Set<string>();

  constructor(explicit: ReadonlyMap<string, Assignment>, problems: Problems) {
    this.explicit = explicit;
    this.problems = problems;
    for (const assignment of explicit.values()) this.#check(assignment);
  }

  #check(assignment: Assignment): void {
    const key = known(assignment.key);
    if (key.effect === 'none') return;
    const allowed = checkValue(key, assignment.value);
    if (allowed !== null) this.refuse(key.name, `allowed: ${allowed}`);
  }

  /** Whether the key was set to a value that passed its own check. */
  has(name: string): boolean {
    return this.explicit.has(name) && !this.#bad.has(name);
  }

  /** Records an error for the key, naming its value and where it stands. Once per key: the first reason is enough. */
  refuse(name: string, reason: string): void {
    if (this.#bad.has(name)) return;
    this.#bad.add(name);
    const assignment = this.explicit.get(name);
    const value = assignment?.value.trim() ?? known(name).defaultText ?? '';
    const origin = assignment === undefined ? 'default' : assignment.origin;
    this.problems.error(`${name}=${value} (${origin}): ${reason}.`);
  }

  /** The value as canonical text, or the default where it was not set or is bad; null where there is none. */
  text(name: string): string | null {
    this.asked.add(name);
    const key = known(name);
    const assignment = this.has(name) ? this.explicit.get(name) : undefined;
    return assignment === undefined ? key.defaultText : canonicalText(key, assignment.value);
  }

  /** A number; integers beyond 2^53 lose their last digits. Throws if the key has neither a value nor a default. */
  number(name: string): number {
    return numberOf(this.#required(name));
  }

  boolean(name: string): boolean {
    return this.#required(name) === 'true';
  }

  /** Items of a list; empty where there is neither a value nor a default. */
  list(name: string): string[] {
    return splitList(this.text(name) ?? '');
  }

  /**
   * The value of the first synonym that was set, else of the first that has a default, in the unit of the first one:
   * `log.retention.ms` from `log.retention.hours`. Negative values ("no limit") keep their value.
   */
  textFromSynonyms(synonyms: readonly Synonym[]): string {
    for (const { name } of synonyms) this.asked.add(name);
    const chosen =
      synonyms.find(({ name }) => this.has(name)) ??
      synonyms.find(({ name }) => known(name).defaultText !== null);
    if (chosen === undefined) throw new Error('config table: synonyms without a default');
    return scaled(this.#required(chosen.name), chosen.factor);
  }

  #required(name: string): string {
    const text = this.text(name);
    if (text === null) throw new Error(`config table: no default for ${name}`);
    return text;
  }
}

/** An integer in a larger unit, as text in the smaller one; other texts and negative numbers as they are. */
export function scaled(text: string, factor: number): string {
  return factor === 1 || text.startsWith('-') ? text : String(BigInt(text) * BigInt(factor));
}

function known(name: string): ConfigKey {
  const key = brokerKeys().get(name);
  if (key === undefined) throw new Error(`config table: ${name} is missing`);
  return key;
}
