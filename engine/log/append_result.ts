/** What an append tells its caller; one object can be used again and again. */
export interface AppendResult {
  baseOffset: number;
  lastOffset: number;
  /** -1 under CreateTime, but for duplicates: there it is the first one's max timestamp, as in Kafka. */
  logAppendTimeMs: bigint;
  logStartOffset: number;
  /**
   * The batch was here before: the offsets are the first one's. It may still wait for its flush, so the
   * acknowledgement waits for `lastOffset` as it does for a new batch.
   */
  duplicate: boolean;
  /** After a refusal: why, for people; null when the code says it all. */
  errorMessage: string | null;
}

export function newAppendResult(): AppendResult {
  return {
    baseOffset: -1,
    lastOffset: -1,
    logAppendTimeMs: -1n,
    logStartOffset: 0,
    duplicate: false,
    errorMessage: null,
  };
}
