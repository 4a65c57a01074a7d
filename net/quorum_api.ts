/**
 * What the leader of the metadata quorum does for all: the controller's requests, and those about the quorum itself.
 * Plain data: they cross threads and, as Kafka's RPCs (`net/peer`), hosts.
 */
import type { ControllerApi, ControllerReply } from '../replication/metadata/controller_api.ts';
import type { Voter } from '../replication/metadata/records.ts';
import type { QuorumDescription } from '../replication/raft/quorum.ts';

/** Nothing but that it is done. */
export type Done = Readonly<Record<never, never>>;

export interface AddVoterRequest {
  readonly voter: Voter;
  readonly timeoutMs: number;
}

export interface RemoveVoterRequest {
  readonly voterId: number;
  readonly voterDirectoryId: string;
  readonly timeoutMs: number;
}

export interface QuorumApi extends ControllerApi {
  describeQuorum: { request: Done; result: QuorumDescription };
  addVoter: { request: AddVoterRequest; result: Done };
  removeVoter: { request: RemoveVoterRequest; result: Done };
}

export type QuorumRequestType = keyof QuorumApi;

export type QuorumRequestOf<K extends QuorumRequestType> = {
  readonly type: K;
} & QuorumApi[K]['request'];

export type QuorumRequest = { [K in QuorumRequestType]: QuorumRequestOf<K> }[QuorumRequestType];

export type QuorumReplyOf<K extends QuorumRequestType> = ControllerReply<QuorumApi[K]['result']>;

export type QuorumReply = { [K in QuorumRequestType]: QuorumReplyOf<K> }[QuorumRequestType];
