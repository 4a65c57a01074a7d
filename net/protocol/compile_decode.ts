/**
 * Compiles a decoder of one message in one version: straight-line JavaScript, a function a struct. Runs of fields
 * of fixed size are checked for room once. Every object has all fields of the schema in the same order, so that
 * all versions of a message give objects of one shape.
 */
import assert from 'node:assert/strict';
import {
  defaultSource,
  elementBytesMin,
  fixedSize,
  isCompact,
  isFixed,
  isNullable,
  isPresent,
  label,
  plainFields,
  type Target,
  taggedFields,
} from './compile_shared.ts';
import type { Reader } from './reader.ts';
import type { FieldSchema, StructSchema } from './schema.ts';

export type Decode = (reader: Reader) => unknown;

/** Compiles the decoder of `target`. */
export function compileDecoder(target: Target): Decode {
  return new Function(decoderSource(target))() as Decode;
}

/** The source that `compileDecoder` compiles: the body of a function that returns the decoder. */
function decoderSource(target: Target): string {
  const compiler = new DecodeCompiler(target);
  const name = compiler.structFunction(target.schema);
  const context = JSON.stringify(`${target.schema.name} v${target.version}`);
  return `'use strict';\n${compiler.source()}return (r) => { r.enter(${context}); return ${name}(r); };`;
}

class DecodeCompiler {
  readonly #target: Target;
  readonly #names = new Map<StructSchema, string>();
  readonly #functions: string[] = [];

  constructor(target: Target) {
    this.#target = target;
  }

  source(): string {
    return this.#functions.join('');
  }

  /** The name of the function that decodes `struct`, made on first use. */
  structFunction(struct: StructSchema): string {
    const known = this.#names.get(struct);
    if (known !== undefined) return known;
    const name = `decode${struct.name}`;
    this.#names.set(struct, name);
    const lines = [...this.#absentFields(struct), ...this.#plain(struct), ...this.#tags(struct)];
    const members = struct.fields.map((field) => `${field.name}: ${local(field)}`);
    this.#functions.push(
      `function ${name}(r) {\nconst v = r.view; let n = 0;\n${lines.join('\n')}\nreturn {${members.join(', ')}};\n}\n`,
    );
    return name;
  }

