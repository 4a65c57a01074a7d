/** The order of a run: processes, durabilities, works, rounds, and the brokers in turn within a round. */
import { type BrokerSpec, type Durability, RunningBroker } from './broker.ts';
import { makeDirectory, removeDirectory } from './children.ts';
import { requireKcat } from './kcat.ts';
import type { Figures } from './measure.ts';
import { type Options, rowWanted } from './options.ts';
import { connectionWorks } from './works/connections.ts';
import { fanOutWorks } from './works/fan_out.ts';
import { latencyWorks } from './works/latency.ts';
import { lifeWorks } from './works/life.ts';
import { throughputWorks, warmUp } from './works/throughput.ts';
import type { LifeWork, RoundContext, SharedWork, Work } from './works/work.ts';

/** One line of raw output. */
export interface RoundResult extends Figures {
  broker: string;
  /** Counted from 1. */
  process: number;
  /** Round 0 is not counted. */
  round: number;
}

export interface RunnerEvents {
  log: (text: string) => void;
  result: (result: RoundResult) => void;
}

const WORKS: readonly Work[] = [
  ...throughputWorks,
  ...latencyWorks,
  ...connectionWorks,
  ...fanOutWorks,
  ...lifeWorks,
];

export class Runner {
  readonly #options: Options;
  readonly #specs: readonly BrokerSpec[];
  readonly #events: RunnerEvents;
  readonly #deadline: number;

  constructor(options: Options, specs: readonly BrokerSpec[], events: RunnerEvents) {
    this.#options = options;
    this.#specs = specs;
    this.#events = events;
    this.#deadline = performance.now() + options.minutesMax * 60_000;
  }

  async run(): Promise<void> {
    const wanted = WORKS.filter((work) =>
      work.rows.some((row) => rowWanted(row, this.#options.works)),
    );
    const shared = wanted.filter((work) => work.kind === 'shared');
    if (shared.some((work) => throughputWorks.includes(work))) await requireKcat();
    const scratch = makeDirectory(this.#options.directory, 'scratch');
    for (let process = 1; process <= this.#options.processes; process += 1)
      for (const durability of ['os', 'fsync'] as const) {
        const works = shared.filter((work) => work.durability === durability);
        if (works.length > 0) await this.#runProcess(process, durability, works, scratch);
      }
    for (const work of wanted) if (work.kind === 'life') await this.#runLife(work);
    removeDirectory(scratch);
  }

  get #late(): boolean {
    return performance.now() > this.#deadline;
  }

  async #runProcess(
    process: number,
    durability: Durability,
    works: readonly SharedWork[],
    scratch: string,
  ): Promise<void> {
    if (this.#late) return;
    const running: RunningBroker[] = [];
    try {
      for (const spec of this.#specs) {
        if (durability === 'fsync' && !spec.can.flush) continue;
        const broker = await RunningBroker.place(spec, this.#launch());
        running.push(broker);
        broker.start(durability);
        await broker.waitUntilAnswers();
      }
      for (const broker of running) {
        const { name, warmUpMiB } = broker.spec;
        if (warmUpMiB === 0) continue;
        this.#events.log(`${name}: warming up with ${warmUpMiB} MiB`);
        const roundKey = `warm-${process}-${durability}`;
        await warmUp({ broker, running, scratch, roundKey, rehearsal: true }, warmUpMiB);
      }
      for (const work of works) await this.#runRounds(work, process, running, scratch);
    } finally {
      for (const broker of running) await broker.discard();
    }
  }

  async #runRounds(
    work: SharedWork,
    process: number,
    running: readonly RunningBroker[],
    scratch: string,
  ): Promise<void> {
    const able = running.filter((broker) => work.needs === 'produce' || broker.spec.can.fetch);
    for (let round = 0; round <= this.#options.rounds; round += 1)
      for (const broker of able) {
        if (this.#late) return this.#events.log('time is up: the remaining rounds are left out');
        const context: RoundContext = {
          broker,
          running,
          scratch,
          roundKey: `${process}-${round}`,
          rehearsal: round === 0,
        };
        this.#report(await work.run(context), broker.spec.name, process, round);
      }
  }

  async #runLife(work: LifeWork): Promise<void> {
    const context = (spec: BrokerSpec) => ({ spec, launch: this.#launch(), log: this.#events.log });
    for (const spec of this.#specs) {
      if (this.#late) return;
      await work.rehearse(context(spec));
    }
    for (let round = 1; round <= this.#options.rounds; round += 1)
      for (const spec of this.#specs) {
        if (this.#late) return this.#events.log('time is up: the remaining rounds are left out');
        this.#report(await work.run(context(spec)), spec.name, 1, round);
      }
  }

  #launch(): { cpu: number; base: string } {
    return { cpu: this.#options.serverCpu, base: this.#options.directory };
  }

  #report(figures: readonly Figures[], broker: string, process: number, round: number): void {
    for (const figure of figures)
      if (rowWanted(figure.work, this.#options.works))
        this.#events.result({ ...figure, broker, process, round });
  }
}
