/** Headers of a record, from what users write to bytes. */
import { varintBytes, writeVarint } from '../../engine/batch/varint.ts';
import { noHeaderBytes } from './record_batch.ts';

/** Text is written as UTF-8. */
export type HeaderValue = string | Uint8Array | null;
/** By name, or a list, where a name may come twice. */
export type Headers =
  | Readonly<Record<string, HeaderValue>>
  | Iterable<readonly [string, HeaderValue]>;

const encoder = new TextEncoder();

/** Their count and themselves, as they stand in a record. */
export function encodeHeaders(headers: Headers | undefined): Uint8Array {
  if (headers === undefined) return noHeaderBytes;
  const list = Symbol.iterator in headers ? [...headers] : Object.entries(headers);
  if (list.length === 0) return noHeaderBytes;
  const fields: (Uint8Array | null)[] = [];
  let length = varintBytes(list.length);
  for (const [name, value] of list) {
    const bytes = typeof value === 'string' ? encoder.encode(value) : value;
    for (const field of [encoder.encode(name), bytes]) {
      fields.push(field);
      length += field === null ? 1 : varintBytes(field.length) + field.length;
    }
  }
  const out = new Uint8Array(length);
  let at = writeVarint(out, 0, list.length);
  for (const field of fields) {
    at = writeVarint(out, at, field?.length ?? -1);
    if (field === null) continue;
    out.set(field, at);
    at += field.length;
  }
  return out;
}
