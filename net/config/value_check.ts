/**
 * Checking and normalising configuration values: types as Kafka's ConfigDef reads them from text (surrounding
 * white space never counts, booleans in any case, lists divided by commas), constraints in the notation of the key tables.
 */
import type { ConfigKey } from './key_table.ts';

const integerLimits: Readonly<Record<string, readonly [bigint, bigint]>> = {
  short: [-(2n ** 15n), 2n ** 15n - 1n],
  int: [-(2n ** 31n), 2n ** 31n - 1n],
  long: [-(2n ** 63n), 2n ** 63n - 1n],
};

/**
 * Checks `text` as a value of `key`. Returns null if it is one, otherwise what is allowed, in words that continue
 * "allowed: ".
 */
export function checkValue(key: ConfigKey, text: string): string | null {
  const value = text.trim();
  return isAllowed(key, value) ? null : describeAllowed(key);
}

function isInteger(key: ConfigKey): boolean {
  return key.type in integerLimits;
}

function isAllowed(key: ConfigKey, value: string): boolean {
  if (isInteger(key)) return isAllowedInteger(key, value);
  if (key.type === 'boolean') return /^(true|false)$/i.test(value);
  if (key.type === 'double') return isAllowedDouble(key, value);
  if (key.type === 'list') return isAllowedList(key, splitList(value));
  if (constraints(key).includes('not empty') && value === '') return false;
  return isAllowedWord(key, value);
}

function isAllowedInteger(key: ConfigKey, value: string): boolean {
  if (!/^[+-]?\d{1,25}$/.test(value)) return false;
  const number = BigInt(value.startsWith('+') ? value.slice(1) : value);
  const [least, most] = integerLimits[key.type] as readonly [bigint, bigint];
  if (number < least || number > most) return false;
  const ranges = rangesOf(key);
  return ranges.length === 0 || ranges.some((range) => isInRange(range, number));
}

function isAllowedDouble(key: ConfigKey, value: string): boolean {
  if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(value)) return false;
  const ranges = rangesOf(key);
  return ranges.length === 0 || ranges.some((range) => isInRange(range, Number(value)));
}

function isAllowedList(key: ConfigKey, items: readonly string[]): boolean {
  const rules = constraints(key);
  if (items.includes('')) return false;
  if (rules.includes('unique') && new Set(items).size !== items.length) return false;
  if (rules.includes('not empty') && items.length === 0) return false;
  const known = wordsAfter(key, 'each of ');
  return known === null || items.every((item) => known.includes(item));
}

function isAllowedWord(key: ConfigKey, value: string): boolean {
  const exact = wordsAfter(key, 'one of ');
  if (exact !== null) return exact.includes(value);
  const anyCase = wordsAfter(key, 'any case of ');
  return anyCase === null || anyCase.some((word) => word.toLowerCase() === value.toLowerCase());
}

interface Range {
  readonly least: string;
  readonly most: string;
}

function rangesOf(key: ConfigKey): Range[] {
  const ranges: Range[] = [];
  for (const rule of constraints(key)) {
    const match = /^(-?[\d.]*?\d)?(?:(\.\.)(-?[\d.]*\d)?)?$/.exec(rule);
    if (match === null || rule === '') continue;
    const least = match[1] ?? '';
    ranges.push({ least, most: match[2] === undefined ? least : (match[3] ?? '') });
  }
  return ranges;
}

function isInRange(range: Range, value: bigint | number): boolean {
  const limit = typeof value === 'bigint' ? BigInt : Number;
  if (range.least !== '' && value < limit(range.least)) return false;
  return range.most === '' || value <= limit(range.most);
}

function constraints(key: ConfigKey): readonly string[] {
  return key.constraint.split('; ');
}

function wordsAfter(key: ConfigKey, prefix: string): string[] | null {
  const rule = constraints(key).find((candidate) => candidate.startsWith(prefix));
  return rule === undefined ? null : rule.slice(prefix.length).split(', ');
}

/** What a key takes, in words: "a whole number, at least 1", "one of fsync, os". */
export function describeAllowed(key: ConfigKey): string {
  if (key.constraint.startsWith('words ')) return key.constraint.slice('words '.length);
  if (isInteger(key)) return describeNumber(key, 'a whole number');
  if (key.type === 'double') return describeNumber(key, 'a number');
  if (key.type === 'boolean') return 'true or false';
  const words = wordsAfter(key, 'one of ') ?? wordsAfter(key, 'any case of ');
  if (words !== null) return `one of ${words.join(', ')}`;
  if (key.type !== 'list')
    return constraints(key).includes('not empty') ? 'any text' : 'any text or nothing';
  return describeList(key);
}

function describeList(key: ConfigKey): string {
  const rules = constraints(key);
  const each = wordsAfter(key, 'each of ');
  let text =
    each === null ? 'a comma-separated list' : `a comma-separated list of ${each.join(', ')}`;
  if (rules.includes('unique')) text += ', each once';
  if (rules.includes('not empty')) text += ', at least one';
  return text;
}

function describeNumber(key: ConfigKey, kind: string): string {
  const ranges = rangesOf(key);
  const limits = integerLimits[key.type];
  if (ranges.length === 0) {
    return limits === undefined ? kind : `${kind} from ${limits[0]} to ${limits[1]}`;
  }
  const parts = ranges.map(({ least, most }) => {
    if (least === most) return least;
    if (most !== '') return `from ${least} to ${most}`;
    return limits === undefined ? `at least ${least}` : `from ${least} to ${limits[1]}`;
  });
  const joined = parts.join(', or ');
  return /^from/.test(joined) ? `${kind} ${joined}` : `${kind}: ${joined}`;
}

/** Items of a list value, without white space around them; nothing at all is the empty list. */
export function splitList(text: string): string[] {
  const trimmed = text.trim();
  return trimmed === '' ? [] : trimmed.split(',').map((item) => item.trim());
}

/** The value as Kafka's `ConfigDef.convertToString` prints it after parsing. `text` has passed `checkValue`. */
export function canonicalText(key: ConfigKey, text: string): string {
  const value = text.trim();
  if (key.type === 'boolean') return value.toLowerCase();
  if (key.type === 'list') return splitList(value).join(',');
  return isInteger(key) ? String(BigInt(value.startsWith('+') ? value.slice(1) : value)) : value;
}

/**
 * A checked number as a JavaScript number. Kafka's "for ever" values near 2^63 come out as `Number.MAX_SAFE_INTEGER`,
 * which is for ever enough and exact.
 */
export function numberOf(text: string): number {
  return Math.min(Number(text.trim()), Number.MAX_SAFE_INTEGER);
}
