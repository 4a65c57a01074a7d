/**
 * What batches must look like, for topics whose partitions other shards own: the connection's shard checks them.
 *
 * Thread: the connection's shard. Made when first asked for; forgotten when the topic's settings change.
 */
import type { BatchRules } from '../engine/batch/rules.ts';
import type { MetadataImage } from '../replication/metadata/image.ts';
import { batchRulesOf } from '../replication/partition/batch_rules.ts';
import type { LiveConfig } from './config/live_config.ts';
import { logConfigFor } from './config/topic_config.ts';

export class TopicRules {
  readonly #image: MetadataImage;
  readonly #live: Pick<LiveConfig, 'current'>;
  readonly #byId = new Map<string, BatchRules>();

  constructor(image: MetadataImage, live: Pick<LiveConfig, 'current'>) {
    this.#image = image;
    this.#live = live;
  }

  /** The caller sets `nowMs` before each use. */
  of(topicId: string): BatchRules {
    let rules = this.#byId.get(topicId);
    if (rules === undefined) {
      const name = this.#image.topicById(topicId)?.name ?? '';
      rules = batchRulesOf(name, logConfigFor(this.#image.topicConfigs(name), this.#live.current));
      this.#byId.set(topicId, rules);
    }
    return rules;
  }

  forget(topicId: string): void {
    this.#byId.delete(topicId);
  }

  /** What all topics get from the broker has changed. */
  forgetAll(): void {
    this.#byId.clear();
  }
}
