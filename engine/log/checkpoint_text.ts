/** The text form that all of Kafka's checkpoint files share: version 0, number of entries, one entry a line. */

const version = '0';

export function formatCheckpoint(lines: readonly string[]): Uint8Array {
  return new TextEncoder().encode([version, lines.length, ...lines, ''].join('\n'));
}

/** The entries' lines, or null when the file is cut short or something else. */
export function parseCheckpoint(bytes: Uint8Array): string[] | null {
  const lines = new TextDecoder().decode(bytes).split('\n');
  const count = Number(lines[1]);
  if (lines[0] !== version || !Number.isSafeInteger(count) || count < 0) return null;
  // The line end behind the last entry tells a whole last line from one that was cut.
  if (lines.length !== count + 3 || lines[count + 2] !== '') return null;
  return lines.slice(2, 2 + count);
}
