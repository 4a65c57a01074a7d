/**
 * The rules for single records, one by one and with all bits: for batches of which the framing walk has seen that some
 * record may break one, or that their timestamps do not fit a double. Allocates per record.
 */
import { noTimestamp } from './header.ts';
import { iterateRecordBytes } from './records.ts';
import { type BatchRules, type RecordError, recordErrorsMax } from './rules.ts';

export interface RecordsVerdict {
  /** Largest timestamp, -1 if no record has one, and the first record that has it, else -1. */
  maxTimestamp: bigint;
  maxTimestampIndex: number;
  /** How many records are at fault, and the first of them. */
  errorCount: number;
  errors: RecordError[];
  timestampsAtFault: boolean;
}

/** @param bytes records that the framing walk found to be in order, not compressed */
export function judgeRecords(
  bytes: Uint8Array,
  count: number,
  baseTimestamp: bigint,
  rules: BatchRules,
): RecordsVerdict {
  const verdict: RecordsVerdict = {
    maxTimestamp: noTimestamp,
    maxTimestampIndex: -1,
    errorCount: 0,
    errors: [],
    timestampsAtFault: false,
  };
  const earliest = rules.nowMs - rules.timestampBeforeMaxMs;
  const latest = rules.nowMs + rules.timestampAfterMaxMs;
  for (const record of iterateRecordBytes(bytes, count, baseTimestamp, null)) {
    const { timestamp, offsetDelta: index } = record;
    if (timestamp > verdict.maxTimestamp) {
      verdict.maxTimestamp = timestamp;
      verdict.maxTimestampIndex = index;
    }
    if (rules.compacted && record.key === null) {
      addError(verdict, index, 'a compacted topic takes no record without a key');
    } else if (
      rules.timestampType === 'CreateTime' &&
      timestamp !== noTimestamp &&
      (timestamp < earliest || timestamp > latest)
    ) {
      verdict.timestampsAtFault = true;
      addError(
        verdict,
        index,
        `timestamp ${timestamp} is out of range: it must be within [${earliest}, ${latest}]`,
      );
    }
  }
  return verdict;
}

function addError(verdict: RecordsVerdict, index: number, message: string): void {
  verdict.errorCount += 1;
  if (verdict.errors.length < recordErrorsMax) verdict.errors.push({ index, message });
}
