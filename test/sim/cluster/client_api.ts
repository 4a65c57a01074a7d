/** What clients of a simulated cluster ask brokers: the few things that matter of Kafka's requests. */
import type { ErrorCode } from '../../../engine/error_code.gen.ts';
import type { GroupRequest } from '../../../engine/groups/group_api.ts';
import type { ControllerRequest } from '../../../replication/metadata/controller_api.ts';

export type ClientRequest =
  | { readonly type: 'metadata' }
  | {
      readonly type: 'produce';
      readonly partition: number;
      readonly acks: -1 | 0 | 1;
      /** Belongs to the receiver, which stamps it. */
      readonly batch: Uint8Array;
    }
  | {
      readonly type: 'read';
      readonly partition: number;
      readonly offset: number;
      readonly leaderEpoch: number;
      readonly maxBytes: number;
    }
  | { readonly type: 'group'; readonly request: GroupRequest }
  /** Goes on to the controller. */
  | { readonly type: 'controller'; readonly request: ControllerRequest };

export interface MetadataAnswer {
  /** Of the one partition that holds the groups. */
  readonly coordinator: { readonly leader: number; readonly leaderEpoch: number };
  /** By partition; leader -1: none, or unknown here. */
  readonly partitions: readonly { readonly leader: number; readonly leaderEpoch: number }[];
}

export interface ProduceAnswer {
  readonly errorCode: ErrorCode;
  /** -1 with an error. */
  readonly baseOffset: number;
  readonly isDuplicate: boolean;
}

export interface ReadAnswer {
  readonly errorCode: ErrorCode;
  readonly bytes: Uint8Array;
  readonly highWatermark: number;
}
