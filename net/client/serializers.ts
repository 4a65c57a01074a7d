/**
 * From values to bytes and back. A serializer is a function, so that a schema library's own is passed as it is; null stands
 * for no key, or for a tombstone where it is the value.
 */
import { ClientCode, MillraceError } from './errors.ts';

/** Returns null for no bytes at all, which is not the same as none. */
export type Serializer<T> = (value: T) => Uint8Array | null;
/** Called for bytes only: a null key or value is null without asking. */
export type Deserializer<T> = (bytes: Uint8Array) => T;

const encoder = new TextEncoder();

/** UTF-8. */
export const stringSerializer: Serializer<string | null> = (value) =>
  value === null ? null : encoder.encode(value);

/** UTF-8. */
export const stringDeserializer: Deserializer<string> = (bytes) =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');

/** JSON in UTF-8; null and undefined are no bytes. */
export const jsonSerializer: Serializer<unknown> = (value) =>
  value === null || value === undefined ? null : encoder.encode(JSON.stringify(value));

/** JSON in UTF-8. Throws a MillraceError (SERIALIZATION_FAILED) that shows where the text begins. */
export const jsonDeserializer: Deserializer<unknown> = (bytes) => {
  const text = stringDeserializer(bytes);
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    const begin = text.length > 40 ? `${text.slice(0, 40)}…` : text;
    throw new MillraceError(ClientCode.SERIALIZATION_FAILED, `not JSON: ${JSON.stringify(begin)}`, {
      cause,
      remedy: 'Read the topic with the bytes or the string deserializer to see what is in it.',
    });
  }
};

export const bytesSerializer: Serializer<Uint8Array | null> = (value) => value;

/** A view of the received memory, which stays valid: copy it to let go of the rest. */
export const bytesDeserializer: Deserializer<Uint8Array> = (bytes) => bytes;
