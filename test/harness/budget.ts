/**
 * How many seeds or inputs a randomised test runs: as many as it usually does, or more if `npm run sim -- --seeds N` asks
 * for them.
 */
export function seedsAtLeast(usual: number): number {
  const wanted = Number(process.env['MILLRACE_SEEDS'] ?? 0);
  if (!Number.isSafeInteger(wanted)) throw new Error('MILLRACE_SEEDS is not a whole number');
  return Math.max(usual, wanted);
}
