/**
 * What goes to the terminal: results to standard output, everything else to standard error. Colours only where the
 * stream is a terminal and NO_COLOR is not set (no-color.org).
 */

const codes = { red: 31, green: 32, yellow: 33, cyan: 36, bold: 1, dim: 2 } as const;
export type Colour = keyof typeof codes;

export function isInteractive(stream: NodeJS.WriteStream): boolean {
  return stream.isTTY === true && process.env['TERM'] !== 'dumb';
}

/** For standard output. */
export function colour(name: Colour, text: string): string {
  const noColour = process.env['NO_COLOR'] ?? '';
  if (!isInteractive(process.stdout) || noColour !== '') return text;
  return `\u001b[${codes[name]}m${text}\u001b[0m`;
}

export function writeOut(text: string): void {
  process.stdout.write(text);
}

/** For people, beside the result. */
export function say(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** A result for programs: bigints as numbers where they fit, else as strings. */
export function printJson(value: unknown): void {
  process.stdout.write(`${jsonText(value, 2)}\n`);
}

export function jsonText(value: unknown, indent = 0): string {
  return JSON.stringify(
    value,
    (_, one: unknown) => {
      if (typeof one !== 'bigint') return one;
      return Number.isSafeInteger(Number(one)) ? Number(one) : one.toString();
    },
    indent,
  );
}

/** Characters that a line may have: as the terminal has columns, or any number where there is none. */
export function lineWidth(stream: NodeJS.WriteStream): number {
  return isInteractive(stream) ? columns(stream) : Number.POSITIVE_INFINITY;
}

/** Characters in a line of the terminal, 80 where there is none. */
export function columns(stream: NodeJS.WriteStream): number {
  return stream.isTTY === true && stream.columns > 0 ? stream.columns : 80;
}

/** Aborted by Ctrl-C or SIGTERM, for an orderly end; a second one ends the process at once. */
export function interruption(): { readonly signal: AbortSignal; readonly release: () => void } {
  const controller = new AbortController();
  const signals = ['SIGINT', 'SIGTERM'] as const;
  const abort = (): void => {
    release();
    controller.abort();
  };
  const release = (): void => {
    for (const name of signals) process.off(name, abort);
  };
  for (const name of signals) process.on(name, abort);
  return { signal: controller.signal, release };
}
