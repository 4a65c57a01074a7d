/** Plain text tables for people: first column left, the others right, two spaces between. */

export function renderTable(
  header: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  const lines = [header, ...rows];
  const widths = header.map((_, column) =>
    Math.max(...lines.map((line) => (line[column] ?? '').length)),
  );
  const render = (line: readonly string[]): string =>
    widths
      .map((width, column) => {
        const cell = line[column] ?? '';
        return column === 0 ? cell.padEnd(width) : cell.padStart(width);
      })
      .join('  ')
      .trimEnd();
  const rule = widths.map((width) => '-'.repeat(width)).join('  ');
  return [render(header), rule, ...rows.map(render)].join('\n');
}

/** Three significant digits, thousands and millions as k and M; '–' for what was not measured. */
export function formatNumber(value: number): string {
  if (!Number.isFinite(value)) return '–';
  const size = Math.abs(value);
  if (size >= 999_500) return `${significant(value / 1e6)} M`;
  if (size >= 10_000) return `${significant(value / 1e3)} k`;
  return significant(value);
}

function significant(value: number): string {
  if (value === 0) return '0';
  const whole = Math.floor(Math.log10(Math.abs(value))) + 1;
  return value.toFixed(Math.max(0, Math.min(3, 3 - whole)));
}
