/** What a process notes in a file while it lives, one JSON object a line; each line is read once. */
import { existsSync, readFileSync } from 'node:fs';

export class NotedLines<T> {
  readonly #path: string;
  readonly #lines: T[] = [];
  #read = 0;

  constructor(path: string) {
    this.#path = path;
  }

  /** All lines so far. The last one of the file may be half written, and is left for the next time. */
  lines(): readonly T[] {
    if (!existsSync(this.#path)) return this.#lines;
    const bytes = readFileSync(this.#path);
    const end = bytes.lastIndexOf(0x0a) + 1;
    const text = bytes.toString('utf8', this.#read, end);
    this.#read = end;
    for (const line of text.split('\n')) if (line !== '') this.#lines.push(JSON.parse(line) as T);
    return this.#lines;
  }
}
