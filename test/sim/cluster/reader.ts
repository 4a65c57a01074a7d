/**
 * A consumer without a group: reads each partition from its beginning, knows the leader's epoch as Kafka's clients do
 * (KIP-320), and must see what is committed, in order and without a gap, for ever.
 */
import assert from 'node:assert/strict';
import { lastOffsetOf, sizeOf } from '../../../engine/batch/header.ts';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { Client, type ClientWorld } from './client.ts';
import type { ReadAnswer } from './client_api.ts';
import type { CommittedLog } from './committed_log.ts';
import { isFailure } from './network.ts';

const maxBytesChoices = [200, 2_000, 50_000] as const;

export class Reader {
  readonly #client: Client;
  readonly #positions: number[];

  constructor(world: ClientWorld, id: number, seed: number) {
    this.#client = new Client(world, `reader${id}`, 3000 + id, seed);
    this.#positions = world.committed.map(() => 0);
  }

  get machineId(): number {
    return this.#client.process.machineId;
  }

  get positions(): readonly number[] {
    return this.#positions;
  }

  start(): void {
    for (const partition of this.#positions.keys()) this.#later(partition, 1);
  }

  #later(partition: number, delayMs: number): void {
    this.#client.process.after(delayMs, () => this.#read(partition));
  }

  #read(partition: number): void {
    const { random } = this.#client;
    const { leader, leaderEpoch } = this.#client.leaderOf(partition);
    if (leader === -1) {
      this.#later(partition, 10 + random.below(50));
      return;
    }
    const offset = this.#positions[partition] as number;
    const maxBytes = maxBytesChoices[random.below(maxBytesChoices.length)] as number;
    const request = { type: 'read', partition, offset, leaderEpoch, maxBytes } as const;
    this.#client.ask(leader, request, (answer) => this.#answered(partition, offset, answer));
  }

  #answered(partition: number, offset: number, answer: unknown): void {
    const { random, world, name } = this.#client;
    if (isFailure(answer)) {
      this.#client.refresh();
      this.#later(partition, 20 + random.below(100));
      return;
    }
    const { errorCode, bytes } = answer as ReadAnswer;
    assert(
      errorCode !== ErrorCode.OFFSET_OUT_OF_RANGE,
      `I6 ${name} has read partition ${partition} up to ${offset}, and is told that it does not reach there`,
    );
    if (errorCode !== ErrorCode.NONE) {
      world.count(`read error ${errorCode}`);
      this.#client.refresh();
      this.#later(partition, 20 + random.below(100));
      return;
    }
    this.#take(partition, offset, bytes);
    this.#later(partition, bytes.length > 0 ? 10 + random.below(40) : 50 + random.below(200));
  }

  #take(partition: number, offset: number, bytes: Uint8Array): void {
    const { world, name } = this.#client;
    if (bytes.length === 0) return;
    const committed = world.committed[partition] as CommittedLog;
    let last = 0;
    for (let at = 0; at < bytes.length; at += sizeOf(bytes, at)) last = at;
    const next = lastOffsetOf(bytes, last) + 1;
    assert(
      next <= committed.endOffset,
      `I6 ${name} is shown partition ${partition} up to ${next}; committed is up to ${committed.endOffset}`,
    );
    committed.verify(name, bytes, offset);
    world.count('batches read');
    this.#positions[partition] = next;
  }
}
