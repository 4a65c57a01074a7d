/** What the tests of metadata share: a controller that leads, a seeded generator, requests with defaults. */
import assert from 'node:assert/strict';
import type { SilentNode } from '../../../replication/metadata/broker_sessions.ts';
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
  NewTopic,
} from '../../../replication/metadata/controller_api.ts';
import { MetadataImage } from '../../../replication/metadata/image.ts';
import type {
  MetadataRecord,
  PartitionChangeRecord,
} from '../../../replication/metadata/records.ts';
import { splitMix } from '../../harness/split_mix.ts';

/** Distinct ids in the form of Kafka's uuids: 16 bytes in base64url. */
export function uuids(prefix: number): () => string {
  let count = 0;
  return () => {
    count += 1;
    const bytes = Buffer.alloc(16);
    bytes.writeUInt32BE(prefix, 0);
    bytes.writeUInt32BE(count, 12);
    return bytes.toString('base64url');
  };
}

export const clusterId = 'testClusterIdOfTests00';

export function controllerOptions(overrides: Partial<ControllerOptions> = {}): ControllerOptions {
  return {
    nodeId: 1,
    defaultPartitions: 1,
    defaultReplicationFactor: 1,
    deleteTopicEnable: true,
    sessionTimeoutMs: null,
    leaderBalanceIntervalMs: null,
    minInsyncReplicas: 1,
    uncleanLeaderElectionEnable: false,
    formationFeatures: [{ name: 'metadata.version', level: 33 }],
    random: splitMix(1),
    newUuid: uuids(7),
    checkTopicConfigs: (configs) => {
      const bad = configs.find(({ name }) => name.startsWith('bad.'));
      if (bad !== undefined) return { error: `${bad.name} is bad`, values: new Map() };
      return {
        error: null,
        values: new Map(configs.map(({ name, value }) => [name, value ?? ''])),
      };
    },
    checkBrokerConfigs: (_resourceName, configs) => {
      const bad = configs.find(({ name }) => name.startsWith('bad.'));
      if (bad !== undefined) return { error: `${bad.name} is bad`, values: new Map() };
      return {
        error: null,
        values: new Map(configs.map(({ name, value }) => [name, value ?? ''])),
      };
    },
    listDefault: (_type, name) => (name.startsWith('list.') ? 'a' : undefined),
    ...overrides,
  };
}

/** A controller that leads, with its log: what it appended, offset by offset. */
export class TestController {
  readonly controller: Controller;
  readonly log: MetadataRecord[] = [];
  nowMs = 0;
  /** The tick that the controller wants. */
  wakeAtMs: number = Number.POSITIVE_INFINITY;
  #epoch = 0;

  constructor(overrides: Partial<ControllerOptions> = {}) {
    this.controller = new Controller(controllerOptions(overrides));
    this.elect(new MetadataImage(clusterId));
  }

  /** It leads, from what `image` holds. */
  elect(image: MetadataImage, silent: SilentNode | null = null): MetadataRecord[] {
    this.#epoch += 1;
    const { log, nowMs } = this;
    const epoch = this.#epoch;
    const nextOffset = log.length;
    return this.take(
      this.controller.step({ type: 'elected', epoch, nextOffset, image, silent, nowMs }),
    );
  }

  resign(): void {
    this.wakeAtMs = Number.POSITIVE_INFINITY;
    this.take(this.controller.step({ type: 'resigned', nowMs: this.nowMs }));
  }

  /** Leadership moves away and comes back; nothing is lost. */
  failOver(silent: SilentNode | null = null): MetadataRecord[] {
    const image = this.controller.image.copy();
    this.resign();
    return this.elect(image, silent);
  }

  /** Time passes, with the ticks that are wanted. */
  advance(ms: number): MetadataRecord[] {
    const before = this.log.length;
    const untilMs = this.nowMs + ms;
    while (this.wakeAtMs <= untilMs) {
      this.nowMs = Math.max(this.nowMs, this.wakeAtMs);
      this.wakeAtMs = Number.POSITIVE_INFINITY;
      this.take(this.controller.step({ type: 'tick', nowMs: this.nowMs }));
    }
    this.nowMs = untilMs;
    return this.log.slice(before);
  }

  /** Returns the records of the effects. */
  take(effects: readonly ControllerEffect[]): MetadataRecord[] {
    const before = this.log.length;
    for (const effect of effects) {
      if (effect.type === 'append') this.log.push(...effect.records);
      if (effect.type === 'wakeAt') this.wakeAtMs = effect.atMs;
    }
    return this.log.slice(before);
  }

  /** The records that the request appended, and its reply. */
  ask<K extends ControllerRequestType>(
    request: ControllerRequest & { readonly type: K },
  ): { records: MetadataRecord[]; reply: ControllerReply<ControllerApi[K]['result']> } {
    const before = this.log.length;
    const { nowMs } = this;
    const effects = this.controller.step({ type: 'request', requestId: 5, request, nowMs });
    this.take(effects);
    const reply = effects.find((effect) => effect.type === 'reply');
    assert(reply?.requestId === 5);
    assert.equal(reply.afterOffset, this.log.length - 1);
    return {
      records: this.log.slice(before),
      reply: reply.reply as ControllerReply<ControllerApi[K]['result']>,
    };
  }

  /** The same for requests that must have a result. */
  result<K extends ControllerRequestType>(
    request: ControllerRequest & { readonly type: K },
  ): ControllerApi[K]['result'] {
    const { reply } = this.ask<K>(request);
    assert(reply.result !== null, `error ${reply.errorCode}`);
    return reply.result;
  }

  register(brokerId: number, overrides: Partial<RegisterBroker> = {}): number {
    return this.result<'registerBroker'>(registration(brokerId, overrides)).brokerEpoch;
  }
}

type RegisterBroker = ControllerRequest & { readonly type: 'registerBroker' };

export function registration(
  brokerId: number,
  overrides: Partial<RegisterBroker> = {},
): RegisterBroker {
  return {
    type: 'registerBroker',
    brokerId,
    incarnationId: uuids(100 + brokerId)(),
    endPoints: [{ name: 'PLAINTEXT', host: '127.0.0.1', port: 9092, securityProtocol: 0 }],
    features: [{ name: 'metadata.version', minSupportedVersion: 7, maxSupportedVersion: 33 }],
    rack: null,
    logDirs: [uuids(200 + brokerId)()],
    previousBrokerEpoch: -1,
    damagedReplicas: [],
    ...overrides,
  };
}

export function newTopic(name: string, overrides: Partial<NewTopic> = {}): NewTopic {
  return {
    name,
    numPartitions: -1,
    replicationFactor: -1,
    assignments: [],
    configs: [],
    ...overrides,
  };
}

/** Of partition 0, with nothing changed but what `changes` has. */
export function partitionChange(
  topicId: string,
  changes: Partial<PartitionChangeRecord>,
): PartitionChangeRecord {
  return {
    type: 'PartitionChangeRecord',
    partitionId: 0,
    topicId,
    isr: null,
    leader: -2,
    replicas: null,
    removingReplicas: null,
    addingReplicas: null,
    leaderRecoveryState: -1,
    directories: null,
    eligibleLeaderReplicas: null,
    lastKnownElr: null,
    ...changes,
  };
}
