/**
 * One change of a consumer group: its records, how they are undone, and who is answered once they are committed.
 *
 * Thread and concurrency: as `GroupCoordinator`; a change is made and stored within one step. Durability: answers wait for
 * the records of the change and for all that were stored before.
 */
import type { ConsumerGroup } from './consumer_group.ts';
import type { CoordinatorRuntime } from './coordinator_runtime.ts';
import type { GroupReply, GroupRequest } from './group_api.ts';
import type { GroupRecord } from './group_records.ts';
import { refusal } from './refusals.ts';

export interface HeldReply {
  readonly token: number;
  /** Names the form of the answer if it comes to an error. */
  readonly request: GroupRequest;
  readonly reply: GroupReply;
}

/** Answers that have seen the state of an append that is undecided. */
export interface Hold {
  readonly replies: HeldReply[];
  /** That of the append before, if it was undecided then. */
  before: Hold | null;
  isCommitted: boolean;
}

export class ConsumerChange {
  readonly #runtime: CoordinatorRuntime;
  readonly #group: ConsumerGroup;
  readonly #records: GroupRecord[] = [];
  readonly #undo: GroupRecord[] = [];
  readonly #undone: () => void;

  /** `undone` is called after the group has been brought back, if the change fails. */
  constructor(runtime: CoordinatorRuntime, group: ConsumerGroup, undone: () => void) {
    this.#runtime = runtime;
    this.#group = group;
    this.#undone = undone;
  }

  /** Changes the group, for now in memory. */
  put(record: GroupRecord): void {
    this.#undo.push(this.#group.replay(record));
    this.#records.push(record);
  }

  /** A record that does not concern the group itself. */
  putBeside(record: GroupRecord): void {
    this.#records.push(record);
  }

  /** Hands the change to the log. The answer, if there is one, waits for it and for all changes before it. */
  store(reply: HeldReply | null): void {
    const group = this.#group;
    if (this.#records.length === 0) {
      if (reply === null) return;
      if (group.hold === null) this.#runtime.reply(reply.token, reply.reply);
      else group.hold.replies.push(reply);
      return;
    }
    const replies = reply === null ? [] : [reply];
    const hold: Hold = { replies, before: group.hold, isCommitted: false };
    group.hold = hold;
    this.#runtime.append(this.#records, {
      committed: () => {
        hold.isCommitted = true;
        // What was before is committed, too: the chain ends here.
        hold.before = null;
        if (group.hold === hold) group.hold = null;
        for (const held of hold.replies) this.#runtime.reply(held.token, held.reply);
      },
      failed: (error) => {
        // Failures come from the last append to the first, so this is the last.
        group.hold = hold.before?.isCommitted === false ? hold.before : null;
        for (const record of this.#undo.reverse()) group.replay(record);
        this.#undone();
        for (const { token, request } of hold.replies)
          this.#runtime.reply(token, refusal(request, error));
      },
    });
  }
}
