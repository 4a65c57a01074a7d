/**
 * Which APIs this broker serves, in which versions, and by whom. The single source of what ApiVersions tells
 * clients: an API is advertised exactly when a handler is registered.
 */
import assert from 'node:assert/strict';
import { ApiKey } from '../protocol/api_key.gen.ts';
import { apiInfo } from '../protocol/apis.ts';
import { codecFor } from '../protocol/codec.ts';
import type { ApiName, MessageInputs, MessageTypes } from '../protocol/messages.gen.ts';
import { ProtocolError } from '../protocol/reader.ts';
import type { RequestContext } from './request_context.ts';

export interface Handler {
  readonly apiKey: number;
  /** Oldest and newest version that `handle` takes. */
  readonly minVersion: number;
  readonly maxVersion: number;
  /** Requests of overlapping handlers on one connection run at the same time; all others one after another. */
  readonly overlaps?: boolean;
  /** The frame gets memory of its own, so that `ctx.frame.retain()` works. */
  readonly retainsFrame?: boolean;
  /**
   * Runs the request: decodes from `ctx.reader` before it returns, answers then or later. Nothing may be thrown
   * but a ProtocolError before the answer, which closes the connection.
   */
  handle(ctx: RequestContext): void;
  /** Answers a version outside of the range; without it such a request closes the connection, as in Kafka. */
  unsupportedVersion?(ctx: RequestContext): void;
}

/** One line of an ApiVersions response. */
export interface ServedApi {
  readonly apiKey: number;
  readonly minVersion: number;
  readonly maxVersion: number;
}

export class Registry {
  readonly #handlers: (Handler | undefined)[] = [];

  /** Adds a handler; a second one for the same API, or versions that Kafka does not know, throw. */
  register(handler: Handler): void {
    const { apiKey, minVersion, maxVersion } = handler;
    const info = apiInfo(apiKey);
    assert(info !== null, `API ${apiKey} does not exist`);
    assert(this.#handlers[apiKey] === undefined, `${info.name} has two handlers`);
    assert(
      info.minVersion <= minVersion && minVersion <= maxVersion && maxVersion <= info.maxVersion,
      `${info.name} v${minVersion}-${maxVersion}, and there are v${info.minVersion}-${info.maxVersion}`,
    );
    this.#handlers[apiKey] = handler;
  }

  /** The handler of an API, or null. */
  find(apiKey: number): Handler | null {
    return this.#handlers[apiKey] ?? null;
  }

  /** All APIs served, by key. `minVersion` is what to advertise: older clients look for Produce 0 (KIP-896). */
  served(): ServedApi[] {
    const served: ServedApi[] = [];
    for (const handler of this.#handlers) {
      if (handler === undefined) continue;
      const { apiKey, minVersion, maxVersion } = handler;
      const info = apiInfo(apiKey);
      const whole = info !== null && minVersion === info.minVersion;
      served.push({
        apiKey,
        minVersion: whole ? info.advertisedMinVersion : minVersion,
        maxVersion,
      });
    }
    return served;
  }
}

/**
 * A handler for an API that decodes the whole request, calls, and encodes what comes back. `call` may be
 * asynchronous; it must not throw: errors are codes in its response.
 */
export function rpc<N extends ApiName>(
  name: N,
  minVersion: number,
  maxVersion: number,
  call: (
    request: MessageTypes[`${N}Request`],
    ctx: RequestContext,
  ) => MessageInputs[`${N}Response`] | Promise<MessageInputs[`${N}Response`]>,
): Handler {
  return {
    apiKey: ApiKey[name],
    minVersion,
    maxVersion,
    handle: (ctx) => {
      const request = codecFor(`${name}Request`, ctx.apiVersion).decode(ctx.reader);
      const response = call(request, ctx);
      if (!(response instanceof Promise)) {
        ctx.respond<N>(`${name}Response`, response);
        return;
      }
      void response.then(
        (value) => ctx.respond<N>(`${name}Response`, value),
        (error: unknown) => {
          if (!(error instanceof ProtocolError)) throw error;
          ctx.fail(error.message);
        },
      );
    },
  };
}
