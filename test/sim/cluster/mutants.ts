/** Rules that a simulated cluster can be told to break: each must be noticed. */
export const mutants = [
  'high watermark ahead of the ISR',
  'skipped flush',
  'no epoch check',
  'early ISR expansion',
  'stale broker epoch',
  'vote not persisted',
  'truncation to the high watermark',
  'fetch before the flush',
  'formation without all voters',
] as const;

export type Mutant = (typeof mutants)[number];

/** Takes a name as people type it: `skipped-flush`. @throws Error that lists the names */
export function mutantOf(name: string): Mutant {
  const wanted = name.replaceAll('-', ' ').toLowerCase();
  const found = mutants.find((mutant) => mutant.toLowerCase() === wanted);
  if (found === undefined)
    throw new Error(`no mutant "${name}"; there are: ${mutants.map(dashed).join(', ')}`);
  return found;
}

export function dashed(mutant: Mutant): string {
  return mutant.replaceAll(' ', '-');
}
