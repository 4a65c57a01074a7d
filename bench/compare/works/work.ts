/** What a work is to the runner. */
import type { BrokerSpec, Durability, LaunchOptions, RunningBroker } from '../broker.ts';
import type { Figures } from '../measure.ts';

export interface RoundContext {
  broker: RunningBroker;
  /** All brokers that run on the server CPU now, `broker` among them. */
  running: readonly RunningBroker[];
  /** A directory on the disk under test, for payload files and scratch. */
  scratch: string;
  /** Unique in the run: part of topic names. */
  roundKey: string;
  /** True in the round that is not counted: the place for checks that would cost the others time. */
  rehearsal: boolean;
}

/** A work that runs on brokers that are up, in turn, round by round. */
export interface SharedWork {
  kind: 'shared';
  /** The rows that it can fill; it runs when one of them is asked for. */
  rows: readonly string[];
  durability: Durability;
  /** `fetch` leaves out brokers that cannot be read from. */
  needs: 'produce' | 'fetch';
  run(context: RoundContext): Promise<Figures[]>;
}

export interface LifeContext {
  spec: BrokerSpec;
  launch: LaunchOptions;
  log: (text: string) => void;
}

/** A work that starts, stops and kills brokers of its own, one at a time. */
export interface LifeWork {
  kind: 'life';
  rows: readonly string[];
  /** Not counted: brings caches on the disk (compiled code) into their usual state. */
  rehearse(context: LifeContext): Promise<void>;
  run(context: LifeContext): Promise<Figures[]>;
}

export type Work = SharedWork | LifeWork;
