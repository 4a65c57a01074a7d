/** Order statistics over the rounds of one measurement. */

/** The middle value, or the mean of the two middle ones. NaN for no values. */
export function median(values: readonly number[]): number {
  if (values.length === 0) return Number.NaN;
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle]!;
  return sorted.length % 2 === 1 ? upper : (sorted[middle - 1]! + upper) / 2;
}

/** The noise: (largest − smallest) / median, in per cent. NaN for fewer than two values or a median of 0. */
export function spreadPercent(values: readonly number[]): number {
  const middle = median(values);
  if (values.length < 2 || middle === 0) return Number.NaN;
  return ((Math.max(...values) - Math.min(...values)) / middle) * 100;
}

/** One value of a round; `key` names the round, the same for all brokers measured in it. */
export interface RoundValue {
  key: string;
  value: number;
}

/**
 * The median of the ratios `value / base` of the rounds that both have: what a round's neighbours on the
 * machine do to one side they mostly do to the other side too. NaN when no round has both.
 */
export function medianRatio(values: readonly RoundValue[], bases: readonly RoundValue[]): number {
  const byKey = new Map(bases.map((base) => [base.key, base.value]));
  const ratios: number[] = [];
  for (const { key, value } of values) {
    const base = byKey.get(key);
    if (base !== undefined && base !== 0) ratios.push(value / base);
  }
  return median(ratios);
}
