/**
 * What batches must look like, for topics whose partitions other shards own: the connection's shard checks them.
 *
 * Thread: the connection's shard. Made when first asked for; forgotten when the topic's settings change.
 */
import type { BatchRules } from '../engine/batch/rules.ts';
import type { MetadataImage } from '../replication/metadata/image.ts';
import { batchRulesOf } from '../replication/partition/leader.ts';
import type { BrokerConfig } from './config/broker_config.ts';
import { logConfigFor } from './config/topic_config.ts';

export class TopicRules {
  readonly #image: MetadataImage;
  readonly #config: BrokerConfig;
  readonly #byId = new Map<string, BatchRules>();

  constructor(image: MetadataImage, config: BrokerConfig) {
    this.#image = image;
    this.#config = config;
  }

  /** The caller sets `nowMs` before each use. */
  of(topicId: string): BatchRules {
    let rules = this.#byId.get(topicId);
    if (rules === undefined) {
      const name = this.#image.topicById(topicId)?.name ?? '';
      rules = batchRulesOf(name, logConfigFor(this.#image.topicConfigs(name), this.#config));
      this.#byId.set(topicId, rules);
    }
    return rules;
  }

  forget(topicId: string): void {
    this.#byId.delete(topicId);
  }
}
