/**
 * Hands out producer ids from blocks that the controller gives to this broker, so that most requests
 * need no round trip (Kafka's RPCProducerIdManager).
 *
 * Thread: the shard's own. Durability: a block is committed in the metadata log before its first id is
 * handed out; what is left of it at a restart is never used again.
 */
import { ErrorCode } from '../engine/error_code.gen.ts';
import type { QuorumRequests } from './quorum_client.ts';

/** Whether the id counts depends on the code: on an error it is -1. */
export interface ProducerIdResult {
  readonly errorCode: ErrorCode;
  readonly producerId: number;
}

const allocationTimeoutMs = 5_000;

export class ProducerIds {
  readonly #quorum: QuorumRequests;
  /** Invariant: the ids from `#next` up to, not including, `#end` belong to this broker and are unused. */
  #next = 0;
  #end = 0;
  #allocation: Promise<ErrorCode> | null = null;

  constructor(quorum: QuorumRequests) {
    this.#quorum = quorum;
  }

  /** An id that nobody has or will have. Errors are the controller's, all of them retriable. */
  async next(): Promise<ProducerIdResult> {
    while (this.#next === this.#end) {
      this.#allocation ??= this.#allocate();
      const errorCode = await this.#allocation;
      if (errorCode !== ErrorCode.NONE) return { errorCode, producerId: -1 };
    }
    const producerId = this.#next;
    this.#next += 1;
    return { errorCode: ErrorCode.NONE, producerId };
  }

  async #allocate(): Promise<ErrorCode> {
    const reply = await this.#quorum.allocateProducerIds(allocationTimeoutMs);
    this.#allocation = null;
    if (reply.errorCode !== ErrorCode.NONE) return reply.errorCode;
    this.#next = reply.result.firstProducerId;
    this.#end = this.#next + reply.result.length;
    return ErrorCode.NONE;
  }
}
