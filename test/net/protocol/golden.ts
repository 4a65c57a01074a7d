/** Reads the golden vectors and turns their JSON into the values that codecs give and take. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import type { MessageInputs, MessageName } from '../../../net/protocol/messages.gen.ts';
import {
  type FieldSchema,
  inRange,
  loadSchema,
  type StructSchema,
  schemaDirectory,
} from '../../../net/protocol/schema.ts';

/** version, sample, value as JSON, bytes in hex, and the bytes in hex that a log holds in front of them. */
export type GoldenVector = [
  version: number,
  sample: string,
  json: Json,
  hex: string,
  prefix?: string,
];

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

const goldenDirectory = new URL('../../golden/', import.meta.url);

/** All messages for which there is a schema. */
export function messageNames(): MessageName[] {
  return readdirSync(schemaDirectory)
    .filter((file) => file.endsWith('.json'))
    .map((file) => file.slice(0, -'.json'.length) as MessageName);
}

/** The vectors of `name`. Throws when there are none for one of its versions. */
export function goldenVectors(name: MessageName): GoldenVector[] {
  const text = readFileSync(new URL(`messages/${name}.json`, goldenDirectory), 'utf8');
  const vectors = JSON.parse(text) as GoldenVector[];
  const { min, max } = loadSchema(name).versions;
  for (let version = min; version <= max; version += 1) {
    const some = vectors.some((vector) => vector[0] === version);
    assert(some, `${name} v${version} has no golden vector`);
  }
  return vectors;
}

const firstOwnTag = 10_000;

export type UnknownTagsVector = [name: MessageName, version: number, json: Json, hex: string];

export function unknownTagVectors(): UnknownTagsVector[] {
  const text = readFileSync(new URL('unknown_tags.json', goldenDirectory), 'utf8');
  return JSON.parse(text) as UnknownTagsVector[];
}

/** The value that decoding must give: fields that the version lacks have their defaults. */
export function goldenValue(
  name: MessageName,
  version: number,
  json: Json,
): MessageInputs[MessageName] {
  return structValue(loadSchema(name), version, json) as unknown as MessageInputs[MessageName];
}

export function fromHex(hex: string): Uint8Array {
  return new Uint8Array(Buffer.from(hex, 'hex'));
}

export function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex');
}

function structValue(struct: StructSchema, version: number, json: Json): object {
  const members = json as { [name: string]: Json };
  const names = new Set(Object.keys(members));
  const value: { [name: string]: unknown } = {};
  for (const field of struct.fields) {
    const present = inRange(field.versions, version) && !isOwn(field);
    assert.equal(names.delete(field.name), present, `${struct.name}.${field.name} v${version}`);
    value[field.name] = present
      ? fieldValue(field, version, members[field.name] as Json)
      : defaultValue(field);
  }
  assert.equal(names.size, 0, `${struct.name} v${version}: the schema lacks ${[...names]}`);
  return value;
}

/** Brokers of Millrace tell each other more than Kafka knows, in tagged fields that others skip. */
function isOwn({ tag }: FieldSchema): boolean {
  return tag !== null && tag >= firstOwnTag;
}

function fieldValue(field: FieldSchema, version: number, json: Json): unknown {
  if (json === null) return null;
  if (!field.isArray) return singleValue(field, version, json);
  return (json as Json[]).map((element) => singleValue(field, version, element));
}

function singleValue(field: FieldSchema, version: number, json: Json): unknown {
  if (field.struct !== null) return structValue(field.struct, version, json);
  if (field.type === 'int64') return BigInt(json as string);
  if (field.type === 'bytes' || field.type === 'records') return fromHex(json as string);
  return json;
}

function defaultValue(field: FieldSchema): unknown {
  if (field.default === null || field.type === 'records') return null;
  if (field.isArray) return [];
  if (field.struct !== null) {
    return Object.fromEntries(
      field.struct.fields.map((inner) => [inner.name, defaultValue(inner)]),
    );
  }
  if (field.type === 'int64') return BigInt(field.default ?? 0);
  if (field.type === 'bytes') return new Uint8Array(0);
  if (field.default !== undefined) return field.default;
  if (field.type === 'bool') return false;
  if (field.type === 'string') return '';
  return field.type === 'uuid' ? 'AAAAAAAAAAAAAAAAAAAAAA' : 0;
}
