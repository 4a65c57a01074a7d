/**
 * One run of a program on a simulated machine: whatever it wanted to do later goes with it when it dies, and waits, in
 * order, while it is stopped (SIGSTOP).
 */
import type { Timeline } from './timeline.ts';

export class SimProcess {
  readonly timeline: Timeline;
  /** Number of the machine. */
  readonly machineId: number;
  readonly #onRun: (machineId: number) => void;
  #isAlive: boolean = true;
  #isStopped: boolean = false;
  /** What is to run once the process goes on. Invariant: not empty for no longer than it takes to catch up. */
  #backlog: (() => void)[] = [];

  /** @param onRun is told of every step that the process takes */
  constructor(timeline: Timeline, machineId: number, onRun: (machineId: number) => void) {
    this.timeline = timeline;
    this.machineId = machineId;
    this.#onRun = onRun;
  }

  get isAlive(): boolean {
    return this.#isAlive;
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** Runs the function in this process: now, later if it is stopped, never if it is dead. */
  run(step: () => void): void {
    if (!this.#isAlive) return;
    if (this.#isStopped || this.#backlog.length > 0) {
      this.#backlog.push(step);
      return;
    }
    this.#onRun(this.machineId);
    step();
  }

  after(delayMs: number, step: () => void): () => void {
    return this.timeline.after(delayMs, () => this.run(step));
  }

  die(): void {
    this.#isAlive = false;
    this.#backlog = [];
  }

  stop(): void {
    this.#isStopped = true;
  }

  /** Goes on: what came meanwhile is done first, in the order in which it came. */
  goOn(): void {
    if (!this.#isStopped) return;
    this.#isStopped = false;
    this.#catchUp();
  }

  #catchUp(): void {
    if (this.#isStopped || this.#backlog.length === 0) return;
    this.timeline.after(0, () => {
      if (this.#isStopped || !this.#isAlive) return;
      const step = this.#backlog[0];
      if (step === undefined) return;
      this.#onRun(this.machineId);
      step();
      this.#backlog.shift();
      this.#catchUp();
    });
  }
}
