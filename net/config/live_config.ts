/**
 * The configuration as it is now: what the broker was started with, under what has been set at run time since.
 *
 * Thread: one on each thread that acts on settings, fed from that thread's metadata image. Nothing of it is on disk: the
 * metadata log is what lasts.
 */
import type { MetadataImage } from '../../replication/metadata/image.ts';
import type { Logger } from '../logger.ts';
import type { TopicSettings } from '../shard_context.ts';
import type { BrokerConfig } from './broker_config.ts';
import { withOverrides, withoutEffect } from './dynamic_config.ts';
import { topicSettings } from './topic_settings.ts';

export class LiveConfig {
  readonly #start: BrokerConfig;
  #current: BrokerConfig;
  #topicSettings: TopicSettings;

  constructor(start: BrokerConfig) {
    this.#start = start;
    this.#current = start;
    this.#topicSettings = topicSettings(start);
  }

  get current(): BrokerConfig {
    return this.#current;
  }

  get topicSettings(): TopicSettings {
    return this.#topicSettings;
  }

  /** Takes over what the image says now. @param logger for overrides that this version cannot follow; null is silent */
  follow(image: MetadataImage, logger: Logger | null): void {
    this.#current = withOverrides(this.#start, image, (problem) =>
      logger?.warn({}, `a setting in the metadata is ignored: ${problem}`),
    );
    this.#topicSettings = topicSettings(this.#current);
    const { cluster, broker } = this.#current.overrides;
    const idle = withoutEffect(new Set([...Object.keys(cluster), ...Object.keys(broker)]));
    if (idle.length > 0)
      logger?.warn({}, `set, but without effect in this version of Millrace: ${idle.join(', ')}`);
  }
}
