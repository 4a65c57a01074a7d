/** How `millrace consume` prints a message. */
import { type ByteFormat, encodedBytes, quotedBytes, utf8Of } from './bytes_text.ts';
import { flowText } from './flow.ts';
import { colour, isInteractive, jsonText } from './terminal.ts';
import { timeText } from './time.ts';

/** What is printed of a message; the consumer's are of this kind. */
export interface PrintableMessage {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  readonly timestampMs: number;
  readonly key: Uint8Array | null;
  readonly value: Uint8Array | null;
  readonly headers: readonly (readonly [name: string, value: Uint8Array | null])[];
}

export type MessagePrinter = (message: PrintableMessage) => string;

export interface PrinterOptions {
  readonly format: ByteFormat;
  readonly output?: string;
  readonly jsonl?: boolean;
  readonly json?: boolean;
  readonly verbose?: boolean;
  readonly keys?: boolean;
  /** Whether people see it at once: then nothing in a message commands the terminal. Default: if it is one. */
  readonly isShown?: boolean;
}

export function printerOf(options: PrinterOptions): MessagePrinter {
  const { format, output, isShown = isInteractive(process.stdout) } = options;
  if (output !== undefined) return templatePrinter(output, format);
  if (options.jsonl === true || options.json === true)
    return (message) => `${jsonText(objectOf(message, format))}\n`;
  if (options.verbose === true) return (message) => verboseText(message, format);
  const text = isShown ? bodyText : plain;
  if (options.keys === true)
    return ({ key, value }) => `${text(key, format)}\t${text(value, format)}\n`;
  return ({ value }) => `${text(value, format)}\n`;
}

/** As it is, for pipes; null is empty. */
function plain(bytes: Uint8Array | null, format: ByteFormat): string {
  return bytes === null ? '' : encodedBytes(bytes, format);
}

function objectOf(message: PrintableMessage, format: ByteFormat): object {
  const { topic, partition, offset, timestampMs, key, value, headers } = message;
  const text = (bytes: Uint8Array | null): string | null =>
    bytes === null ? null : encodedBytes(bytes, format);
  return {
    ...{ topic, partition, offset, timestampMs, key: text(key), value: text(value) },
    headers: headers.map(([name, bytes]) => [name, text(bytes)]),
  };
}

/** Two lines at most, unless the value is long. */
function verboseText(message: PrintableMessage, format: ByteFormat): string {
  const { topic, partition, offset, timestampMs, key, value, headers } = message;
  const place = colour('cyan', `${topic}-${partition} @ ${offset}`);
  const parts = [place, colour('dim', timeText(timestampMs))];
  if (key !== null) parts.push(`key ${quotedBytes(key, format)}`);
  for (const [name, bytes] of headers)
    parts.push(colour('dim', `${name}=${quotedBytes(bytes, format)}`));
  const body = bodyText(value, format).replaceAll('\n', '\n  ');
  return `${flowText(parts, { indent: '    ' })}\n  ${body}\n`;
}

function bodyText(value: Uint8Array | null, format: ByteFormat): string {
  if (value === null) return colour('yellow', 'null');
  if (format !== 'text') return encodedBytes(value, format);
  const text = utf8Of(value);
  // What a terminal would take as commands is shown as text.
  const isPlain = text !== null && !/[\p{Cc}--[\n\t]]/v.test(text);
  return isPlain ? text : quotedBytes(value, format);
}

const escapes: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', '0': '\0' };

/** The notation of kcat's `-f`. */
function templatePrinter(template: string, format: ByteFormat): MessagePrinter {
  const parts: (string | MessagePrinter)[] = [];
  for (const match of template.matchAll(/%(.)|\\(.)|([^%\\]+|[%\\]$)/gs)) {
    const [whole, field, escaped] = match;
    if (field !== undefined) parts.push(fieldPrinter(field, format));
    else if (escaped !== undefined) parts.push(escapes[escaped] ?? escaped);
    else parts.push(whole);
  }
  return (message) =>
    parts.map((part) => (typeof part === 'string' ? part : part(message))).join('');
}

function fieldPrinter(field: string, format: ByteFormat): string | MessagePrinter {
  switch (field) {
    case 't':
      return ({ topic }) => topic;
    case 'p':
      return ({ partition }) => String(partition);
    case 'o':
      return ({ offset }) => String(offset);
    case 'T':
      return ({ timestampMs }) => String(timestampMs);
    case 'k':
      return ({ key }) => plain(key, format);
    case 's':
      return ({ value }) => plain(value, format);
    case 'K':
      return ({ key }) => String(key?.length ?? -1);
    case 'S':
      return ({ value }) => String(value?.length ?? -1);
    case 'h':
      return ({ headers }) =>
        headers.map(([name, bytes]) => `${name}=${plain(bytes, format)}`).join(',');
    case '%':
      return '%';
    default:
      return `%${field}`;
  }
}
