/**
 * Goes over the keys and values of records without making objects of them: for logs that are read whole when somebody
 * starts to lead them. Timestamps and headers are skipped.
 */
import { BatchFormatError } from './records.ts';

/** Where a record's key and value lie in `bytes`; a length of -1 is null. */
export type VisitKeyValue = (
  bytes: Uint8Array,
  keyAt: number,
  keyLength: number,
  valueAt: number,
  valueLength: number,
) => void;

/** Where the last varint ended. */
let cursor = 0;

/**
 * Visits `count` records, decompressed, that lie in `bytes` from `from` on and end at `to` at the latest.
 *
 * @throws BatchFormatError
 */
export function visitKeyValues(
  bytes: Uint8Array,
  from: number,
  to: number,
  count: number,
  visit: VisitKeyValue,
): void {
  let at = from;
  for (let index = 0; index < count; index += 1) {
    const length = varint(bytes, at);
    const end = cursor + length;
    if (length < 0 || end > to)
      throw new BatchFormatError(`record ${index} of ${count}: a length of ${length}`);
    // The attributes, then the timestamp.
    at = skipVarlong(bytes, cursor + 1);
    varint(bytes, at);
    const keyLength = varint(bytes, cursor);
    const keyAt = cursor;
    const valueLength = varint(bytes, keyAt + Math.max(0, keyLength));
    const valueAt = cursor;
    if (keyLength < -1 || valueLength < -1 || valueAt + Math.max(0, valueLength) > end)
      throw new BatchFormatError(`record ${index} of ${count}: its key or value passes its end`);
    visit(bytes, keyAt, keyLength, valueAt, valueLength);
    at = end;
  }
}

/** A zigzag varint of 32 bits; past the bytes' end it is read as 0, which the caller's checks catch. */
function varint(bytes: Uint8Array, from: number): number {
  let at = from;
  let value = 0;
  for (let shift = 0; shift < 35; shift += 7) {
    const byte = bytes[at] ?? 0;
    at += 1;
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  cursor = at;
  return (value >>> 1) ^ -(value & 1);
}

function skipVarlong(bytes: Uint8Array, from: number): number {
  let at = from;
  while ((bytes[at] ?? 0) >= 0x80) at += 1;
  return at + 1;
}
