/** `log.cleaner.*`: what compaction may take of the machine. Of what is compacted and when, topics have the say. */
import type { Settings } from './settings.ts';

export interface CleanerConfig {
  readonly enable: boolean;
  /** Logs that are cleaned at a time. 0: none. */
  readonly threads: number;
  /** Memory of all threads for the keys of what they clean. */
  readonly dedupeBufferSize: number;
  /** Memory of all threads to read into and write from. */
  readonly ioBufferSize: number;
  /** How full the first of the two may get, 0 to 1. */
  readonly ioBufferLoadFactor: number;
  /** Bytes read and written by all threads together. */
  readonly ioMaxBytesPerSecond: number;
  /** How long to wait before the next look when there was nothing to clean. */
  readonly backoffMs: number;
}

export function readCleaner(settings: Settings): { readonly cleaner: CleanerConfig } {
  return {
    cleaner: {
      enable: settings.boolean('log.cleaner.enable'),
      threads: settings.number('log.cleaner.threads'),
      dedupeBufferSize: settings.number('log.cleaner.dedupe.buffer.size'),
      ioBufferSize: settings.number('log.cleaner.io.buffer.size'),
      ioBufferLoadFactor: settings.number('log.cleaner.io.buffer.load.factor'),
      ioMaxBytesPerSecond: settings.number('log.cleaner.io.max.bytes.per.second'),
      backoffMs: settings.number('log.cleaner.backoff.ms'),
    },
  };
}
