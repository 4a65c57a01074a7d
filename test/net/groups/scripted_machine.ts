/** A coordinator machine that does what a test says, and remembers what it was told. */
import type {
  CoordinatorEffect,
  CoordinatorEvent,
  Instant,
} from '../../../engine/groups/coordinator_events.ts';
import type { CoordinatorMachine } from '../../../net/groups/partition_coordinator.ts';

export class ScriptedMachine implements CoordinatorMachine {
  nextDeadlineMs: number = Number.POSITIVE_INFINITY;
  readonly events: CoordinatorEvent[] = [];
  readonly ticks: Instant[] = [];
  /** What the next call returns, then nothing again. */
  next: CoordinatorEffect[] = [];

  step(event: CoordinatorEvent): CoordinatorEffect[] {
    this.events.push(event);
    return this.#take();
  }

  tick(now: Instant): CoordinatorEffect[] {
    this.ticks.push(now);
    this.nextDeadlineMs = Number.POSITIVE_INFINITY;
    return this.#take();
  }

  #take(): CoordinatorEffect[] {
    const effects = this.next;
    this.next = [];
    return effects;
  }
}
