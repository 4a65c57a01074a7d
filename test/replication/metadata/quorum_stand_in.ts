/** A controller on a log that commits when its test says so, and that loses what is not committed with its leader. */
import assert from 'node:assert/strict';
import {
  Controller,
  type ControllerEffect,
  type ControllerOptions,
} from '../../../replication/metadata/controller.ts';
import type {
  ControllerApi,
  ControllerReply,
  ControllerRequest,
  ControllerRequestType,
} from '../../../replication/metadata/controller_api.ts';
import { MetadataImage } from '../../../replication/metadata/image.ts';
import type { MetadataBatch } from '../../../replication/metadata/records.ts';
import { clusterId } from './fixtures.ts';

export class QuorumStandIn {
  /** What is committed. */
  readonly image: MetadataImage = new MetadataImage(clusterId);
  readonly #controller: Controller;
  readonly #onRecord: () => void;
  readonly #log: MetadataBatch[] = [];
  /** Brokers that this controller has heard of in their present life. */
  readonly heard: Set<number> = new Set();
  #committedCount = 0;
  #term = 0;
  #nextOffset = 0;
  #nowMs = 0;

  /** @param onRecord called when a record is committed and in the image */
  constructor(options: ControllerOptions, onRecord: () => void) {
    this.#controller = new Controller(options);
    this.#onRecord = onRecord;
    this.#elect();
  }

  /** What the controller sees. */
  get ahead(): MetadataImage {
    return this.#controller.image;
  }

  ask<K extends ControllerRequestType>(
    request: ControllerRequest & { readonly type: K },
  ): ControllerReply<ControllerApi[K]['result']> {
    const nowMs = this.#nowMs;
    const effects = this.#controller.step({ type: 'request', requestId: 1, request, nowMs });
    this.#take(effects);
    const reply = effects.find((effect) => effect.type === 'reply');
    assert(reply !== undefined);
    if (reply.reply.result !== null) this.#note(request);
    return reply.reply as ControllerReply<ControllerApi[K]['result']>;
  }

  pass(ms: number): void {
    this.#nowMs += ms;
    this.#take(this.#controller.step({ type: 'tick', nowMs: this.#nowMs }));
  }

  unreachable(brokerId: number): void {
    const nowMs = this.#nowMs;
    this.#take(this.#controller.step({ type: 'brokerUnreachable', brokerId, nowMs }));
  }

  get openCount(): number {
    return this.#log.length - this.#committedCount;
  }

  /** Commits the next batches, record by record: one batch may change a partition several times. */
  commit(batches: number): void {
    for (const batch of this.#log.slice(this.#committedCount, this.#committedCount + batches))
      batch.records.forEach((record, at) => {
        const lastOffset = batch.firstOffset + at;
        this.image.apply({ ...batch, firstOffset: lastOffset, lastOffset, records: [record] });
        this.#onRecord();
      });
    this.#committedCount += batches;
  }

  /** Another controller takes over, without what was not committed. */
  failOver(): void {
    this.#log.length = this.#committedCount;
    this.#nextOffset = this.image.offset + 1;
    this.heard.clear();
    this.#controller.step({ type: 'resigned', nowMs: this.#nowMs });
    this.#elect();
  }

  #note(granted: ControllerRequest): void {
    if (granted.type === 'brokerHeartbeat') this.heard.add(granted.brokerId);
    if (granted.type === 'registerBroker') this.heard.delete(granted.brokerId);
  }

  #elect(): void {
    this.#term += 1;
    const epoch = this.#term;
    const nextOffset = this.#nextOffset;
    const nowMs = this.#nowMs;
    const { image } = this;
    const silent = null;
    this.#take(this.#controller.step({ type: 'elected', epoch, nextOffset, image, silent, nowMs }));
  }

  #take(effects: readonly ControllerEffect[]): void {
    for (const effect of effects) {
      if (effect.type !== 'append') continue;
      const { records } = effect;
      const firstOffset = this.#nextOffset;
      this.#nextOffset += records.length;
      const at = { firstOffset, lastOffset: this.#nextOffset - 1, epoch: this.#term, leaderId: 1 };
      this.#log.push({ snapshot: false, records, ...at });
    }
  }
}
