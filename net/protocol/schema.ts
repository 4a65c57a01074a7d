/**
 * The message schemas: one JSON file a message under `schema/`, in a compact form of Kafka's own definitions.
 *
 * A file holds `name`, `type` (request, response, header, data, metadata, coordinator-key, coordinator-value),
 * `apiKey` (for records that are stored: the record type, unique within their `module`), `versions`, `flexible`
 * (versions with compact encodings and tag sections), `fields`, and `structs` (named structs used more than once).
 * A field holds `name`, `type`, `versions`, and where they apply `nullable`, `tag` (it stands in the tag section in
 * all its versions), `default` (int64 as a decimal string), `ignorable` (dropped silently in versions without it),
 * `flexible` (overrides the message's) and `fields` of an inline struct. Version ranges are "3+", "2-5", "4" or
 * "none".
 *
 * Files are read on first use, so that a process pays only for the messages it speaks.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

/** Types that are one value on the wire; structs and arrays are made of them. */
export type ScalarType =
  | 'bool'
  | 'int8'
  | 'int16'
  | 'int32'
  | 'int64'
  | 'uint16'
  | 'uint32'
  | 'float64'
  | 'uuid'
  | 'string'
  | 'bytes'
  | 'records';

/** Inclusive on both ends. Invariant: `min > max` for "none". */
export interface VersionRange {
  readonly min: number;
  readonly max: number;
}

export interface FieldSchema {
  readonly name: string;
  /** Type of the field, or of its elements when `isArray`. */
  readonly type: ScalarType | 'struct';
  readonly isArray: boolean;
  /** Set exactly when `type` is 'struct'. */
  readonly struct: StructSchema | null;
  readonly versions: VersionRange;
  readonly nullable: VersionRange;
  readonly tag: number | null;
  /** Undefined where the schema names none: 0, false, "", no bytes, the zero uuid, an empty array; null for records. */
  readonly default: string | number | boolean | null | undefined;
  readonly ignorable: boolean;
  /** Strings and bytes of this field keep the old length prefix in flexible versions too (RequestHeader.clientId). */
  readonly neverCompact: boolean;
}

export interface StructSchema {
  readonly name: string;
  readonly fields: readonly FieldSchema[];
}

export interface MessageSchema extends StructSchema {
  readonly type: string;
  readonly apiKey: number | null;
  /** Which log holds such records; empty for messages that are not stored. */
  readonly module: string;
  readonly versions: VersionRange;
  readonly flexible: VersionRange;
  /** Named structs, in the order of the file; inline ones are reached through the fields. */
  readonly sharedStructs: readonly StructSchema[];
}

interface RawField {
  name: string;
  type: string;
  versions: string;
  nullable?: string;
  tag?: number;
  default?: string | number | boolean | null;
  ignorable?: boolean;
  flexible?: string;
  fields?: RawField[];
}

interface RawMessage {
  name: string;
  type: string;
  apiKey?: number;
  module?: string;
  versions: string;
  flexible: string;
  structs?: { name: string; fields: RawField[] }[];
  fields: RawField[];
}

export const schemaDirectory: URL = new URL('./schema/', import.meta.url);

const scalarTypes: ReadonlySet<string> = new Set<ScalarType>([
  'bool',
  'int8',
  'int16',
  'int32',
  'int64',
  'uint16',
  'uint32',
  'float64',
  'uuid',
  'string',
  'bytes',
  'records',
]);

const loaded = new Map<string, MessageSchema>();

/** The schema of `name`, read from its file on first use. Throws when there is no such message. */
export function loadSchema(name: string): MessageSchema {
  let schema = loaded.get(name);
  if (schema === undefined) {
    schema = parseSchema(readFileSync(new URL(`${name}.json`, schemaDirectory), 'utf8'));
    loaded.set(name, schema);
  }
  return schema;
}

/** Parses the text of a schema file. Throws on a form that this module does not know. */
function parseSchema(text: string): MessageSchema {
  const raw = JSON.parse(text) as RawMessage;
  const structs = new Map<string, StructSchema>();
  for (const { name, fields } of raw.structs ?? []) {
    structs.set(name, { name, fields: fields.map((field) => parseField(field, structs)) });
  }
  return {
    name: raw.name,
    type: raw.type,
    apiKey: raw.apiKey ?? null,
    module: raw.module ?? '',
    versions: parseRange(raw.versions),
    flexible: parseRange(raw.flexible),
    fields: raw.fields.map((field) => parseField(field, structs)),
    sharedStructs: [...structs.values()],
  };
}

/** True when `version` lies in `range`. */
export function inRange(range: VersionRange, version: number): boolean {
  return version >= range.min && version <= range.max;
}

function parseField(raw: RawField, structs: ReadonlyMap<string, StructSchema>): FieldSchema {
  const isArray = raw.type.startsWith('[]');
  const typeName = isArray ? raw.type.slice(2) : raw.type;
  let struct: StructSchema | null = null;
  if (!scalarTypes.has(typeName)) {
    struct =
      raw.fields === undefined
        ? (structs.get(typeName) ?? null)
        : { name: typeName, fields: raw.fields.map((field) => parseField(field, structs)) };
    assert(struct !== null, `field ${raw.name}: struct ${typeName} is not defined before its use`);
  }
  return {
    name: raw.name,
    type: struct === null ? (typeName as ScalarType) : 'struct',
    isArray,
    struct,
    versions: parseRange(raw.versions),
    nullable: raw.nullable === undefined ? parseRange('none') : parseRange(raw.nullable),
    tag: raw.tag ?? null,
    default: raw.default,
    ignorable: raw.ignorable ?? false,
    neverCompact: raw.flexible === 'none',
  };
}

function parseRange(text: string): VersionRange {
  if (text === 'none') return { min: 1, max: 0 };
  const match = /^(\d+)(?:(\+)|-(\d+))?$/.exec(text);
  assert(match !== null, `version range ${text} is not of the form 3+, 2-5, 4 or none`);
  const min = Number(match[1]);
  if (match[2] !== undefined) return { min, max: Number.MAX_SAFE_INTEGER };
  return { min, max: match[3] === undefined ? min : Number(match[3]) };
}