  /** Fields that this version lacks, and tagged ones until they are seen. */
  #absentFields(struct: StructSchema): string[] {
    return struct.fields
      .filter((field) => field.tag !== null || !isPresent(this.#target, field))
      .map((field) => `let ${local(field)} = ${defaultSource(field)};`);
  }

  #plain(struct: StructSchema): string[] {
    const fields = plainFields(this.#target, struct);
    const lines: string[] = [];
    for (let at = 0; at < fields.length; ) {
      const run = fixedRun(fields, at);
      if (run.length > 0) {
        lines.push(...this.#run(struct, run));
        at += run.length;
      } else {
        const field = fields[at] as FieldSchema;
        lines.push(`let ${local(field)};`, ...this.#value(struct, field, false));
        at += 1;
      }
    }
    return lines;
  }

  #run(struct: StructSchema, run: readonly FieldSchema[]): string[] {
    const first = run[0] as FieldSchema;
    const size = run.reduce((sum, field) => sum + fixedSize(field.type), 0);
    const at = `at_${first.name}`;
    const lines = [`const ${at} = r.take(${size}, ${label(this.#target, struct, first)});`];
    let offset = 0;
    for (const field of run) {
      lines.push(`const ${local(field)} = ${fixedValue(field, `${at} + ${offset}`)};`);
      offset += fixedSize(field.type);
    }
    return lines;
  }

  /** Assigns the value of a field of varying size, or of a tagged field, to its local variable. */
  #value(struct: StructSchema, field: FieldSchema, tagged: boolean): string[] {
    const name = local(field);
    const path = label(this.#target, struct, field);
    if (field.isArray) return this.#array(struct, field, path);
    if (field.struct !== null) {
      const call = `${this.structFunction(field.struct)}(r)`;
      if (!isNullable(this.#target, field)) return [`${name} = ${call};`];
      const present = tagged ? `r.uvarint(${path}) !== 0` : `v.getInt8(r.take(1, ${path})) >= 0`;
      return [`${name} = ${present} ? ${call} : null;`];
    }
    if (isFixed(field)) {
      const take = `r.take(${fixedSize(field.type)}, ${path})`;
      return [`${name} = ${fixedValue(field, take)};`];
    }
    return [`${name} = ${this.#sizedValue(field, path, isNullable(this.#target, field))};`];
  }

  /** An expression for a string, bytes or records. */
  #sizedValue(field: FieldSchema, path: string, nullable: boolean): string {
    const isText = field.type === 'string';
    let length = isText ? `r.length16(${path})` : `r.length32(${path})`;
    if (isCompact(this.#target, field))
      length = isText ? `r.compactTextLength(${path})` : `r.compactLength(${path})`;
    const read = { string: 'text', bytes: 'copy', records: 'share' }[field.type as 'string'];
    const onNull = nullable ? 'null' : `r.failNull(${path})`;
    return `(n = ${length}) < 0 ? ${onNull} : r.${read}(n)`;
  }

  #array(struct: StructSchema, field: FieldSchema, path: string): string[] {
    const target = this.#target;
    const least = elementBytesMin(target, field);
    assert(least > 0, `${struct.name}.${field.name}: elements without bytes cannot be bounded`);
    const weight = fixedSize(field.type) > 0 ? 0 : 1;
    const count = isCompact(target, field) ? 'compactCount' : 'count32';
    const name = local(field);
    const onNull = isNullable(target, field) ? `${name} = null;` : `r.failNull(${path});`;
    return [
      `n = r.${count}(${least}, ${weight}, ${path});`,
      `if (n < 0) ${onNull}`,
      'else {',
      `${name} = [];`,
      ...this.#elements(field, path, name),
      '}',
    ];
  }

  #elements(field: FieldSchema, path: string, name: string): string[] {
    const size = fixedSize(field.type);
    if (size > 0) {
      const value = fixedValue(field, 'at');
      return [
        `let at = r.take(n * ${size}, ${path});`,
        `for (; n > 0; n -= 1, at += ${size}) ${name}.push(${value});`,
      ];
    }
    const element =
      field.struct === null
        ? this.#sizedValue(field, path, false)
        : `${this.structFunction(field.struct)}(r)`;
    return [`for (let left = n; left > 0; left -= 1) ${name}.push(${element});`];
  }

  #tags(struct: StructSchema): string[] {
    const target = this.#target;
    if (!target.flexible) return [];
    const path = label(target, struct, null);
    const tagged = taggedFields(target, struct);
    if (tagged.length === 0) return [`r.skipTags(${path});`];
    const cases = tagged.flatMap((field) => [
      `case ${field.tag}: {`,
      ...this.#value(struct, field, true),
      'break; }',
    ]);
    return [
      `for (let left = r.tagCount(${path}); left > 0; left -= 1) {`,
      `const tag = r.uvarint(${path}), end = r.tagEnd(${path});`,
      'switch (tag) {',
      ...cases,
      'default: r.pos = end;',
      '}',
      `if (r.pos !== end) r.failTag(${path}, tag, end);`,
      '}',
    ];
  }
}

/** The longest run of fields of fixed size that starts at `at`. */
function fixedRun(fields: readonly FieldSchema[], at: number): FieldSchema[] {
  let end = at;
  while (end < fields.length && isFixed(fields[end] as FieldSchema)) end += 1;
  return fields.slice(at, end);
}

function local(field: FieldSchema): string {
  return `f_${field.name}`;
}

/** An expression that reads a value of fixed size at the position `at`. */
function fixedValue(field: FieldSchema, at: string): string {
  switch (field.type) {
    case 'bool':
      return `v.getUint8(${at}) !== 0`;
    case 'int8':
      return `v.getInt8(${at})`;
    case 'int16':
      return `v.getInt16(${at})`;
    case 'uint16':
      return `v.getUint16(${at})`;
    case 'int32':
      return `v.getInt32(${at})`;
    case 'uint32':
      return `v.getUint32(${at})`;
    case 'int64':
      return `v.getBigInt64(${at})`;
    case 'float64':
      return `v.getFloat64(${at})`;
    default:
      return `r.uuidAt(${at})`;
  }
}
