/**
 * Some records of a batch side by side, so that their keys can be looked up together: what the cleaner has to know of
 * each after it has gone over their framing.
 *
 * Thread: the cleaner's. Memory is used again from chunk to chunk.
 */
import { stagedKeysMax } from './offset_map.ts';
import type { RecordCursor } from './record_cursor.ts';

export class RecordChunk {
  count = 0;
  /** Record `k` lies in the bytes from `starts[k]` up to `starts[k + 1]`. */
  readonly starts: Int32Array = new Int32Array(stagedKeysMax + 1);
  readonly keyStarts: Int32Array = new Int32Array(stagedKeysMax);
  /** -1: no key. */
  readonly keyLengths: Int32Array = new Int32Array(stagedKeysMax);
  readonly offsetDeltas: Int32Array = new Int32Array(stagedKeysMax);
  readonly timestampDeltas: Float64Array = new Float64Array(stagedKeysMax);
  /** As `RecordCursor.isWide` and `hasValue`; 0 for false. */
  readonly isWide: Uint8Array = new Uint8Array(stagedKeysMax);
  readonly hasValue: Uint8Array = new Uint8Array(stagedKeysMax);

  /** Takes the next records, as many as there is room for. @throws UnreadableBatchError */
  fill(cursor: RecordCursor): void {
    let at = 0;
    while (at < stagedKeysMax && !cursor.isAtEnd) {
      cursor.next();
      this.starts[at] = cursor.start;
      this.keyStarts[at] = cursor.keyStart;
      this.keyLengths[at] = cursor.keyLength;
      this.offsetDeltas[at] = cursor.offsetDelta;
      this.timestampDeltas[at] = cursor.timestampDelta;
      this.isWide[at] = cursor.isWide ? 1 : 0;
      this.hasValue[at] = cursor.hasValue ? 1 : 0;
      at += 1;
      this.starts[at] = cursor.end;
    }
    this.count = at;
  }
}
