/**
 * Codecs of all messages, compiled from their schemas at first use.
 *
 * A codec of one message in one version is straight-line JavaScript made with `new Function`: no interpretation of
 * the schema, no closures per field, no branches on the version. The static types are generated and erased. The
 * alternative, generated code in files, was measured: the same code for all 742 message versions is 2.6 MB of
 * source against 170 KB of schemas; loading it took each thread 65 to 115 ms (23 ms with a warm compile cache),
 * 2.4 MB of heap and 13 MB of resident memory, where a broker speaks some fifteen APIs in two or three versions.
 * Compiling costs about half a millisecond a codec at its first use (reading its schema, writing the source and
 * parsing it, a third each; 5 to 10 ms for 16 request decoders) and 40 KB of heap for both messages of an API; a
 * thread that never speaks pays nothing. An interpreter of schemas would need neither, but it pays for the schema's
 * branches and megamorphic stores with every field of every request.
 *
 * Speed on a busy machine of 2 virtual cores (AMD EPYC), header and body of a request: ProduceRequest v9 and v13
 * 0.3 to 0.45 µs with one partition, 0.7 to 1 µs with six; FetchRequest v12 to v18 0.2 to 0.3 µs and 0.3 to 0.45 µs.
 * Whole response frames: ProduceResponse 0.3 to 0.6 µs, FetchResponse 0.3 to 0.7 µs, record data left as holes.
 */
import type { Decode } from './compile_decode.ts';
import { compileDecoder } from './compile_decode.ts';
import type { Encode } from './compile_encode.ts';
import { compileEncoder } from './compile_encode.ts';
import { type Target, targetOf } from './compile_shared.ts';
import type { MessageInputs, MessageName, MessageTypes } from './messages.gen.ts';
import type { Reader } from './reader.ts';
import { loadSchema, type VersionRange } from './schema.ts';
import type { Writer } from './writer.ts';

/** Decodes to `T` and encodes from `I`. */
export interface Codec<T, I = T> {
  /** True when this version has compact encodings and tag sections. */
  readonly flexible: boolean;
  /**
   * Reads one message from `reader.pos` and leaves the position behind it. `records` share the frame's memory, all
   * else is copied. Throws a ProtocolError when the bytes are not a message.
   */
  decode(reader: Reader): T;
  /** Appends one message. Throws an Error when `value` cannot be said in this version. */
  encode(writer: Writer, value: I): void;
}

const codecs = new Map<string, (LazyCodec | undefined)[]>();

/** The codec of `name` in `version`; cached. Throws a RangeError when the message does not have that version. */
export function codecFor<N extends MessageName>(
  name: N,
  version: number,
): Codec<MessageTypes[N], MessageInputs[N]> {
  let versions = codecs.get(name);
  if (versions === undefined) {
    versions = [];
    codecs.set(name, versions);
  }
  let codec = versions[version];
  if (codec === undefined) {
    codec = new LazyCodec(targetOf(loadSchema(name), version));
    versions[version] = codec;
  }
  return codec as Codec<MessageTypes[N], MessageInputs[N]>;
}

/** The versions of `name` for which there are codecs. */
export function versionsOf(name: MessageName): VersionRange {
  return loadSchema(name).versions;
}

/** Compiles each direction when it is first used: a broker decodes requests and encodes responses only. */
class LazyCodec implements Codec<unknown> {
  readonly flexible: boolean;
  readonly #target: Target;
  #decode: Decode | null = null;
  #encode: Encode | null = null;

  constructor(target: Target) {
    this.flexible = target.flexible;
    this.#target = target;
  }

  decode(reader: Reader): unknown {
    this.#decode ??= compileDecoder(this.#target);
    return this.#decode(reader);
  }

  encode(writer: Writer, value: unknown): void {
    this.#encode ??= compileEncoder(this.#target);
    this.#encode(writer, value);
  }
}
