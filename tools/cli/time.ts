/** Points in time: as text for people, and from what people write. */

/** Milliseconds since 1970 in UTC; '-' for Kafka's -1, the number itself where no calendar reaches. */
export function timeText(ms: bigint | number): string {
  const number = Number(ms);
  if (number < 0) return '-';
  const date = new Date(number);
  return Number.isNaN(date.getTime()) ? String(ms) : date.toISOString();
}

const unitMs: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** A date as JavaScript reads it, or how long before `nowMs`: 500ms, 30s, 15m, 2h, 7d. Null for anything else. */
export function parseTime(text: string, nowMs: number): number | null {
  const ago = /^-?(\d{1,9})(ms|s|m|h|d)$/.exec(text);
  if (ago !== null) return nowMs - Number(ago[1]) * (unitMs[ago[2] as string] as number);
  if (!/^\d{4}-\d{2}/.test(text)) return null;
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? null : ms;
}
