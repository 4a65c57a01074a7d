/** What the tests of metadata share: a controller that leads, a seeded generator, requests with defaults. */
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
  NewTopic,
} from '../../../replication/metadata/controller_api.ts';
import { MetadataImage } from '../../../replication/metadata/image.ts';
import type { MetadataRecord } from '../../../replication/metadata/records.ts';
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

  constructor(overrides: Partial<ControllerOptions> = {}) {
    this.controller = new Controller(controllerOptions(overrides));
    const image = new MetadataImage(clusterId);
    this.take(this.controller.step({ type: 'elected', epoch: 1, nextOffset: 0, image }));
  }

  take(effects: readonly ControllerEffect[]): void {
    for (const effect of effects) if (effect.type === 'append') this.log.push(...effect.records);
  }

  /** The records that the request appended, and its reply. */
  ask<K extends ControllerRequestType>(
    request: ControllerRequest & { readonly type: K },
  ): { records: MetadataRecord[]; reply: ControllerReply<ControllerApi[K]['result']> } {
    const before = this.log.length;
    const effects = this.controller.step({ type: 'request', requestId: 5, request });
    this.take(effects);
    const reply = effects.at(-1);
    assert(reply?.type === 'reply' && reply.requestId === 5);
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
