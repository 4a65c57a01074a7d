/**
 * One request on its way through a handler: also the slot that keeps its place among the connection's answers.
 *
 * Thread: the shard's own. A context is answered exactly once, by one of `respond`, `respondRaw`,
 * `respondNothing` and `fail`, now or later; after the connection has died an answer is dropped silently, so
 * that handlers need not ask.
 */
import assert from 'node:assert/strict';
import { encodeResponseFrame, type RequestHeader } from '../protocol/frame.ts';
import type { ApiName, MessageInputs } from '../protocol/messages.gen.ts';
import type { Reader } from '../protocol/reader.ts';
import type { Encoded } from '../protocol/writer.ts';
import type { RangeHole } from './file_range.ts';
import type { RequestFrame } from './request_frame.ts';

/** What a handler may know of the connection. */
export interface ConnectionInfo {
  /** Unique within the process. */
  readonly id: number;
  /** Name of the listener that it came in by. */
  readonly listener: string;
  readonly remoteAddress: string;
  readonly remotePort: number;
}

/** The connection, as its contexts see it. */
export interface ContextOwner extends ConnectionInfo {
  onAnswered(context: RequestContext): void;
  onFailed(context: RequestContext, reason: string): void;
}

const noHoles: readonly RangeHole[] = [];

export class RequestContext {
  readonly connection: ConnectionInfo;
  readonly apiKey: number;
  readonly apiVersion: number;
  readonly correlationId: number;
  readonly clientId: string | null;
  /** Stands at the body. Shared by all requests of the thread: of use only until `handle` returns. */
  readonly reader: Reader;
  /** Where the request lies; `retain` it to keep its memory beyond `handle`. */
  readonly frame: RequestFrame;
  /** May run beside other requests of the connection that overlap; from the handler. */
  readonly overlaps: boolean;
  /** Called once if the connection dies before the answer: stop waiting, let go of resources. */
  onAbort: (() => void) | null = null;
  /**
   * Called when the client has sent another request that waits for this one, perhaps more than once: a wait for nothing
   * in particular may end then. It must not answer before it returns.
   */
  onOvertaken: (() => void) | null = null;
  readonly #owner: ContextOwner;
  #answered: boolean = false;
  #aborted: boolean = false;
  #bytes: Uint8Array | null = null;
  #holes: readonly RangeHole[] = noHoles;

  constructor(
    owner: ContextOwner,
    header: RequestHeader,
    reader: Reader,
    frame: RequestFrame,
    overlaps: boolean,
  ) {
    this.#owner = owner;
    this.connection = owner;
    this.apiKey = header.apiKey;
    this.apiVersion = header.apiVersion;
    this.correlationId = header.correlationId;
    this.clientId = header.clientId;
    this.reader = reader;
    this.frame = frame;
    this.overlaps = overlaps;
  }

  get answered(): boolean {
    return this.#answered;
  }

  /** The connection has died; answers go nowhere. */
  get aborted(): boolean {
    return this.#aborted;
  }

  /** The answer's bytes once answered, null if there are none to send. For the connection. */
  get responseBytes(): Uint8Array | null {
    return this.#bytes;
  }

  /** The file ranges that belong into the answer. For the connection. */
  get responseHoles(): readonly RangeHole[] {
    return this.#holes;
  }

  /**
   * Encodes and sends the answer. Records that are `FileRange` objects go out from their files. `version` is
   * the request's, except where an unknown version is answered in one that the client surely knows (KIP-511).
   *
   * A value that cannot be said in that version closes the connection, with a line in the log. Clients can bring it
   * about: a name of 32,767 bytes that are no UTF-8 takes three times as many when it is said back.
   * @returns false when nothing will be sent, and the caller must unpin what is in `value`
   */
  respond<N extends ApiName>(
    name: `${N}Response`,
    value: MessageInputs[`${N}Response`],
    version: number = this.apiVersion,
  ): boolean {
    const encoded = this.#encode<N>(name, value, version);
    if (encoded === null) return false;
    // The writer passes on whatever object stood in the place of records, and here those are FileRanges.
    this.respondRaw(encoded.bytes, encoded.holes as readonly RangeHole[]);
    return true;
  }

  #encode<N extends ApiName>(
    name: `${N}Response`,
    value: MessageInputs[`${N}Response`],
    version: number,
  ): Encoded | null {
    if (this.#aborted) {
      this.#answered = true;
      return null;
    }
    try {
      return encodeResponseFrame<N>(this.apiKey, version, this.correlationId, name, value);
    } catch (error) {
      this.fail(`its answer cannot be encoded: ${error instanceof Error ? error.message : error}`);
      this.#answered = true;
      return null;
    }
  }

  /** Sends a whole response frame, its size included (and counting the ranges). The bytes stay as they are. */
  respondRaw(bytes: Uint8Array, holes: readonly RangeHole[] = noHoles): void {
    if (this.#answered) this.#failTwice();
    this.#answered = true;
    if (this.#aborted) {
      for (const hole of holes) hole.value.pin?.unpin();
      return;
    }
    this.#bytes = bytes;
    this.#holes = holes;
    this.#owner.onAnswered(this);
  }

  /** The request is done and gets no answer: produce with acks=0. */
  respondNothing(): void {
    if (this.#answered) this.#failTwice();
    this.#answered = true;
    if (!this.#aborted) this.#owner.onAnswered(this);
  }

  /**
   * Closes the connection, with a line in the log: for requests that cannot be answered (acks=0 with an error,
   * bytes that are no message). Answers of earlier requests that are ready still go out if the socket takes them.
   */
  fail(reason: string): void {
    if (this.#aborted) return;
    this.#owner.onFailed(this, reason);
  }

  /** Apart from its callers, who would make its text for every answer. */
  #failTwice(): never {
    assert.fail(`API ${this.apiKey}, correlation id ${this.correlationId}: two answers`);
  }

  /** The connection has died. For the connection. */
  abort(): void {
    if (this.#answered || this.#aborted) return;
    this.#aborted = true;
    const onAbort = this.onAbort;
    this.onAbort = null;
    onAbort?.();
  }
}
