/**
 * A consumer at the tail: reads every partition of its own through one incremental fetch session with long polls, and
 * tells the history what it saw, for what was visible once must stay. It goes on after every broken connection.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { errorName } from '../../net/protocol/errors.ts';
import type { FetchResponse } from '../../net/protocol/messages.gen.ts';
import { Client } from './client.ts';
import { ConnectionLostError, type Endpoint } from './connection.ts';
import { decodeRecords } from './fetched_records.ts';
import { type History, idOf } from './history.ts';
import { laneName, type Target } from './load.ts';

const retryPauseMs = 30;

interface Position extends Target {
  offset: number;
  /** The broker must be told of it: it moved, or the session is new. */
  changed: boolean;
}

export class TailReader {
  readonly #endpoint: () => Endpoint;
  readonly #history: History;
  readonly #now: () => number;
  readonly #positions: readonly Position[];
  readonly #run: Promise<void>;
  #client: Client | null = null;
  #stopped: boolean = false;
  #failure: Error | null = null;
  records = 0;

  constructor(
    endpoint: () => Endpoint,
    targets: readonly Target[],
    history: History,
    now: () => number = () => 0,
  ) {
    this.#endpoint = endpoint;
    this.#history = history;
    this.#now = now;
    this.#positions = targets.map((target) => ({ ...target, offset: 0, changed: true }));
    this.#run = this.#work().catch((error: unknown) => {
      this.#failure = error instanceof Error ? error : new Error(String(error));
    });
  }

  /** Throws what went wrong, if anything did. */
  assertHealthy(): void {
    if (this.#failure !== null) throw this.#failure;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#client?.close();
    await this.#run;
    this.assertHealthy();
  }

  async #work(): Promise<void> {
    while (!this.#stopped) {
      try {
        this.#client = await Client.connect(this.#endpoint(), 'tail');
        await this.#session(this.#client);
      } catch (error) {
        if (!(error instanceof ConnectionLostError)) throw error;
      }
      this.#client?.close();
      await sleep(retryPauseMs);
    }
  }

  /** One fetch session, until its connection breaks. */
  async #session(client: Client): Promise<void> {
    for (const position of this.#positions) position.changed = true;
    let sessionId = 0;
    for (let sessionEpoch = 0; !this.#stopped; sessionEpoch += 1) {
      const changed = this.#positions.filter((position) => position.changed);
      for (const position of changed) position.changed = false;
      const answer = await client.fetch(changed, { maxWaitMs: 250, sessionId, sessionEpoch });
      if (answer.errorCode !== ErrorCode.NONE)
        throw new Error(`tail: ${errorName(answer.errorCode)} in fetch epoch ${sessionEpoch}`);
      sessionId = answer.sessionId;
      await this.#take(client, answer);
    }
  }

  async #take(client: Client, answer: FetchResponse): Promise<void> {
    for (const { topicId, partitions } of answer.responses) {
      for (const { partitionIndex, errorCode, records } of partitions) {
        const position = await this.#find(client, topicId, partitionIndex);
        const name = laneName(position);
        if (errorCode !== ErrorCode.NONE)
          throw new Error(`tail: ${name} at ${position.offset}: ${errorName(errorCode)}`);
        const found = decodeRecords(records ?? new Uint8Array(0), position.offset);
        const at = this.#now();
        for (const { offset, value } of found.records)
          this.#history.seen(name, { offset, id: idOf(value) }, at);
        this.records += found.records.length;
        position.changed = found.nextOffset !== position.offset;
        position.offset = found.nextOffset;
      }
    }
  }

  async #find(client: Client, topicId: string, partition: number): Promise<Position> {
    for (const position of this.#positions)
      if (position.partition === partition && (await client.topicId(position.topic)) === topicId)
        return position;
    throw new Error(
      `tail: the broker answered for ${topicId}-${partition}, which nobody asked for`,
    );
  }
}
