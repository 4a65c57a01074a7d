/** `random(n)` draws an integer from 0 to n - 1. */
export type Random = (bound: number) => number;

/** A small deterministic generator (splitmix32): a failing test prints the seed that repeats it. */
export function splitMix(seed: number): Random {
  let state = seed >>> 0;
  return (bound) => {
    state = (state + 0x9e3779b9) >>> 0;
    let z = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return ((z ^ (z >>> 15)) >>> 0) % bound;
  };
}
