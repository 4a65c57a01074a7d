/** How a request of the metadata quorum is said as one of Kafka's RPCs: the form of a mapping, and what they share. */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { RaftReply, RaftRequest } from '../../replication/raft/messages.ts';
import type { ApiName, MessageInputs, MessageTypes } from '../protocol/messages.gen.ts';

export type RaftType = RaftRequest['type'];
type RequestOf<T extends RaftType> = Extract<RaftRequest, { type: T }>;
type ReplyOf<T extends RaftType> = Extract<RaftReply, { type: T }>;

/** How one kind of request is said. `fromRequest` and `fromReply` give null for what is no such message. */
interface Mapping<T extends RaftType, N extends ApiName> {
  readonly version: number;
  toRequest(request: RequestOf<T>): MessageInputs[`${N}Request`];
  fromRequest(message: MessageTypes[`${N}Request`]): RequestOf<T> | null;
  toReply(reply: ReplyOf<T>): MessageInputs[`${N}Response`];
  fromReply(message: MessageTypes[`${N}Response`]): ReplyOf<T> | null;
}

/** A mapping as those who send and serve see it: which messages belong together is known in here only. */
export interface RaftRpc {
  readonly type: RaftType;
  readonly api: ApiName;
  readonly version: number;
  toRequest(request: RaftRequest): MessageInputs[`${ApiName}Request`];
  fromRequest(message: unknown): RaftRequest | null;
  toReply(reply: RaftReply): MessageInputs[`${ApiName}Response`];
  fromReply(message: unknown): RaftReply | null;
}

export function rpc<T extends RaftType, N extends ApiName>(
  type: T,
  api: N,
  mapping: Mapping<T, N>,
): RaftRpc {
  return { ...(mapping as unknown as Omit<RaftRpc, 'type' | 'api'>), type, api };
}

/** The partition that a request is about, or null. */
export function only<P>(topics: readonly { readonly partitions: readonly P[] }[]): P | null {
  return topics.length === 1 && topics[0]!.partitions.length === 1
    ? topics[0]!.partitions[0]!
    : null;
}

/** Codes on the wire are what the other side took from the same table. */
export function code(errorCode: number): ErrorCode {
  return errorCode as ErrorCode;
}

export interface News {
  readonly errorCode: ErrorCode;
  readonly leaderId: number;
  readonly leaderEpoch: number;
}

/** The request was refused as a whole, before anybody looked at the partition. */
export function whole(errorCode: number): News {
  const refused = errorCode === ErrorCode.NONE ? ErrorCode.UNKNOWN_SERVER_ERROR : code(errorCode);
  return { errorCode: refused, leaderId: -1, leaderEpoch: -1 };
}

export function newsOf(partition: {
  errorCode: number;
  leaderId: number;
  leaderEpoch: number;
}): News {
  const { errorCode, leaderId, leaderEpoch } = partition;
  return { errorCode: code(errorCode), leaderId, leaderEpoch };
}
