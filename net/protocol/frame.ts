/**
 * Frames: int32 size, header, body. Requests carry header 1 or 2, responses header 0 or 1; the second of each has
 * a tag section (KIP-482).
 */
import { apiInfo, requestHeaderVersion, responseHeaderVersion } from './apis.ts';
import { codecFor } from './codec.ts';
import type { ApiName, MessageInputs, MessageTypes } from './messages.gen.ts';
import type { Reader } from './reader.ts';
import { type Encoded, Writer } from './writer.ts';

export interface RequestHeader {
  readonly apiKey: number;
  readonly apiVersion: number;
  readonly correlationId: number;
  readonly clientId: string | null;
}

/** One writer a thread: frames stay valid after it, since it never writes into a finished one. */
const writer: Writer = new Writer();

/**
 * Reads a request's header, `reader` being behind the frame's size, and leaves the position at the body. The API
 * and version need not be known to us: refusing them is the caller's. Throws a ProtocolError when it is malformed.
 */
export function decodeRequestHeader(reader: Reader): RequestHeader {
  reader.enter('RequestHeader');
  const at = reader.take(8, 'apiKey');
  const apiKey = reader.view.getInt16(at);
  const apiVersion = reader.view.getInt16(at + 2);
  const correlationId = reader.view.getInt32(at + 4);
  const length = reader.length16('clientId');
  const clientId = length < 0 ? null : reader.text(length);
  if (requestHeaderVersion(apiKey, apiVersion) === 2) reader.skipTags('tags');
  return { apiKey, apiVersion, correlationId, clientId };
}

/**
 * A whole response, with its size. The size counts the holes, which the transport fills. Throws when `value`
 * cannot be said in `apiVersion`, and nothing of it is kept.
 */
export function encodeResponseFrame<N extends ApiName>(
  apiKey: number,
  apiVersion: number,
  correlationId: number,
  name: `${N}Response`,
  value: MessageInputs[`${N}Response`],
): Encoded {
  if (apiInfo(apiKey)?.responseName !== name) throw new Error(`${name} for API key ${apiKey}`);
  try {
    const tagged = responseHeaderVersion(apiKey, apiVersion);
    const at = writer.reserve(8 + tagged);
    writer.view.setInt32(at + 4, correlationId);
    if (tagged === 1) writer.view.setUint8(at + 8, 0);
    codecFor(name, apiVersion).encode(writer, value);
    return finishFrame();
  } catch (error) {
    writer.abandon();
    throw error;
  }
}

/** A whole request, with its size; for peers, the client and tests. Throws as `encodeResponseFrame` does. */
export function encodeRequestFrame<N extends ApiName>(
  header: RequestHeader,
  name: `${N}Request`,
  value: MessageInputs[`${N}Request`],
): Encoded {
  const { apiKey, apiVersion, correlationId, clientId } = header;
  if (apiInfo(apiKey)?.requestName !== name) throw new Error(`${name} for API key ${apiKey}`);
  try {
    writer.reserve(4);
    codecFor('RequestHeader', requestHeaderVersion(apiKey, apiVersion)).encode(writer, {
      requestApiKey: apiKey,
      requestApiVersion: apiVersion,
      correlationId,
      clientId,
    });
    codecFor(name, apiVersion).encode(writer, value);
    return finishFrame();
  } catch (error) {
    writer.abandon();
    throw error;
  }
}

/**
 * Reads a whole response, `reader` being behind the frame's size. Throws a ProtocolError when it is malformed or
 * when bytes are left over.
 */
export function decodeResponse<N extends ApiName>(
  reader: Reader,
  apiKey: number,
  apiVersion: number,
  name: `${N}Response`,
): { correlationId: number; value: MessageTypes[`${N}Response`] } {
  reader.enter('ResponseHeader');
  const correlationId = reader.view.getInt32(reader.take(4, 'correlationId'));
  if (responseHeaderVersion(apiKey, apiVersion) === 1) reader.skipTags('tags');
  const value = codecFor(name, apiVersion).decode(reader);
  if (reader.remaining !== 0) reader.fail('end', `${reader.remaining} bytes are left over`);
  return { correlationId, value };
}

function finishFrame(): Encoded {
  const size = writer.length - 4 + writer.externalBytes;
  if (size > 0x7fffffff) throw new Error(`a frame of ${size} bytes; the limit is 2 GiB`);
  writer.view.setInt32(writer.start, size);
  return writer.finish();
}
