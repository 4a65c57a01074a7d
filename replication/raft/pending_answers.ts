/** Who waits for what, by number. Each is answered once, or never. Thread: its caller's. */
export class PendingAnswers<T> {
  readonly #waiting = new Map<number, (answer: T) => void>();
  #lastId = 0;

  /** @returns the number that the answer has */
  add(done: (answer: T) => void): number {
    this.#lastId += 1;
    this.#waiting.set(this.#lastId, done);
    return this.#lastId;
  }

  answer(id: number, answer: T): void {
    const done = this.#waiting.get(id);
    this.#waiting.delete(id);
    done?.(answer);
  }
}
