/** What happened in a simulated cluster, for people: kept only in the run that is made to be looked at. */
const linesMax = 20_000;

export class Trace {
  readonly #lines: string[] = [];
  readonly isOn: boolean;
  readonly #now: () => number;

  /** @param now virtual time in milliseconds */
  constructor(isOn: boolean, now: () => number) {
    this.isOn = isOn;
    this.#now = now;
  }

  /** @param who a node, a client, or the world; `what` is called only when the trace is kept */
  add(who: string, what: () => string): void {
    if (!this.isOn) return;
    this.#lines.push(`${this.#now().toFixed(0).padStart(7)} ms  ${who.padEnd(9)} ${what()}`);
    if (this.#lines.length > 2 * linesMax) this.#lines.splice(0, linesMax);
  }

  /** The last so many lines that speak of one of the words; all lines, if there are no words. */
  last(count: number, words: readonly string[] = []): string[] {
    const relevant =
      words.length === 0
        ? this.#lines
        : this.#lines.filter((line) => words.some((word) => line.includes(word)));
    return relevant.slice(-count);
  }
}
