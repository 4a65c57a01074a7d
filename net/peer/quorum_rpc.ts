/** How a request to the quorum's leader is said as one of Kafka's RPCs: the form of a mapping, and what they share. */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { ControllerReply } from '../../replication/metadata/controller_api.ts';
import { errorMessage } from '../protocol/errors.ts';
import type { ApiName, MessageInputs, MessageTypes } from '../protocol/messages.gen.ts';
import type {
  QuorumReply,
  QuorumReplyOf,
  QuorumRequest,
  QuorumRequestOf,
  QuorumRequestType,
} from '../quorum_api.ts';

/** What a message says beside the request. */
export interface Envelope {
  readonly clusterId: string;
  /** How long the request may take. */
  readonly timeoutMs: number;
}

interface Mapping<K extends QuorumRequestType, N extends ApiName> {
  /** The one in which it is sent and taken. */
  readonly version: number;
  toRequest(request: QuorumRequestOf<K>, envelope: Envelope): MessageInputs[`${N}Request`];
  fromRequest(message: MessageTypes[`${N}Request`]): QuorumRequestOf<K>;
  toReply(reply: QuorumReplyOf<K>, request: QuorumRequestOf<K>): MessageInputs[`${N}Response`];
  fromReply(message: MessageTypes[`${N}Response`], request: QuorumRequestOf<K>): QuorumReplyOf<K>;
  /** The cluster that the sender takes this for; undefined or null when the message does not say. */
  clusterOf?(message: MessageTypes[`${N}Request`]): string | null;
}

/** A mapping as those who send and serve see it: which messages belong together is known to its maker only. */
export interface QuorumRpc {
  readonly type: QuorumRequestType;
  readonly api: ApiName;
  readonly version: number;
  toRequest(request: QuorumRequest, envelope: Envelope): MessageInputs[`${ApiName}Request`];
  fromRequest(message: unknown): QuorumRequest;
  toReply(reply: QuorumReply, request: QuorumRequest): MessageInputs[`${ApiName}Response`];
  fromReply(message: unknown, request: QuorumRequest): QuorumReply;
  clusterOf?(message: unknown): string | null;
}

export function quorumRpc<K extends QuorumRequestType, N extends ApiName>(
  type: K,
  api: N,
  mapping: Mapping<K, N>,
): QuorumRpc {
  return { ...(mapping as unknown as Omit<QuorumRpc, 'type' | 'api'>), type, api };
}

/** Codes on the wire are what the other side took from the same table. */
export function code(errorCode: number): ErrorCode {
  return errorCode as ErrorCode;
}

/** A failure of the whole request, of which the message has the code and perhaps a text. */
export function failure(errorCode: number, text: string | null = null): ControllerReply<never> {
  return {
    errorCode: code(errorCode) as Exclude<ErrorCode, 0>,
    errorMessage: text ?? errorMessage(errorCode),
    result: null,
  };
}

interface Item {
  readonly errorCode: number;
  readonly errorMessage: string | null;
}

/**
 * Of messages that can only refuse one thing after the other: whether nothing was looked at, because the node asked does
 * not lead. Any other failure of the whole is as well said of each of them.
 */
export function wholeFailure(items: readonly Item[]): ControllerReply<never> | null {
  const [first] = items;
  if (first === undefined) return null;
  if (!items.every((item) => item.errorCode === ErrorCode.NOT_CONTROLLER)) return null;
  return failure(first.errorCode, first.errorMessage);
}

/** What a reply says that has an outcome and nothing else. */
interface OutcomeMessage {
  readonly errorCode: number;
  readonly errorMessage: string | null;
}

export function outcomeToReply(reply: ControllerReply<object>): OutcomeMessage & {
  readonly throttleTimeMs: number;
} {
  const { errorCode } = reply;
  const text = reply.result === null ? reply.errorMessage : null;
  return { throttleTimeMs: 0, errorCode, errorMessage: text };
}

export function outcomeFromReply({
  errorCode,
  errorMessage: text,
}: OutcomeMessage): ControllerReply<Record<never, never>> {
  return errorCode === ErrorCode.NONE ? { errorCode, result: {} } : failure(errorCode, text);
}
