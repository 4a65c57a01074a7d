/** Connections to a `ShardWorld`: requests go through the codec in both directions, answers are put together from their ranges. */
import assert from 'node:assert/strict';
import { regionView } from '../../../engine/thread/slab.ts';
import { ApiKey } from '../../../net/protocol/api_key.gen.ts';
import {
  decodeRequestHeader,
  decodeResponse,
  encodeRequestFrame,
} from '../../../net/protocol/frame.ts';
import type { ApiName, MessageInputs, MessageTypes } from '../../../net/protocol/messages.gen.ts';
import { Reader } from '../../../net/protocol/reader.ts';
import type { ContextOwner } from '../../../net/server/request_context.ts';
import { RequestContext } from '../../../net/server/request_context.ts';
import { RequestFrame } from '../../../net/server/request_frame.ts';
import type { ShardWorld } from './shard_world.ts';

/** A request that was sent, and what became of it. */
export interface Sent<N extends ApiName> {
  /** An answer is there, or the request is done without one. */
  readonly isAnswered: boolean;
  /** Done, and there is nothing to send. */
  readonly isSilent: boolean;
  /** The whole frame, file ranges filled in. */
  bytes(): Buffer;
  response(): MessageTypes[`${N}Response`];
}

/** One buffer for all frames that nobody retains, overwritten after each request: as the thread's read buffer is. */
const sharedBuffer: Buffer = Buffer.alloc(1 << 20);
const reader: Reader = new Reader(sharedBuffer);

export class WorldConnection implements ContextOwner {
  readonly id: number = 1;
  readonly listener: string = 'PLAINTEXT';
  readonly remoteAddress: string = '127.0.0.1';
  readonly remotePort: number = 50_000;
  /** Why the broker closed the connection, or null. */
  failure: string | null = null;
  readonly #world: ShardWorld;
  readonly #open = new Set<RequestContext>();
  #correlationId = 0;

  constructor(world: ShardWorld) {
    this.#world = world;
  }

  onAnswered(): void {}

  onFailed(_context: RequestContext, reason: string): void {
    this.failure ??= reason;
    this.die();
  }

  /** The connection is gone, from whichever side: what runs is aborted, answers that were not sent let go of their files. */
  die(): void {
    const contexts = [...this.#open];
    this.#open.clear();
    for (const context of contexts) {
      for (const hole of context.responseHoles) hole.value.pin?.unpin();
      context.abort();
    }
  }

  /** Sends and expects the answer at once. */
  call<N extends ApiName>(
    name: N,
    version: number,
    request: MessageInputs[`${N}Request`],
  ): MessageTypes[`${N}Response`] {
    const sent = this.send(name, version, request);
    assert(sent.isAnswered, `${name} v${version} waits`);
    return sent.response();
  }

  /** The same for handlers that ask the controller. */
  async callLater<N extends ApiName>(
    name: N,
    version: number,
    request: MessageInputs[`${N}Request`],
  ): Promise<MessageTypes[`${N}Response`]> {
    const sent = this.send(name, version, request);
    for (let turn = 0; !sent.isAnswered && turn < 100; turn += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      this.#world.settle();
    }
    assert(sent.isAnswered, `${name} v${version} waits`);
    return sent.response();
  }

  send<N extends ApiName>(
    name: N,
    version: number,
    request: MessageInputs[`${N}Request`],
  ): Sent<N> {
    this.#correlationId += 1;
    const header = {
      apiKey: ApiKey[name],
      apiVersion: version,
      correlationId: this.#correlationId,
      clientId: 'test',
    };
    const { bytes } = encodeRequestFrame<N>(header, `${name}Request` as `${N}Request`, request);
    const context = this.dispatch(bytes.subarray(4));
    return this.#sent(context, name, version);
  }

  /** Runs a request that is a frame without its size already. */
  dispatch(bytes: Uint8Array): RequestContext {
    const world = this.#world;
    const apiKey = new DataView(bytes.buffer, bytes.byteOffset).getInt16(0);
    const handler = world.registry.find(apiKey);
    assert(handler !== null, `API ${apiKey} is not served`);
    const frame = this.#frame(bytes, handler.retainsFrame === true);
    reader.reset(frame.bytes, frame.offset, frame.end);
    const header = decodeRequestHeader(reader);
    const context = new RequestContext(this, header, reader, frame, handler.overlaps === true);
    this.#open.add(context);
    const { apiVersion } = header;
    try {
      if (apiVersion >= handler.minVersion && apiVersion <= handler.maxVersion)
        handler.handle(context);
      else if (handler.unsupportedVersion !== undefined) handler.unsupportedVersion(context);
      else this.onFailed(context, `unsupported version ${apiVersion}`);
    } finally {
      frame.release();
      sharedBuffer.fill(0xdd);
    }
    return context;
  }

  #frame(bytes: Uint8Array, isRetained: boolean): RequestFrame {
    const { memory } = this.#world;
    if (!isRetained) {
      sharedBuffer.set(bytes);
      return new RequestFrame(sharedBuffer, 0, bytes.length, null, null);
    }
    assert(memory.budget.tryReserve(bytes.length));
    const region = memory.slabs.alloc(bytes.length);
    regionView(region).set(bytes);
    const { offset } = region;
    return new RequestFrame(region.bytes, offset, offset + bytes.length, region, memory);
  }

  #sent<N extends ApiName>(context: RequestContext, name: N, version: number): Sent<N> {
    let whole: Buffer | null = null;
    const bytes = (): Buffer => {
      whole ??= this.#take(context);
      return whole;
    };
    return {
      get isAnswered() {
        return context.answered && (context.responseBytes !== null || !context.aborted);
      },
      get isSilent() {
        return context.answered && context.responseBytes === null;
      },
      bytes,
      response: () => {
        const frame = bytes();
        assert.equal(frame.readInt32BE(0), frame.length - 4, 'the size in front');
        const decoded = decodeResponse<N>(
          new Reader(frame, 4),
          ApiKey[name],
          version,
          `${name}Response` as `${N}Response`,
        );
        assert.equal(decoded.correlationId, context.correlationId);
        return decoded.value;
      },
    };
  }

  /** What goes out: the bytes with the file ranges in their places, which are let go of as after sending. */
  #take(context: RequestContext): Buffer {
    const { responseBytes, responseHoles } = context;
    assert(responseBytes !== null, 'no answer');
    assert(this.#open.delete(context), 'an answer on a dead connection');
    const { disk } = this.#world;
    const parts: Uint8Array[] = [];
    let from = 0;
    for (const { at, value } of responseHoles) {
      parts.push(responseBytes.subarray(from, at));
      from = at;
      const range = Buffer.alloc(value.byteLength);
      assert.equal(disk.read(value.fd, range, 0, range.length, value.position), range.length);
      parts.push(range);
      value.pin?.unpin();
    }
    parts.push(responseBytes.subarray(from));
    return Buffer.concat(parts);
  }
}
