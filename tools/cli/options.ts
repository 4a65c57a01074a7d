/** Parsers of option arguments that several commands share. */
import { InvalidArgumentError } from 'commander';

export function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const number = Number(text);
    if (text.trim() === '' || !Number.isInteger(number) || number < least || number > most)
      throw new InvalidArgumentError(`Allowed: a whole number from ${least} to ${most}.`);
    return number;
  };
}

/** For options that may be repeated. */
export function collect(text: string, earlier: readonly string[] | undefined): readonly string[] {
  return [...(earlier ?? []), text];
}

/** For settings: `key=value`, may be repeated. */
export function collectPairs(
  text: string,
  earlier: Readonly<Record<string, string>> | undefined,
): Readonly<Record<string, string>> {
  const at = text.indexOf('=');
  if (at < 1) throw new InvalidArgumentError('Allowed: key=value.');
  return { ...earlier, [text.slice(0, at).trim()]: text.slice(at + 1) };
}
