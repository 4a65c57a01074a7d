/** What goes into a group coordinator and what comes out; how to drive it is told in `group_coordinator.ts`. */
import type { ErrorCode } from '../error_code.gen.ts';
import type { Client, GroupReply, GroupRequest } from './group_api.ts';
import type { GroupRecord } from './group_records.ts';

/** A point in time on both clocks, so that a wall clock that is set never ends a session. */
export interface Instant {
  /** For time-outs: never goes back. Where it starts does not matter. */
  readonly monotonicMs: number;
  /** Milliseconds since 1970, for what is stored. */
  readonly wallMs: number;
}

export type CoordinatorEvent =
  /** While loading: the next records of the partition's log, in the log's order, in portions of any size. */
  | { readonly type: 'load'; readonly records: readonly GroupRecord[] }
  /** All records up to the log's end have been given. Until then requests get COORDINATOR_LOAD_IN_PROGRESS. */
  | { readonly type: 'loaded' }
  /** `token` comes back with the answer; it must not be in use. `body` is kept: it must not change afterwards. */
  | {
      readonly type: 'request';
      readonly token: number;
      readonly client: Client;
      readonly request: GroupRequest;
    }
  /** The append of this id and all before it are committed. */
  | { readonly type: 'committed'; readonly appendId: number }
  /**
   * The append of this id is not in the log and never will be, and the same goes for all later ones that have been handed
   * out: the caller drops them. `error` is what the log said.
   */
  | { readonly type: 'append_failed'; readonly appendId: number; readonly error: ErrorCode }
  /** Topics that came, grew or went, after the `TopicDirectory` shows it. */
  | {
      readonly type: 'topics_changed';
      readonly changed: readonly string[];
      readonly deleted: readonly string[];
    }
  /** The partition is no longer led here. Everything unanswered gets NOT_COORDINATOR; only a new machine can load it again. */
  | { readonly type: 'resigned' };

export type CoordinatorEffect =
  /** To be appended as one batch, in the order of the effects. Ids are consecutive, from 1. */
  | {
      readonly type: 'append';
      readonly appendId: number;
      readonly records: readonly GroupRecord[];
    }
  /** To be sent. Whatever it depends on is committed. */
  | { readonly type: 'reply'; readonly token: number; readonly reply: GroupReply }
  /** Something that an operator may want to know: for the broker's log. */
  | { readonly type: 'log'; readonly level: 'info' | 'warn'; readonly message: string };

/** The topics that exist, as the machines of a thread see them. Changes are followed by `topics_changed`. */
export interface TopicDirectory {
  byName(name: string): TopicDescription | undefined;
  /** The name of a topic that exists. */
  nameOf(topicId: string): string | undefined;
}

export interface TopicDescription {
  readonly topicId: string;
  readonly partitionCount: number;
}
