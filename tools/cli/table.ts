/** Tables of text: columns as wide as what is in them, numbers to the right. */
import { stripVTControlCharacters } from 'node:util';
import { colour, lineWidth, writeOut } from './terminal.ts';

type Cell = string | number | bigint | null;

const shortestColumn = 8;

/** Null is shown as a dash. On a terminal long texts are shortened so that a row is a line; elsewhere nothing is. */
export function printTable(head: readonly string[], rows: readonly (readonly Cell[])[]): void {
  writeOut(tableText(head, rows, lineWidth(process.stdout)));
}

/** The last column is not padded, so that a long one does not make lines of blanks. */
export function tableText(
  head: readonly string[],
  rows: readonly (readonly Cell[])[],
  room: number = Number.POSITIVE_INFINITY,
): string {
  const texts = rows.map((row) => row.map((cell) => (cell === null ? '-' : String(cell))));
  const isNumeric = head.map((_, column) => {
    const cells = rows.map((row) => row[column] ?? null).filter((cell) => cell !== null);
    return cells.length > 0 && cells.every((cell) => isQuantity(String(cell)));
  });
  const widths = head.map((name, column) =>
    Math.max(name.length, ...texts.map((row) => widthOf(row[column] ?? ''))),
  );
  narrow(widths, isNumeric, room);
  const line = (cells: readonly string[]): string =>
    cells
      .map((whole, column) => {
        const text = shortened(whole, widths[column] ?? 0);
        const blanks = ' '.repeat(Math.max(0, (widths[column] ?? 0) - widthOf(text)));
        if (isNumeric[column] === true) return blanks + text;
        return column === cells.length - 1 ? text : text + blanks;
      })
      .join('  ')
      .trimEnd();
  const heading = colour('bold', line(head.map((name) => name.toUpperCase())));
  return `${[heading, ...texts.map(line)].join('\n')}\n`;
}

/** Takes from whichever text is the widest until the row fits, so that several long ones share what there is. */
function narrow(widths: number[], isNumeric: readonly boolean[], room: number): void {
  const total = widths.reduce((sum, width) => sum + width + 2, -2);
  for (let left = total - room; left > 0; left -= 1) {
    let widest = -1;
    for (const [column, width] of widths.entries())
      if (isNumeric[column] !== true && width > (widths[widest] ?? shortestColumn)) widest = column;
    if (widest < 0) return;
    widths[widest] = (widths[widest] as number) - 1;
  }
}

/** From its middle: what tells names apart is as often at their end as at their beginning. */
function shortened(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  const plain = stripVTControlCharacters(text);
  const tail = (width - 1) >> 1;
  return `${plain.slice(0, width - 1 - tail)}…${plain.slice(plain.length - tail)}`;
}

function widthOf(text: string): number {
  return stripVTControlCharacters(text).length;
}

/** A number with a unit, as `quantity.ts` writes them. */
function isQuantity(text: string): boolean {
  return /^(?:-|-?\d+(?:\.\d+)?(?: ?(?:B|KiB|MiB|GiB|TiB|ms|s|min|h|d|%))?)$/.test(text);
}
