/** A producer that does not wait for all replicas (acks=1 and acks=0) and sends nothing twice: its records may be lost. */
import { encodeBatch } from '../../../engine/batch/encode.ts';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { Client, type ClientWorld } from './client.ts';
import type { ProduceAnswer } from './client_api.ts';
import { isFailure } from './network.ts';

export class HastyProducer {
  readonly #client: Client;
  readonly #id: number;
  readonly #everyMs: number;
  #count = 0;
  isEnding: boolean = false;

  constructor(world: ClientWorld, id: number, seed: number, everyMs: number) {
    this.#client = new Client(world, `hasty${id}`, 2000 + id, seed);
    this.#id = id;
    this.#everyMs = everyMs;
  }

  get machineId(): number {
    return this.#client.process.machineId;
  }

  start(): void {
    const { random, process } = this.#client;
    process.after(1 + random.below(this.#everyMs), () => {
      if (this.isEnding) return;
      this.#produce();
      this.start();
    });
  }

  #produce(): void {
    const { random, world } = this.#client;
    const partition = random.below(world.committed.length);
    const { leader } = this.#client.leaderOf(partition);
    if (leader === -1) return;
    this.#count += 1;
    const value = Buffer.from(`hasty ${this.#id} ${this.#count}`);
    const timestamp = BigInt(1_700_000_000_000 + Math.floor(world.timeline.nowMs));
    const batch = encodeBatch({ records: [{ value, timestamp }] });
    const acks = random.chance(0.7) ? 1 : 0;
    this.#client.ask(leader, { type: 'produce', partition, acks, batch }, (answer) => {
      if (isFailure(answer)) {
        this.#client.refresh();
        return;
      }
      const { errorCode } = answer as ProduceAnswer;
      if (errorCode === ErrorCode.NONE) world.count(`taken with acks=${acks}`);
      else this.#client.refresh();
    });
  }
}
