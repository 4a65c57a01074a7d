/** What a request to a broker is made of, and what comes of it. */
import type { ConnectionOptions as TlsOptions } from 'node:tls';
import type {
  ApiName,
  ExternalRecords,
  MessageInputs,
  MessageTypes,
} from '../protocol/messages.gen.ts';
import type { Encoded } from '../protocol/writer.ts';
import { ClientCode, MillraceError } from './errors.ts';

export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

export interface ConnectionOptions {
  readonly clientId: string;
  /** Until connected and negotiated. */
  readonly connectTimeoutMs: number;
  readonly tls: TlsOptions | null;
}

/** A request's body, or what makes it once the version is known: fields that a version lacks must not be set in it. */
export type RequestBody<N extends ApiName> =
  | MessageInputs[`${N}Request`]
  | ((version: number) => MessageInputs[`${N}Request`]);

/** Records that are written as they are, instead of being copied into the request; they must not change until then. */
export interface HeldRecords extends ExternalRecords {
  readonly bytes: Uint8Array;
}

export interface CallOptions {
  /** Until the answer; then the connection is given up, since what comes later could not be told apart. */
  readonly timeoutMs: number;
  /** Rejects with its reason. The answer is awaited and dropped, unless the request has not been sent yet. */
  readonly signal?: AbortSignal | undefined;
  readonly minVersion?: number | undefined;
  readonly maxVersion?: number | undefined;
}

/** Called once. Exactly one of both is null, but for a request without an answer, where both are. */
export type Done<N extends ApiName> = (
  error: MillraceError | null,
  reply: MessageTypes[`${N}Response`] | null,
) => void;

/** A request whose answer is due. Times by `performance.now()`. */
export interface Pending {
  readonly api: ApiName;
  readonly version: number;
  readonly correlationId: number;
  readonly begunMs: number;
  readonly deadlineMs: number;
  readonly timeoutMs: number;
  /** Of the frame, with the records that it only refers to. */
  readonly requestBytes: number;
  readonly isAnswered: boolean;
  readonly done: Done<ApiName>;
  /** Null once sent. */
  frame: Encoded | null;
}

export function byteLengthOf({ bytes, holes }: Encoded): number {
  return holes.reduce((sum, { value }) => sum + value.byteLength, bytes.byteLength);
}

/** What did not leave this process can be sent again without a second thought. */
export function unsentError(why: MillraceError): MillraceError {
  if (why.code === ClientCode.CLOSED) return why;
  return new MillraceError(ClientCode.BROKER_UNREACHABLE, why.message, {
    cause: why,
    remedy: why.remedy,
  });
}

export function bodyOf<N extends ApiName>(
  body: RequestBody<N>,
  version: number,
): MessageInputs[`${N}Request`] {
  return typeof body === 'function' ? body(version) : body;
}
