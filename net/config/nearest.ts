/** Finding the key that somebody meant: Damerau's edit distance (swaps of neighbours count once). */

/**
 * The candidate nearest to `name`, or null if none is near enough to be meant: at most a third of the letters, and
 * never more than six, may differ. Case does not count.
 */
export function nearestName(name: string, candidates: Iterable<string>): string | null {
  const wanted = name.toLowerCase().slice(0, 200);
  let best: string | null = null;
  let bestDistance = Math.min(6, Math.floor(wanted.length / 3)) + 1;
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - wanted.length) >= bestDistance) continue;
    const distance = editDistance(wanted, candidate.toLowerCase());
    if (distance >= bestDistance) continue;
    best = candidate;
    bestDistance = distance;
  }
  return best;
}

/** Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`. */
export function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last: number[] = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= b.length; column += 1) {
      const same = a[row - 1] === b[column - 1];
      let least = Math.min(
        (last[column] as number) + 1,
        (current[column - 1] as number) + 1,
        (last[column - 1] as number) + (same ? 0 : 1),
      );
      const swapped = a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      if (row > 1 && column > 1 && swapped) {
        least = Math.min(least, (beforeLast[column - 2] as number) + 1);
      }
      current.push(least);
    }
    beforeLast = last;
    last = current;
  }
  return last[b.length] as number;
}
