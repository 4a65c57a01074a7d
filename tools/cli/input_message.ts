/** From a line of text to a message. */
import type { ProducerMessage } from '../../net/client/client.ts';
import type { InputFormat, ProduceOptions } from '../commands/produce.ts';
import { CommandError } from './connect.ts';

type InputOptions = Pick<
  ProduceOptions,
  'key' | 'keySeparator' | 'header' | 'format' | 'jsonl' | 'partition' | 'nullEmpty'
>;

/** @param line counted from 1, for what is said when it is wrong. Throws CommandError. */
export function messageOf(
  topic: string,
  text: string,
  line: number,
  options: InputOptions,
): ProducerMessage {
  if (options.jsonl === true) return fromObject(topic, text, line, options);
  const { keySeparator, format } = options;
  let key = options.key ?? null;
  let value = text;
  if (keySeparator !== undefined && keySeparator !== '') {
    const at = text.indexOf(keySeparator);
    if (at < 0)
      throw new CommandError(
        `line ${line}: there is no ${JSON.stringify(keySeparator)} in ${shown(text)}.`,
        'Every line must have a key in front of the separator, or leave --key-separator out.',
      );
    key = text.slice(0, at);
    value = text.slice(at + keySeparator.length);
  }
  return {
    ...{ topic, headers: options.header ?? [], partition: options.partition },
    key: key === null ? null : bytesOf(key, format === 'json' ? 'text' : format, line),
    value: options.nullEmpty === true && value === '' ? null : bytesOf(value, format, line),
  };
}

function bytesOf(text: string, format: InputFormat, line: number): string | Uint8Array {
  switch (format) {
    case 'text':
      return text;
    case 'json':
      parseJson(text, line);
      return text;
    case 'hex':
      if (!/^(?:[0-9a-fA-F]{2})*$/.test(text))
        throw new CommandError(`line ${line}: ${shown(text)} is no sequence of hex digits.`);
      return Buffer.from(text, 'hex');
    case 'base64':
      if (!/^[A-Za-z0-9+/_-]*={0,2}$/.test(text))
        throw new CommandError(`line ${line}: ${shown(text)} is not base64.`);
      return Buffer.from(text, 'base64');
  }
}

/** What `consume --jsonl` writes, and less. */
interface MessageObject {
  readonly key?: unknown;
  readonly value?: unknown;
  readonly headers?: unknown;
  readonly partition?: unknown;
  readonly timestampMs?: unknown;
}

function fromObject(
  topic: string,
  text: string,
  line: number,
  options: InputOptions,
): ProducerMessage {
  const parsed = parseJson(text, line);
  if (
    typeof parsed !== 'object' ||
    parsed === null ||
    Array.isArray(parsed) ||
    !('value' in parsed)
  )
    throw new CommandError(
      `line ${line}: ${shown(text)} is no object with a "value".`,
      'With --jsonl a line is an object such as {"key": "a", "value": "b"}.',
    );
  const { key, value, headers, partition, timestampMs } = parsed as MessageObject;
  return {
    topic,
    key: key === undefined ? (options.key ?? null) : fieldOf(key, options.format, line),
    value: fieldOf(value, options.format, line),
    headers: [...(options.header ?? []), ...headersOf(headers, options.format, line)],
    partition: numberOf('partition', partition, line) ?? options.partition,
    timestampMs: numberOf('timestampMs', timestampMs, line),
  };
}

/** Text is taken as it is written; other JSON as its text. */
function fieldOf(value: unknown, format: InputFormat, line: number): string | Uint8Array | null {
  if (value === null || value === undefined) return null;
  if (typeof value !== 'string') return JSON.stringify(value);
  return format === 'json' ? value : bytesOf(value, format, line);
}

function headersOf(
  headers: unknown,
  format: InputFormat,
  line: number,
): (readonly [string, string | Uint8Array | null])[] {
  if (headers === undefined || headers === null) return [];
  const entries: unknown[] = Array.isArray(headers)
    ? headers
    : typeof headers === 'object'
      ? Object.entries(headers)
      : [null];
  return entries.map((entry) => {
    if (!Array.isArray(entry) || typeof entry[0] !== 'string')
      throw new CommandError(`line ${line}: headers are an object, or a list of [name, value].`);
    return [entry[0], fieldOf(entry[1], format, line)];
  });
}

function numberOf(name: string, value: unknown, line: number): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0) return value;
  throw new CommandError(`line ${line}: ${name} is ${JSON.stringify(value)}, and no whole number.`);
}

function parseJson(text: string, line: number): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new CommandError(
      `line ${line} is not JSON: ${why}.`,
      `The line is ${shown(text)}. Nothing after it was sent.`,
    );
  }
}

function shown(text: string): string {
  const quoted = JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text);
  return text.includes('"') ? `'${quoted.slice(1, -1).replaceAll('\\"', '"')}'` : quoted;
}
