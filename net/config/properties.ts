/**
 * Java's `.properties` format, as `java.util.Properties.load` reads it (Java SE API specification), except that the
 * file is UTF-8: comments (# or !), continuation lines, escapes, and `=`, `:` or white space after the key.
 */

export interface Property {
  readonly key: string;
  readonly value: string;
  /** Number of the line where the key stands, from 1. */
  readonly line: number;
}

/** A text that is no properties file; the message names the line. */
export class PropertiesError extends Error {
  readonly line: number;

  constructor(line: number, problem: string) {
    super(`line ${line}: ${problem}`);
    this.name = 'PropertiesError';
    this.line = line;
  }
}

/**
 * Parses a whole file. All assignments are returned in order, repeated keys too (in Java the last one wins).
 * Throws `PropertiesError` for a broken \u escape and for a line without a key, which Java takes as the key "".
 */
export function parseProperties(text: string): Property[] {
  const properties: Property[] = [];
  const lines = text.replace(/^\uFEFF/, '').split(/\r\n|\n|\r/);
  for (let index = 0; index < lines.length; index += 1) {
    const line = index + 1;
    let logical = stripIndent(lines[index] as string);
    if (logical === '' || logical.startsWith('#') || logical.startsWith('!')) continue;
    while (endsInOddBackslashes(logical)) {
      index += 1;
      logical = logical.slice(0, -1) + stripIndent(lines[index] ?? '');
      if (index >= lines.length) break;
    }
    if (logical !== '') properties.push(parseLogicalLine(logical, line));
  }
  return properties;
}

function stripIndent(line: string): string {
  return line.replace(/^[ \t\f]+/, '');
}

function endsInOddBackslashes(line: string): boolean {
  let count = 0;
  while (line[line.length - 1 - count] === '\\') count += 1;
  return count % 2 === 1;
}

function parseLogicalLine(text: string, line: number): Property {
  let end = 0;
  while (end < text.length && !/[=: \t\f]/.test(text[end] as string)) {
    end += text[end] === '\\' ? 2 : 1;
  }
  const key = decodeEscapes(text.slice(0, end), line);
  if (key === '') throw new PropertiesError(line, 'no key before the separator');
  const rest = text.slice(end).replace(/^[ \t\f]*[=:]?[ \t\f]*/, '');
  return { key, value: decodeEscapes(rest, line), line };
}

const escapes: Readonly<Record<string, string>> = { t: '\t', n: '\n', r: '\r', f: '\f' };

function decodeEscapes(text: string, line: number): string {
  if (!text.includes('\\')) return text;
  return text.replace(/\\(u[0-9a-fA-F]{0,4}|.|$)/gs, (_, escaped: string) => {
    if (!escaped.startsWith('u')) return escapes[escaped] ?? escaped;
    if (escaped.length !== 5) {
      throw new PropertiesError(
        line,
        `\\${escaped} is no character: \\u takes four hexadecimal digits`,
      );
    }
    return String.fromCharCode(Number.parseInt(escaped.slice(1), 16));
  });
}
