/** A member of a consumer group in this process: the client's consumer with a client of its own, and what it lives through. */
import assert from 'node:assert/strict';
import {
  Client,
  type Consumer,
  type ConsumerOptions,
  type Message,
} from '../../net/client/client.ts';
import type { MemberEvent } from './position_rule.ts';
import type { GroupParticipant } from './watched_group.ts';

export interface ClientMemberOptions
  extends Pick<ConsumerOptions, 'protocol' | 'strategy' | 'instanceId'> {
  readonly bootstrap: string | readonly string[];
  readonly topic: string;
  readonly group: string;
  /** Throws where a message is not what it is to be. */
  readonly check?: (message: Message<Buffer, Buffer>) => void;
}

export class ClientMember implements GroupParticipant {
  readonly name: string;
  readonly consumer: Consumer;
  /** What has happened to it, in order. */
  readonly events: MemberEvent[] = [];
  /** What has happened to partitions, in order: `+1` came, `-1` went. */
  readonly changes: string[] = [];
  readonly #client: Client;
  readonly #check: (message: Message<Buffer, Buffer>) => void;
  readonly #running: Promise<void>;
  readonly #owned = new Set<number>();
  /** The offset that is due, by partition, where something of it has been read since it came. */
  readonly #due = new Map<number, number>();
  #hasLeft: boolean = false;
  #failure: Error | null = null;

  constructor(name: string, options: ClientMemberOptions) {
    const { bootstrap, topic, group, check = () => undefined, ...kind } = options;
    this.name = name;
    this.#check = check;
    this.#client = new Client({ bootstrap, clientId: name });
    this.consumer = this.#client.consumer({
      ...{ topics: [topic], group, from: 'earliest', ...kind },
      ...{ sessionTimeoutMs: 6_000, heartbeatIntervalMs: 500, autoCommit: { intervalMs: 100 } },
      onRebalance: ({ type, partitions }) => {
        this.#note(
          type === 'assigned',
          partitions.map(({ partition }) => partition),
        );
      },
    });
    this.#running = this.#run().catch((error: unknown) => {
      this.#failure = error instanceof Error ? error : new Error(String(error));
    });
  }

  /** What its loop has thrown, if it has. */
  get failure(): Error | null {
    return this.#failure;
  }

  get state(): string {
    const end = this.#failure === null ? '' : `, ended: ${this.#failure.message}`;
    return `${this.name}: has ${this.assigned}, ${this.changes.join(' ')}${end}`;
  }

  /** How often what it has has changed. */
  get rebalances(): number {
    return this.events.filter((event) => 'assigned' in event).length;
  }

  /** What the consumer has now; nothing once it has left. */
  get assigned(): number[] {
    if (this.#hasLeft) return [];
    return this.consumer.assignment.map(({ partition }) => partition).sort((a, b) => a - b);
  }

  /** `partition offset` of each message, in their order. */
  get processed(): string[] {
    return this.events.flatMap((event) =>
      'partition' in event ? [`${event.partition} ${event.offset}`] : [],
    );
  }

  /** Leaves the group in good order. */
  async leave(): Promise<void> {
    this.#hasLeft = true;
    await this.consumer.close();
    await this.#running;
    await this.#client.close();
    if (this.#failure !== null) throw this.#failure;
  }

  /** Its connections break, and it says nothing more. */
  async crash(): Promise<void> {
    this.#hasLeft = true;
    await this.#client.close();
    await this.#running;
  }

  /** Leaves if it has not. */
  async close(): Promise<void> {
    await this.leave().catch(() => undefined);
  }

  async #run(): Promise<void> {
    for await (const message of this.consumer) {
      const { partition, offset } = message;
      const due = this.#due.get(partition) ?? offset;
      assert.equal(offset, due, `${this.name}: partition ${partition}`);
      this.#due.set(partition, offset + 1);
      this.#check(message);
      this.events.push({ partition, offset });
    }
  }

  #note(isGain: boolean, partitions: readonly number[]): void {
    for (const partition of partitions) {
      this.changes.push(`${isGain ? '+' : '-'}${partition}`);
      this.#due.delete(partition);
      if (isGain) this.#owned.add(partition);
      else this.#owned.delete(partition);
    }
    this.events.push({ assigned: [...this.#owned] });
  }
}
