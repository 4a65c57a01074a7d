/** The text form of a log line, and writing lines whole. */

/** A pipe takes writes up to this size whole, however many threads write to it (PIPE_BUF on Linux). */
export const lineBytesMax = 4_096;

/** How long a line may wait for a pipe or terminal that takes nothing, before it is given up. */
const stallMsMax = 200;

/**
 * Writes lines, each with as few writes as the descriptor allows. Never throws: a log that nobody can take any more
 * must not stop the broker. Lines that could not be written are counted, and the count goes out before the next line.
 */
export class LineWriter {
  /** As `fs.writeSync`: writes from an offset, returns the bytes written, may throw EAGAIN. */
  readonly #write: (bytes: Uint8Array, offset: number) => number;
  readonly #encoder = new TextEncoder();
  #lost: number = 0;
  #isMidLine: boolean = false;

  constructor(write: (bytes: Uint8Array, offset: number) => number) {
    this.#write = write;
  }

  write(line: string): void {
    if (this.#lost > 0) {
      const lead = this.#isMidLine ? '\n' : '';
      if (this.#put(`${lead}(${this.#lost} log lines lost: the output was blocked)\n`))
        this.#lost = 0;
    }
    if (this.#lost > 0 || !this.#put(line)) this.#lost += 1;
  }

  /** Waits for the output only as long as nothing has been lost: a blocked output costs the thread one wait, not many. */
  #put(line: string): boolean {
    const bytes = this.#encoder.encode(line);
    let offset = 0;
    let waitedMs = this.#lost > 0 ? stallMsMax : 0;
    while (offset < bytes.length) {
      try {
        offset += this.#write(bytes, offset);
        this.#isMidLine = offset < bytes.length;
      } catch (error) {
        if (!isBusy(error) || waitedMs >= stallMsMax) return false;
        waitedMs += 1;
        pause(1);
      }
    }
    return true;
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EAGAIN';
}

const pauseCell = new Int32Array(new SharedArrayBuffer(4));

function pause(milliseconds: number): void {
  Atomics.wait(pauseCell, 0, 0, milliseconds);
}

/** `2026-11-29 17:52:03.123Z INFO  [shard 0] message key=value`; stacks of errors follow, indented. */
export function textLine(
  timeMs: number,
  level: string,
  thread: string | undefined,
  message: string,
  fields: object | undefined,
): string {
  const time = new Date(timeMs).toISOString().replace('T', ' ');
  let line = `${time} ${level.toUpperCase().padEnd(5)} `;
  if (thread !== undefined) line += `[${thread}] `;
  line += escapeControls(message);
  let stacks = '';
  for (const [name, value] of Object.entries(fields ?? {}) as [string, unknown][]) {
    if (value === undefined) continue;
    if (value instanceof Error) {
      line += ` ${name}=${quoted(value.message)}`;
      stacks += stackLines(value);
    } else line += ` ${name}=${textOf(value)}`;
  }
  return cut(line + stacks);
}

function stackLines(error: Error): string {
  const lines = (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line));
  return lines.map((line) => `\n    ${line.trim()}`).join('');
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return quoted(value);
  if (typeof value === 'object' && value !== null) return quoted(json(value));
  return String(value);
}

function json(value: object): string {
  try {
    return JSON.stringify(value, (_, inner: unknown) =>
      typeof inner === 'bigint' ? String(inner) : inner,
    );
  } catch {
    return String(value);
  }
}

/** Quotes a value that would be hard to tell from what stands around it. */
function quoted(text: string): string {
  if (text !== '' && !/[\s"=]/.test(text)) return escapeControls(text);
  return `"${escapeControls(text).replaceAll('"', '\\"')}"`;
}

/** Nothing that a client sends may begin a line of its own, or reach a terminal as a command. */
function escapeControls(text: string): string {
  if (!/\p{Cc}/u.test(text)) return text;
  return text.replace(/\p{Cc}/gu, (character) => {
    if (character === '\n') return '\\n';
    return `\\x${(character.codePointAt(0) as number).toString(16).padStart(2, '0')}`;
  });
}

/** Ends the line; cuts what would not go through a pipe in one piece. */
function cut(text: string): string {
  if (Buffer.byteLength(text) < lineBytesMax) return `${text}\n`;
  const bytes = Buffer.from(text).subarray(0, lineBytesMax - 8);
  return `${bytes.toString('utf8').replace(/\uFFFD$/, '')} …\n`;
}
