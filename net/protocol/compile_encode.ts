/**
 * Compiles an encoder of one message in one version: straight-line JavaScript, a function a struct. Members that
 * are undefined are taken at their default, so that callers name only what they set.
 */
import assert from 'node:assert/strict';
import {
  defaultSource,
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
import type { FieldSchema, StructSchema } from './schema.ts';
import type { Writer } from './writer.ts';

export type Encode = (writer: Writer, value: unknown) => void;

/** Compiles the encoder of `target`. */
export function compileEncoder(target: Target): Encode {
  return new Function(encoderSource(target))() as Encode;
}

/** The source that `compileEncoder` compiles: the body of a function that returns the encoder. */
function encoderSource(target: Target): string {
  const compiler = new EncodeCompiler(target);
  const name = compiler.structFunction(target.schema);
  const context = JSON.stringify(`${target.schema.name} v${target.version}`);
  return `'use strict';\n${compiler.source()}return (w, m) => { w.enter(${context}); ${name}(w, m); };`;
}

class EncodeCompiler {
  readonly #target: Target;
  readonly #encoders = new Map<StructSchema, string>();
  readonly #comparers = new Map<StructSchema, string>();
  readonly #functions: string[] = [];

  constructor(target: Target) {
    this.#target = target;
  }

  source(): string {
    return this.#functions.join('');
  }

  /** The name of the function that encodes `struct`, made on first use. */
  structFunction(struct: StructSchema): string {
    const known = this.#encoders.get(struct);
    if (known !== undefined) return known;
    const name = `encode${struct.name}`;
    this.#encoders.set(struct, name);
    const lines = [...this.#absentFields(struct), ...this.#plain(struct), ...this.#tags(struct)];
    this.#functions.push(
      `function ${name}(w, m) {\nlet p = 0, v = w.view;\n${lines.join('\n')}\n}\n`,
    );
    return name;
  }

  /** A value that this version cannot carry is an error, unless the schema says that it may be dropped. */
  #absentFields(struct: StructSchema): string[] {
    return struct.fields
      .filter((field) => !isPresent(this.#target, field) && !field.ignorable)
      .map((field) => {
        const value = `m.${field.name}`;
        const path = label(this.#target, struct, field);
        const isDefault = this.#isDefault(field, value);
        return `if (${value} !== undefined && !${isDefault}) w.failAbsent(${path});`;
      });
  }

  #plain(struct: StructSchema): string[] {
    const fields = plainFields(this.#target, struct);
    const lines: string[] = [];
    let run: FieldSchema[] = [];
    for (const field of fields) {
      if (isFixed(field)) {
        run.push(field);
        continue;
      }
      lines.push(...fixedRun(run, false));
      run = [];
      lines.push(memberLine(field), ...this.#value(struct, field, false));
    }
    const endsWithoutTags =
      this.#target.flexible && taggedFields(this.#target, struct).length === 0;
    lines.push(...fixedRun(run, endsWithoutTags));
    return lines;
  }

  /** Writes the local variable of a field of varying size, or of a tagged field. */
  #value(struct: StructSchema, field: FieldSchema, tagged: boolean): string[] {
    const name = local(field);
    const path = label(this.#target, struct, field);
    const nullable = isNullable(this.#target, field);
    if (isFixed(field)) {
      const size = fixedSize(field.type);
      return [`p = w.reserve(${size}); v = w.view;`, `${fixedStore(field, 'p', name)};`];
    }
    let written: string[];
    if (field.isArray) written = this.#array(field, name);
    else if (field.struct !== null) {
      const prefix = tagged ? 'w.uvarint(1); ' : 'w.int8(1); ';
      written = [`${nullable ? prefix : ''}${this.structFunction(field.struct)}(w, ${name});`];
    } else written = [`${this.#sizedStore(field, name)};`];
    const onNull = nullable ? this.#nullStore(field, tagged) : `w.failNull(${path})`;
    return [`if (${name} === null) ${onNull};`, 'else {', ...written, '}'];
  }

  #nullStore(field: FieldSchema, tagged: boolean): string {
    if (!field.isArray && field.struct !== null) return tagged ? 'w.uvarint(0)' : 'w.int8(-1)';
    if (isCompact(this.#target, field)) return 'w.int8(0)';
    return field.type === 'string' && !field.isArray ? 'w.int16(-1)' : 'w.int32(-1)';
  }

  #sizedStore(field: FieldSchema, value: string): string {
    const compact = isCompact(this.#target, field);
    switch (field.type) {
      case 'string':
        return compact ? `w.compactText(${value})` : `w.text16(${value})`;
      case 'bytes':
        return compact ? `w.compactBytes(${value})` : `w.bytes32(${value})`;
      default:
        return compact ? `w.compactRecords(${value})` : `w.records32(${value})`;
    }
  }

  #array(field: FieldSchema, name: string): string[] {
    const count = isCompact(this.#target, field)
      ? `w.uvarint(${name}.length + 1);`
      : `w.int32(${name}.length);`;
    const size = fixedSize(field.type);
    if (size > 0) {
      return [
        count,
        `p = w.reserve(${name}.length * ${size}); v = w.view;`,
        `for (let i = 0; i < ${name}.length; i += 1, p += ${size}) ${fixedStore(field, 'p', `${name}[i]`)};`,
      ];
    }
    const element =
      field.struct === null
        ? this.#sizedStore(field, `${name}[i]`)
        : `${this.structFunction(field.struct)}(w, ${name}[i])`;
    return [count, `for (let i = 0; i < ${name}.length; i += 1) ${element};`];
  }

  #tags(struct: StructSchema): string[] {
    const target = this.#target;
    if (!target.flexible) return [];
    const tagged = taggedFields(target, struct);
    if (tagged.length === 0) {
      const last = plainFields(target, struct).at(-1);
      return last !== undefined && isFixed(last) ? [] : ['w.int8(0);'];
    }
    const isSet = tagged.map((field) => {
      const value = `m.${field.name}`;
      const isDefault = this.#isDefault(field, value);
      return `const set_${field.name} = ${value} === undefined || ${isDefault} ? 0 : 1;`;
    });
    const written = tagged.flatMap((field) => this.#tag(struct, field));
    const count = tagged.map((field) => `set_${field.name}`).join(' + ');
    return [...isSet, `w.uvarint(${count});`, ...written];
  }

  #tag(struct: StructSchema, field: FieldSchema): string[] {
    assert(!containsRecords(field), `${field.name}: holes cannot be moved, so no records in tags`);
    const value = [`const ${local(field)} = m.${field.name};`, ...this.#value(struct, field, true)];
    const lines = isFixed(field)
      ? [`w.uvarint(${field.tag}); w.uvarint(${fixedSize(field.type)});`, ...value]
      : [`const begin = w.beginTag(${field.tag});`, ...value, 'w.endTag(begin);'];
    return [`if (set_${field.name} !== 0) {`, ...lines, '}'];
  }

  /** An expression that is true when `value`, which is not undefined, is the default of the field. */
  #isDefault(field: FieldSchema, value: string): string {
    if (field.default === null || field.type === 'records') return `(${value} === null)`;
    if (field.isArray || field.type === 'bytes') {
      return `(${value} !== null && ${value}.length === 0)`;
    }
    if (field.struct !== null) {
      return `(${value} !== null && ${this.#comparer(field.struct)}(${value}))`;
    }
    const equals = field.type === 'int64' ? '==' : '===';
    return `(${value} ${equals} ${defaultSource(field)})`;
  }

  /** The name of a function that tells whether all members of a struct are at their defaults. */
  #comparer(struct: StructSchema): string {
    const known = this.#comparers.get(struct);
    if (known !== undefined) return known;
    const name = `isDefault${struct.name}`;
    this.#comparers.set(struct, name);
    const tests = struct.fields.map((field) => {
      const value = `m.${field.name}`;
      return `(${value} === undefined || ${this.#isDefault(field, value)})`;
    });
    this.#functions.push(`function ${name}(m) { return ${tests.join(' && ')}; }\n`);
    return name;
  }
}

function local(field: FieldSchema): string {
  return `f_${field.name}`;
}

/** Reads the member, with its default where it is undefined. */
function memberLine(field: FieldSchema): string {
  const name = local(field);
  return `let ${name} = m.${field.name}; if (${name} === undefined) ${name} = ${defaultSource(field)};`;
}

/** A run of fields of fixed size, and the empty tag section behind it, in one reservation. */
function fixedRun(run: readonly FieldSchema[], withEmptyTags: boolean): string[] {
  if (run.length === 0) return [];
  const stores: string[] = [];
  let size = 0;
  for (const field of run) {
    stores.push(`${fixedStore(field, `p + ${size}`, local(field))};`);
    size += fixedSize(field.type);
  }
  if (withEmptyTags) {
    stores.push(`v.setUint8(p + ${size}, 0);`);
    size += 1;
  }
  return [...run.map(memberLine), `p = w.reserve(${size}); v = w.view;`, ...stores];
}

function fixedStore(field: FieldSchema, at: string, value: string): string {
  switch (field.type) {
    case 'bool':
      return `v.setUint8(${at}, ${value} ? 1 : 0)`;
    case 'int8':
      return `v.setInt8(${at}, ${value})`;
    case 'int16':
      return `v.setInt16(${at}, ${value})`;
    case 'uint16':
      return `v.setUint16(${at}, ${value})`;
    case 'int32':
      return `v.setInt32(${at}, ${value})`;
    case 'uint32':
      return `v.setUint32(${at}, ${value})`;
    case 'int64':
      return `w.int64At(${at}, ${value})`;
    case 'float64':
      return `v.setFloat64(${at}, ${value})`;
    default:
      return `w.uuidAt(${at}, ${value})`;
  }
}

function containsRecords(field: FieldSchema): boolean {
  return field.type === 'records' || (field.struct?.fields.some(containsRecords) ?? false);
}
