/** What the compilers of decoders and encoders share: how a field looks in one version. */
import assert from 'node:assert/strict';
import { zeroUuid } from './interning.ts';
import {
  type FieldSchema,
  inRange,
  type MessageSchema,
  type ScalarType,
  type StructSchema,
} from './schema.ts';

/** One version of one message. */
export interface Target {
  readonly schema: MessageSchema;
  readonly version: number;
  readonly flexible: boolean;
}

/** Throws a RangeError when the schema does not have `version`. */
export function targetOf(schema: MessageSchema, version: number): Target {
  const { min, max } = schema.versions;
  if (!Number.isInteger(version) || version < min || version > max) {
    throw new RangeError(`${schema.name} has versions ${min} to ${max}, not ${version}`);
  }
  return { schema, version, flexible: inRange(schema.flexible, version) };
}

const fixedSizes: Readonly<Record<string, number>> = {
  bool: 1,
  int8: 1,
  int16: 2,
  uint16: 2,
  int32: 4,
  uint32: 4,
  int64: 8,
  float64: 8,
  uuid: 16,
};

/** Bytes of a value of `type`; 0 when its size varies. */
export function fixedSize(type: ScalarType | 'struct'): number {
  return fixedSizes[type] ?? 0;
}

export function isPresent(target: Target, field: FieldSchema): boolean {
  return inRange(field.versions, target.version);
}

export function isNullable(target: Target, field: FieldSchema): boolean {
  return inRange(field.nullable, target.version);
}

/** True when lengths and counts of the field are uvarints. */
export function isCompact(target: Target, field: FieldSchema): boolean {
  return target.flexible && !field.neverCompact;
}

/** Fields outside the tag section, in order. */
export function plainFields(target: Target, struct: StructSchema): FieldSchema[] {
  return struct.fields.filter((field) => field.tag === null && isPresent(target, field));
}

/** Fields of the tag section, by ascending tag. */
export function taggedFields(target: Target, struct: StructSchema): FieldSchema[] {
  const tagged = struct.fields.filter((field) => field.tag !== null && isPresent(target, field));
  assert(target.flexible || tagged.length === 0, `${struct.name}: tags in a version without them`);
  return tagged.sort((a, b) => (a.tag as number) - (b.tag as number));
}

/** True when a run of such fields can be checked for room once and then read at fixed positions. */
export function isFixed(field: FieldSchema): boolean {
  return !field.isArray && fixedSize(field.type) > 0;
}

/** The least number of bytes that one value (or array element) of the field's type takes. */
export function elementBytesMin(target: Target, field: FieldSchema): number {
  if (field.struct !== null) return structBytesMin(target, field.struct);
  if (fixedSize(field.type) > 0) return fixedSize(field.type);
  if (isCompact(target, field)) return 1;
  return field.type === 'string' ? 2 : 4;
}

/** JavaScript source of the field's default value. Structs and arrays are new objects each time. */
export function defaultSource(field: FieldSchema): string {
  if (field.default === null) return 'null';
  if (field.isArray) return '[]';
  switch (field.type) {
    case 'struct':
      return `{${(field.struct as StructSchema).fields.map((inner) => `${inner.name}: ${defaultSource(inner)}`).join(', ')}}`;
    case 'records':
      return 'null';
    case 'bytes':
      return 'new Uint8Array(0)';
    case 'int64':
      return `${field.default ?? 0}n`;
    case 'string':
      return JSON.stringify(field.default ?? '');
    case 'uuid':
      return JSON.stringify(field.default ?? zeroUuid);
    case 'bool':
      return String(field.default ?? false);
    default:
      return String(field.default ?? 0);
  }
}

/** Name of a field for error texts: "FetchPartition.fetchOffset", or "topics" at the top. */
export function label(target: Target, struct: StructSchema, field: FieldSchema | null): string {
  const name = field === null ? 'tags' : field.name;
  return JSON.stringify(struct === target.schema ? name : `${struct.name}.${name}`);
}

function structBytesMin(target: Target, struct: StructSchema): number {
  let bytes = target.flexible ? 1 : 0;
  for (const field of plainFields(target, struct)) {
    if (field.isArray) bytes += isCompact(target, field) ? 1 : 4;
    else if (field.struct !== null && isNullable(target, field)) bytes += 1;
    else bytes += elementBytesMin(target, field);
  }
  return bytes;
}
