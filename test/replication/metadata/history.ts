/**
 * Random histories of the controller: whatever is asked in whatever order, across changes of leadership that lose
 * uncommitted records, its invariants hold and every replica of the image is the same.
 */
import assert from 'node:assert/strict';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { Controller, type ControllerEffect } from '../../../replication/metadata/controller.ts';
import type { ControllerRequest } from '../../../replication/metadata/controller_api.ts';
import { MetadataImage } from '../../../replication/metadata/image.ts';
import type { MetadataBatch } from '../../../replication/metadata/records.ts';
import { splitMix } from '../../harness/split_mix.ts';
import { clusterId, controllerOptions, newTopic, registration, uuids } from './fixtures.ts';

export class History {
  readonly #random: (bound: number) => number;
  readonly #controller: Controller;
  /** What is committed, applied batch by batch, as every other thread and host does. */
  readonly #follower = new MetadataImage(clusterId);
  readonly #log: MetadataBatch[] = [];
  #committedCount = 0;
  #epoch = 0;
  #nextOffset = 0;
  #requestId = 0;
  readonly #topicIds = new Set<string>();
  #producerIdsGiven = 0;
  creations = 0;
  deletions = 0;
  losses = 0;

  constructor(seed: number) {
    this.#random = splitMix(seed);
    this.#controller = new Controller(
      controllerOptions({ random: splitMix(seed + 1), newUuid: uuids(seed), nodeId: 1 }),
    );
    this.#elect();
    this.#ask(registration(1));
    this.#commit(true);
  }

  run(steps: number): void {
    for (let step = 0; step < steps; step += 1) {
      const draw = this.#random(100);
      if (draw < 45) this.#ask(this.#createTopics());
      else if (draw < 70) this.#ask(this.#deleteTopics());
      else if (draw < 78) this.#ask(this.#allocate());
      else if (draw < 84) this.#ask(registration(1 + this.#random(3), this.#restart()));
      else if (draw < 97) this.#commit(false);
      else this.#loseLeadership();
      this.#check();
    }
    this.#commit(true);
    this.#check();
    assert.deepEqual(this.#follower.snapshot(), this.#controller.image.snapshot());
  }

  #name(): string {
    return `${'ab'[this.#random(2)]}${'._-'[this.#random(3)]}${this.#random(6)}`;
  }

  #createTopics(): ControllerRequest {
    const topics = Array.from({ length: 1 + this.#random(3) }, () =>
      newTopic(this.#name(), {
        numPartitions: this.#random(5) - 1,
        replicationFactor: this.#random(4) - 1,
        configs: this.#random(3) === 0 ? [{ name: 'k', value: `${this.#random(9)}` }] : [],
      }),
    );
    return { type: 'createTopics', topics, validateOnly: this.#random(8) === 0 };
  }

  #deleteTopics(): ControllerRequest {
    const names = [...this.#controller.image.topics.values()];
    const topic = names[this.#random(Math.max(1, names.length))];
    const byId = this.#random(2) === 0 && topic !== undefined;
    const target = byId
      ? { name: null, topicId: topic.id }
      : { name: topic?.name ?? this.#name(), topicId: null };
    return { type: 'deleteTopics', topics: [target] };
  }

  #allocate(): ControllerRequest {
    const brokerEpoch = this.#controller.image.broker(1)?.epoch ?? -1;
    return { type: 'allocateProducerIds', brokerId: 1, brokerEpoch };
  }

  #restart(): { previousBrokerEpoch: number } {
    return { previousBrokerEpoch: this.#random(2) === 0 ? -1 : this.#random(this.#nextOffset) };
  }

  #ask(request: ControllerRequest): void {
    this.#requestId += 1;
    const { image } = this.#controller;
    const before = new Map([...image.topics.values()].map((topic) => [topic.id, topic.name]));
    const effects = this.#controller.step({
      type: 'request',
      requestId: this.#requestId,
      request,
      nowMs: 0,
    });
    this.#take(effects);
    const last = effects.at(-1);
    assert(last?.type === 'reply' && last.requestId === this.#requestId);
    assert.equal(last.afterOffset, this.#nextOffset - 1, 'a reply waits for all before it');
    const { reply } = last;
    if (reply.errorCode !== ErrorCode.NONE) return;
    if ('firstProducerId' in reply.result) {
      assert(reply.result.firstProducerId >= this.#producerIdsGiven, 'producer ids given twice');
      this.#producerIdsGiven = reply.result.firstProducerId + reply.result.length;
    }
    if (request.type === 'createTopics') this.#checkCreated(request.validateOnly, before);
    if (request.type === 'deleteTopics') this.deletions += before.size - image.topics.size;
  }

  #checkCreated(validateOnly: boolean, before: ReadonlyMap<string, string>): void {
    for (const topic of this.#controller.image.topics.values()) {
      if (before.has(topic.id)) continue;
      assert(!validateOnly, 'validate-only created a topic');
      assert(!this.#topicIds.has(topic.id), `topic id ${topic.id} was used before`);
      this.#topicIds.add(topic.id);
      this.creations += 1;
    }
  }

  #take(effects: readonly ControllerEffect[]): void {
    for (const effect of effects) {
      if (effect.type !== 'append') continue;
      const { records } = effect;
      assert(records.length > 0);
      const firstOffset = this.#nextOffset;
      this.#nextOffset += records.length;
      const lastOffset = this.#nextOffset - 1;
      const epoch = this.#epoch;
      this.#log.push({ snapshot: false, firstOffset, lastOffset, epoch, leaderId: 1, records });
    }
  }

  #commit(all: boolean): void {
    const open = this.#log.length - this.#committedCount;
    const count = all ? open : this.#random(open + 1);
    for (const batch of this.#log.slice(this.#committedCount, this.#committedCount + count)) {
      this.#follower.apply(structuredClone(batch));
    }
    this.#committedCount += count;
  }

  /** Another leads for a moment and what was not committed is cut off; then this one leads again. */
  #loseLeadership(): void {
    this.losses += 1;
    this.#log.length = this.#committedCount;
    this.#nextOffset = this.#follower.offset + 1;
    this.#controller.step({ type: 'resigned', nowMs: 0 });
    this.#producerIdsGiven = this.#follower.nextProducerId;
    this.#elect();
  }

  #elect(): void {
    this.#epoch += 1;
    const epoch = this.#epoch;
    const nextOffset = this.#nextOffset;
    const image = this.#follower;
    const silent = null;
    this.#take(
      this.#controller.step({ type: 'elected', epoch, nextOffset, image, silent, nowMs: 0 }),
    );
  }

  #check(): void {
    const { image } = this.#controller;
    const ids = new Set<string>();
    const metricNames = new Set<string>();
    let partitions = 0;
    for (const topic of image.topics.values()) {
      ids.add(topic.id);
      metricNames.add(topic.name.replaceAll('.', '_'));
      partitions += topic.partitions.length;
      assert.equal(image.topicById(topic.id), topic);
      assert(topic.partitions.length > 0);
      topic.partitions.forEach((partition, index) => {
        assert.equal(partition.partitionId, index);
        assert(partition.isr.includes(partition.leader));
        assert(partition.isr.every((id) => partition.replicas.includes(id)));
        assert.equal(new Set(partition.replicas).size, partition.replicas.length);
        assert.equal(partition.directories.length, partition.replicas.length);
      });
    }
    assert.equal(ids.size, image.topics.size, 'topic ids are unique');
    assert.equal(metricNames.size, image.topics.size, 'names are unique, . and _ alike');
    assert.equal(image.partitionCount, partitions);
    assert.equal(image.offset, this.#nextOffset - 1);
  }
}
