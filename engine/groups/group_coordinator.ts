/**
 * The coordinator of all groups of one partition of `__consumer_offsets`, as a state machine without IO or clocks.
 *
 * Thread: the one of the partition; nothing is shared. Concurrency: none, `step` and `tick` run to their end.
 * Durability: a `reply` effect may be sent at once, for it is held back here until the records that it depends on are
 * committed. Offsets are seen only once they are committed; what an append that failed had changed is undone.
 *
 * How to drive it:
 *   1. A new machine is loading. Give it the partition's records with `load`, in order, then `loaded`.
 *   2. Give it requests, and carry out the effects of every call in order. Append the records of an `append` effect as one
 *      batch; say `committed` when the high watermark has passed it, or `append_failed`, and in this case drop all appends
 *      handed out after it, those further on in the same list of effects, too.
 *   3. Call `tick` when the monotonic clock has reached `nextDeadlineMs`, which any call may have moved.
 *   4. Say `topics_changed` after each change of the `TopicDirectory`, and `resigned` when the partition goes elsewhere.
 */
import type {
  CoordinatorEffect,
  CoordinatorEvent,
  Instant,
  TopicDirectory,
} from './coordinator_events.ts';
import type { GroupOptions } from './group_options.ts';

/** What a coordinator needs from outside. */
export interface CoordinatorEnvironment {
  readonly options: GroupOptions;
  readonly topics: TopicDirectory;
  /** A new random id, in Kafka's base64 form for uuids. Part of members' ids. */
  readonly newUuid: () => string;
}

export interface CoordinatorMachine {
  /** Monotonic milliseconds at which `tick` has something to do, infinite for never. */
  readonly nextDeadlineMs: number;
  /** Takes one event and returns what the caller must do, in order. */
  step(event: CoordinatorEvent, now: Instant): CoordinatorEffect[];
  /** Does what has come due: sessions, rebalances, retention. */
  tick(now: Instant): CoordinatorEffect[];
}
