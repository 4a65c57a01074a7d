/** Lines that are broken between their parts, where a terminal would break them in the middle of a word. */
import { stripVTControlCharacters } from 'node:util';
import { lineWidth } from './terminal.ts';

interface FlowOptions {
  /** Characters of a line; by default those of standard output. */
  readonly room?: number;
  readonly between?: string;
  readonly indent?: string;
}

/**
 * Parts in one line, and where that has no room for all, in as many as it takes: the later ones begin with `indent`.
 *
 * @returns without a line feed at its end
 */
export function flowText(parts: readonly string[], options: FlowOptions = {}): string {
  const { room = lineWidth(process.stdout), between = '  ', indent = '  ' } = options;
  let text = '';
  let used = 0;
  for (const part of parts) {
    const width = stripVTControlCharacters(part).length;
    if (text === '') {
      text = part;
      used = width;
    } else if (used + between.length + width <= room) {
      text += between + part;
      used += between.length + width;
    } else {
      text += `\n${indent}${part}`;
      used = indent.length + width;
    }
  }
  return text;
}

/** Sentences, broken between their words; every line begins with `indent`. */
export function paragraph(
  text: string,
  indent = '',
  stream: NodeJS.WriteStream = process.stdout,
): string {
  const [first = '', ...rest] = text.split(' ');
  return flowText([indent + first, ...rest], { room: lineWidth(stream), between: ' ', indent });
}
