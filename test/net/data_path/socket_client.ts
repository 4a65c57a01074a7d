/** A client on a real socket that sends requests of any API and takes the answers in order. */
import assert from 'node:assert/strict';
import { ApiKey } from '../../../net/protocol/api_key.gen.ts';
import { decodeResponse, encodeRequestFrame } from '../../../net/protocol/frame.ts';
import type { ApiName, MessageInputs, MessageTypes } from '../../../net/protocol/messages.gen.ts';
import { Reader } from '../../../net/protocol/reader.ts';
import { connectClient, type TestClient } from '../server/harness.ts';

export class SocketClient {
  readonly raw: TestClient;
  #sent = 0;
  /** Requests with an answer. */
  #answers = 0;

  static async connect(port: number): Promise<SocketClient> {
    return new SocketClient(await connectClient(port));
  }

  private constructor(raw: TestClient) {
    this.raw = raw;
  }

  /** Sends a request; the function waits for its answer. `isSilent`: there will be none. */
  send<N extends ApiName>(
    name: N,
    version: number,
    request: MessageInputs[`${N}Request`],
    isSilent = false,
  ): () => Promise<MessageTypes[`${N}Response`]> {
    this.#sent += 1;
    const correlationId = this.#sent;
    const header = { apiKey: ApiKey[name], apiVersion: version, correlationId, clientId: null };
    const { bytes } = encodeRequestFrame<N>(header, `${name}Request` as `${N}Request`, request);
    this.raw.socket.write(bytes);
    const place = this.#answers;
    if (!isSilent) this.#answers += 1;
    return async () => {
      assert(!isSilent);
      await this.raw.until(() => this.raw.frames.length > place);
      const frame = this.raw.frames[place];
      assert(frame !== undefined);
      const answer = decodeResponse<N>(
        new Reader(frame),
        ApiKey[name],
        version,
        `${name}Response` as `${N}Response`,
      );
      assert.equal(
        answer.correlationId,
        correlationId,
        'answers come in the order of the requests',
      );
      return answer.value;
    };
  }

  call<N extends ApiName>(
    name: N,
    version: number,
    request: MessageInputs[`${N}Request`],
  ): Promise<MessageTypes[`${N}Response`]> {
    return this.send(name, version, request)();
  }

  close(): void {
    this.raw.socket.destroy();
  }
}
