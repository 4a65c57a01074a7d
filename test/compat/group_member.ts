/** A member of a consumer group: a process of another people's client, and what it notes of its life. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { MemberEvent } from '../harness/position_rule.ts';
import type { GroupParticipant } from '../harness/watched_group.ts';
import { NotedLines } from './noted_lines.ts';
import type { Program } from './peers/program_peer.ts';

export interface MemberOptions {
  readonly bootstrap: string;
  readonly topic: string;
  readonly group: string;
  readonly strategy: 'eager' | 'cooperative';
  /** Of a static member, or null. */
  readonly instance: string | null;
  readonly protocol: 'classic' | 'consumer';
}

export class GroupMember implements GroupParticipant {
  readonly name: string;
  readonly #program: Program;
  readonly #life: NotedLines<MemberEvent>;
  readonly #stop: string;
  readonly #run: Promise<Error | null>;
  #error: Error | null = null;

  constructor(name: string, program: Program, options: MemberOptions) {
    this.name = name;
    this.#program = program;
    const output = join(program.dir, 'life');
    this.#life = new NotedLines(output);
    this.#stop = join(program.dir, 'stop');
    const command = { command: 'member', ...options, output, stop: this.#stop };
    // The answer comes at the end of its life, which nobody may wait for.
    this.#run = program.run(command).then(
      () => null,
      (error: Error) => {
        this.#error = error;
        return error;
      },
    );
  }

  /** Why it has ended before its time, if it has. */
  get failure(): Error | null {
    return this.#error;
  }

  /** What its program said and, if it has ended before its time, why. */
  get state(): string {
    const { name, assignments } = this;
    const end = this.#error === null ? '' : `, ended: ${this.#error.message}`;
    return `${name}: ${JSON.stringify(assignments)}${end}\n${this.#program.errors}`;
  }

  /** All that it has noted so far. */
  get events(): readonly MemberEvent[] {
    return this.#life.lines();
  }

  /** What it had after each rebalance. */
  get assignments(): (readonly number[])[] {
    return this.events.flatMap((event) => ('assigned' in event ? [event.assigned] : []));
  }

  /** How often what it has has changed. */
  get rebalances(): number {
    return this.assignments.length;
  }

  /** The partitions that it has. */
  get assigned(): readonly number[] {
    return this.assignments.at(-1) ?? [];
  }

  /** `partition offset` of each record that it processed. */
  get processed(): string[] {
    return this.events.flatMap((event) =>
      'partition' in event ? [`${event.partition} ${event.offset}`] : [],
    );
  }

  /** Leaves the group in good order. */
  async leave(): Promise<void> {
    writeFileSync(this.#stop, '');
    const error = await this.#run;
    if (error !== null) throw new Error(`${this.name}: ${error.message}`, { cause: error });
  }

  /** Dies without a word. */
  async crash(): Promise<void> {
    await this.#program.kill();
    await this.#run;
  }

  async close(): Promise<void> {
    await this.#program.close();
  }
}
