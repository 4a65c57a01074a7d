/** From a topic's settings to what its batches are checked for. */
import type { BatchRules } from '../../engine/batch/rules.ts';
import type { LogConfig } from '../../engine/log/log_config.ts';
import { isInternalTopic } from '../metadata/topic_name.ts';

/** What a topic with these settings demands of batches; the caller sets `nowMs` before each use. */
export function batchRulesOf(topic: string, config: LogConfig): BatchRules {
  return {
    isInternal: isInternalTopic(topic),
    maxMessageBytes: config.maxMessageBytes,
    timestampType: config.messageTimestampType,
    timestampBeforeMaxMs: limitOf(config.messageTimestampBeforeMaxMs),
    timestampAfterMaxMs: limitOf(config.messageTimestampAfterMaxMs),
    compacted: config.cleanupPolicy.compact,
    nowMs: 0,
    decompressedMaxBytes: config.decompressedMaxBytes,
    trustProducers: false,
  };
}

/** Kafka's 2^63-1 means "no limit", and comes out of the configuration as the largest whole number there. */
function limitOf(ms: number): number {
  return ms >= Number.MAX_SAFE_INTEGER ? Number.POSITIVE_INFINITY : ms;
}
