/** From a properties file and `--set key=value` options to a checked configuration, before anything is opened. */
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import {
  type BrokerConfig,
  buildBrokerConfig,
  localSurroundings,
  type Surroundings,
} from './broker_config.ts';
import { PropertiesError, parseProperties } from './properties.ts';
import { type Assignment, gather, Problems } from './settings.ts';

export interface ConfigSource {
  /** Path of a properties file, if there is one. */
  readonly file?: string | undefined;
  /** `key=value` each; they win over the file, and later ones over earlier ones. */
  readonly sets?: readonly string[];
  /** Facts about the machine; those of this one if left out. */
  readonly surroundings?: Surroundings;
}

export interface LoadedConfig {
  /** Null if there are errors. */
  readonly config: BrokerConfig | null;
  /** Everything that is wrong, one sentence each, for people. */
  readonly errors: readonly string[];
  readonly warnings: readonly string[];
}

/** Reads and checks a configuration. Opens nothing but the properties file; never throws for what users can get wrong. */
export function loadBrokerConfig(source: ConfigSource): LoadedConfig {
  const problems = new Problems();
  const assignments = [
    ...(source.file === undefined ? [] : readFile(source.file, problems)),
    ...readSets(source.sets ?? [], problems),
  ];
  const settings = gather(assignments, problems);
  const config = buildBrokerConfig(settings, source.surroundings ?? localSurroundings());
  const { errors, warnings } = problems;
  return { config: errors.length === 0 ? config : null, errors, warnings };
}

function readFile(file: string, problems: Problems): Assignment[] {
  try {
    const name = basename(file);
    return parseProperties(readFileSync(file, 'utf8')).map(({ key, value, line }) => ({
      key,
      value,
      origin: `${name}:${line}`,
    }));
  } catch (error) {
    problems.error(explainUnreadable(file, error));
    return [];
  }
}

function explainUnreadable(file: string, error: unknown): string {
  if (error instanceof PropertiesError) return `${file}, ${error.message}.`;
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'ENOENT') return `--config ${file}: there is no such file.`;
  if (code === 'EACCES') return `--config ${file}: not allowed to read it.`;
  if (code === 'EISDIR') return `--config ${file}: that is a directory, not a file.`;
  return `--config ${file}: ${error instanceof Error ? error.message : String(error)}.`;
}

function readSets(sets: readonly string[], problems: Problems): Assignment[] {
  const assignments: Assignment[] = [];
  for (const text of sets) {
    const at = text.indexOf('=');
    const key = text.slice(0, at).trim();
    if (at < 0 || key === '') problems.error(`--set ${text}: allowed: key=value.`);
    else assignments.push({ key, value: text.slice(at + 1), origin: '--set' });
  }
  return assignments;
}
