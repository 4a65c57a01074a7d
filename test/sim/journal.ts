/**
 * The form in which a recording disk writes down what it did: entries of uint32 size of the description, uint32 size of
 * the data, the description as JSON, the data.
 *
 * Entries are numbered by one counter in shared memory, so that threads that record into files of their own can be put
 * in order, and anyone who holds the counter can say "seen when N entries had been begun".
 */
import fs from 'node:fs';

export type JournalEntry =
  | { readonly op: 'open'; readonly fd: number; readonly path: string; readonly create: boolean }
  | { readonly op: 'close'; readonly fd: number }
  | { readonly op: 'write'; readonly fd: number; readonly position: number }
  | { readonly op: 'truncate'; readonly fd: number; readonly size: number }
  | { readonly op: 'rename'; readonly from: string; readonly to: string }
  | { readonly op: 'unlink'; readonly path: string }
  | { readonly op: 'mkdir'; readonly path: string }
  | { readonly op: 'flush'; readonly id: string; readonly what: FlushTarget }
  | { readonly op: 'flushed'; readonly id: string };

/** One file (by descriptor), one directory's names, or everything. */
export type FlushTarget =
  | { readonly fd: number }
  | { readonly directory: string }
  | { readonly everything: true };

export interface NumberedEntry {
  readonly number: number;
  readonly entry: JournalEntry;
  readonly data: Uint8Array;
}

const noData = new Uint8Array(0);
const headBytes = 8;

/** Memory for the counter: one for all threads of the broker under test. */
export function newJournalCounter(): Int32Array {
  return new Int32Array(new SharedArrayBuffer(4));
}

/** The journal's position: entries with lower numbers had been begun. */
export function journalPosition(counter: Int32Array): number {
  return Atomics.load(counter, 0);
}

export class JournalWriter {
  readonly #fd: number;
  readonly #counter: Int32Array;

  constructor(path: string, counter: Int32Array) {
    this.#fd = fs.openSync(path, 'w');
    this.#counter = counter;
  }

  add(entry: JournalEntry, data: Uint8Array = noData): void {
    const number = Atomics.add(this.#counter, 0, 1);
    const text = Buffer.from(JSON.stringify({ number, entry }));
    const head = Buffer.alloc(headBytes);
    head.writeUInt32BE(text.length, 0);
    head.writeUInt32BE(data.length, 4);
    fs.writevSync(this.#fd, data.length === 0 ? [head, text] : [head, text, data]);
  }

  close(): void {
    fs.closeSync(this.#fd);
  }
}

/** All entries of the files, in order. The last one of a file may be cut short by a kill, and is left out then. */
export function readJournals(paths: readonly string[]): NumberedEntry[] {
  const all: NumberedEntry[] = [];
  for (const path of paths) {
    const bytes = fs.readFileSync(path);
    let at = 0;
    while (at + headBytes <= bytes.length) {
      const textEnd = at + headBytes + bytes.readUInt32BE(at);
      const end = textEnd + bytes.readUInt32BE(at + 4);
      if (end > bytes.length) break;
      const { number, entry } = JSON.parse(
        bytes.toString('utf8', at + headBytes, textEnd),
      ) as NumberedEntry;
      all.push({ number, entry, data: bytes.subarray(textEnd, end) });
      at = end;
    }
  }
  return all.sort((a, b) => a.number - b.number);
}
