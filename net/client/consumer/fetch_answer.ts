/** What a broker's word on one partition of a fetch means. */
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { errorInfo } from '../../protocol/errors.ts';
import type { FetchResponsePartitionData } from '../../protocol/messages.gen.ts';
import { asksForMetadata, brokerError, type MillraceError } from '../errors.ts';

export type FetchTrouble =
  /** Somebody else leads it, or nobody does for now: ask for metadata, then again. */
  | { readonly kind: 'moved' }
  /** May pass by itself. */
  | { readonly kind: 'later' }
  /** The log has been cut: the common history ends at `offset`. */
  | { readonly kind: 'truncated'; readonly offset: number; readonly leaderEpoch: number }
  /** The offset is not in the log. */
  | { readonly kind: 'range'; readonly error: MillraceError }
  | { readonly kind: 'fail'; readonly error: MillraceError };

/** Errors that pass although Kafka's table says nothing of it for fetches. */
const passing: ReadonlySet<number> = new Set([
  ErrorCode.UNKNOWN_TOPIC_ID,
  ErrorCode.INCONSISTENT_TOPIC_ID,
  ErrorCode.UNKNOWN_SERVER_ERROR,
]);

export function classifyFetch(
  data: FetchResponsePartitionData,
  name: string,
  offset: number,
): FetchTrouble | null {
  const { errorCode, divergingEpoch } = data;
  if (errorCode === ErrorCode.NONE) {
    if (divergingEpoch.endOffset < 0n) return null;
    const end = Number(divergingEpoch.endOffset);
    return { kind: 'truncated', offset: end, leaderEpoch: divergingEpoch.epoch };
  }
  if (errorCode === ErrorCode.OFFSET_OUT_OF_RANGE) {
    const remedy =
      'Seek to an offset that there is (`seekToBeginning`, `seekToEnd`), or set `from`.';
    const what = `fetch ${name} from offset ${offset}`;
    return { kind: 'range', error: brokerError(errorCode, what, null, { remedy }) };
  }
  if (errorCode === ErrorCode.CORRUPT_MESSAGE) {
    const remedy = 'Seek to an offset behind the damage to go on without it.';
    const error = brokerError(errorCode, `fetch ${name} from offset ${offset}`, null, { remedy });
    return { kind: 'fail', error };
  }
  if (asksForMetadata(errorCode)) return { kind: 'moved' };
  if (passing.has(errorCode)) return { kind: 'moved' };
  if (errorInfo(errorCode).retriable) return { kind: 'later' };
  return { kind: 'fail', error: brokerError(errorCode, `fetch ${name}`) };
}
