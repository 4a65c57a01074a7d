/** A producer that goes on and on: a process of other people's client, and the acknowledgements that it notes. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { NotedLines } from './noted_lines.ts';
import type { Program } from './peers/program_peer.ts';

export interface StreamOptions {
  readonly bootstrap: string;
  readonly topic: string;
  readonly partitions: number;
  readonly pauseMs: number;
  /** Of librdkafka alone: its own, over the defaults. */
  readonly settings?: Readonly<Record<string, string | number>>;
}

export interface Acknowledged {
  readonly partition: number;
  readonly number: number;
  readonly offset: number;
  /** When it was told, in milliseconds since 1970; of librdkafka alone. */
  readonly ms?: number;
}

/** What it has to say in the end: how many records it has sent to each partition. */
interface Ended {
  readonly sent: readonly number[];
}

const lookAgainMs = 50;

export class StreamProducer {
  readonly #program: Program;
  readonly #noted: NotedLines<Acknowledged | Ended>;
  readonly #stop: string;
  readonly #partitions: number;
  readonly #run: Promise<Error | null>;
  #failure: Error | null = null;

  constructor(program: Program, options: StreamOptions) {
    this.#program = program;
    this.#partitions = options.partitions;
    const output = join(program.dir, 'acknowledged');
    this.#noted = new NotedLines(output);
    this.#stop = join(program.dir, 'stop');
    const command = { command: 'stream', ...options, output, stop: this.#stop };
    this.#run = program.run(command).then(
      () => null,
      (error: Error) => {
        this.#failure = error;
        return error;
      },
    );
  }

  /** Throws what the client has given up with, if it has. */
  assertHealthy(): void {
    if (this.#failure !== null) throw this.#failure;
  }

  /** Resolves when `count` records more than now have been acknowledged in each partition. */
  async progressed(count: number, withinMs: number): Promise<void> {
    const goals = this.#counts().map((before) => before + count);
    const deadline = performance.now() + withinMs;
    for (;;) {
      this.assertHealthy();
      const counts = this.#counts();
      if (counts.every((now, partition) => now >= goals[partition]!)) return;
      if (performance.now() > deadline)
        throw new Error(
          `not ${count} records more in each partition within ${withinMs} ms: ${counts}, wanted ${goals}; it said\n${this.#program.errors}`,
        );
      await sleep(lookAgainMs);
    }
  }

  /** The longest time between two acknowledgements of a partition, the later one of them after `sinceMs`, by partition. */
  gapsSince(sinceMs: number): number[] {
    const last = new Map<number, number>();
    const gaps = new Array<number>(this.#partitions).fill(0);
    for (const line of this.#noted.lines()) {
      if (!('partition' in line) || line.ms === undefined) continue;
      const { partition, ms } = line;
      if (ms > sinceMs)
        gaps[partition] = Math.max(gaps[partition]!, ms - (last.get(partition) ?? ms));
      last.set(partition, ms);
    }
    return gaps;
  }

  /** The offset behind the last acknowledged record, by partition. */
  ends(): number[] {
    const ends = new Array<number>(this.#partitions).fill(0);
    for (const line of this.#noted.lines())
      if ('partition' in line)
        ends[line.partition] = Math.max(ends[line.partition]!, line.offset + 1);
    return ends;
  }

  #counts(): number[] {
    const counts = new Array<number>(this.#partitions).fill(0);
    for (const line of this.#noted.lines()) if ('partition' in line) counts[line.partition]! += 1;
    return counts;
  }

  /** Sends nothing more. Resolves when all is acknowledged; throws when the client gives up on something. */
  async finish(): Promise<{ acknowledged: readonly Acknowledged[]; sent: readonly number[] }> {
    writeFileSync(this.#stop, '');
    const error = await this.#run;
    if (error !== null) throw error;
    const lines = this.#noted.lines();
    const ended = lines.find((line) => 'sent' in line);
    assert(ended !== undefined);
    return { acknowledged: lines.filter((line) => 'partition' in line), sent: ended.sent };
  }

  async close(): Promise<void> {
    await this.#program.close();
  }
}
