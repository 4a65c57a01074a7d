import { MillraceError } from '../errors.ts';

const remedy =
  'Seek to the offset behind it to go on without it; `millrace log verify` shows what is damaged on the broker.';

/** Bytes that are no records. */
export function corrupt(what: string, cause?: unknown): MillraceError {
  return new MillraceError('CORRUPT_MESSAGE', what, { isRetriable: false, remedy, cause });
}
