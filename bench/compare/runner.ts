/** The order of a run: processes, durabilities, works, rounds, and the brokers in turn within a round. */
import { type BrokerSpec, type Durability, RunningBroker } from './broker.ts';
import { makeDirectory, removeDirectory } from './children.ts';
import { requireKcat } from './kcat.ts';
import type { Figures } from './measure.ts';
import { type Options, rowWanted } from './options.ts';
import { bulkWorks } from './works/bulk.ts';
import { coldReaderWorks } from './works/cold_reader.ts';
import { connectionWorks } from './works/connections.ts';
import { fanOutWorks } from './works/fan_out.ts';
import { groupWorks } from './works/groups.ts';
import { idleConnectionWorks } from './works/idle_connections.ts';
import { insideWorks } from './works/inside.ts';
import { latencyWorks } from './works/latency.ts';
import { lifeWorks } from './works/life.ts';
import { shardWorks } from './works/shards.ts';
import { storedOffsetWorks } from './works/stored_offsets.ts';
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
  ...bulkWorks,
  ...latencyWorks,
  ...connectionWorks,
  ...fanOutWorks,
  ...shardWorks,
  ...lifeWorks,
  ...idleConnectionWorks,
  ...insideWorks,
  ...coldReaderWorks,
  ...groupWorks,
  ...storedOffsetWorks,
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
    if (wanted.length === 0) throw new Error(`no such row: ${this.#options.works.join(', ')}`);
    const shared = wanted.filter((work) => work.kind === 'shared');
    await requireKcat();
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
    const { rounds, stolenMax } = this.#options;
    let counted = 0;
    // As many rounds may be repeated as there are: on a host that is never quiet, what is there has to count.
    for (let tried = 0; counted < rounds && tried <= rounds * 2; tried += 1) {
      const shared = { running, scratch, roundKey: `${process}-${tried}`, rehearsal: tried === 0 };
      const figures = await this.#runRound(work, able, shared);
      if (figures === null)
        return this.#events.log('time is up: the remaining rounds are left out');
      const isDisturbed = [...figures.values()].flat().some((one) => isStolenFrom(one, stolenMax));
      const isSpare = rounds - counted <= rounds * 2 - tried;
      const counts = tried > 0 && !(isDisturbed && isSpare);
      if (isDisturbed && tried > 0)
        this.#events.log(`more than ${stolenMax} % stolen${counts ? '' : ': to be repeated'}`);
      if (counts) counted += 1;
      for (const [broker, one] of figures)
        this.#report(one, broker.spec.name, process, counts ? counted : 0);
    }
  }

  /** All brokers in turn; null when time was up before the last one. */
  async #runRound(
    work: SharedWork,
    able: readonly RunningBroker[],
    shared: Omit<RoundContext, 'broker'>,
  ): Promise<Map<RunningBroker, Figures[]> | null> {
    const figures = new Map<RunningBroker, Figures[]>();
    for (const broker of able) {
      if (this.#late) return null;
      figures.set(broker, await work.run({ ...shared, broker }));
    }
    return figures;
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

/** The host took more of this machine's CPUs than the figures can bear. */
function isStolenFrom({ values }: Figures, stolenMax: number): boolean {
  const stolen: number | undefined = values['stolenPercent'];
  return stolen !== undefined && stolen > stolenMax;
}
