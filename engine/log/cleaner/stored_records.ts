/** The records of a stored batch as bytes, for the cleaner. */
import { CompressionError } from '../../batch/compression_error.ts';
import { baseOffsetOf, Codec, codecOf } from '../../batch/header.ts';
import { recordBytesOf } from '../../batch/records.ts';
import type { Scratch } from '../../batch/scratch.ts';
import { UncleanableError } from './cleaning_job.ts';

/**
 * `buf` itself when the records stand in it as they are, behind the header; otherwise what they decompress to, and
 * nothing else.
 * @throws UncleanableError
 */
export function storedRecords(
  buf: Uint8Array,
  start: number,
  maxBytes: number,
  scratch: Scratch,
): Uint8Array {
  if (codecOf(buf, start) === Codec.none) return buf;
  try {
    return recordBytesOf(buf, start, maxBytes, scratch);
  } catch (error) {
    if (!(error instanceof CompressionError)) throw error;
    const remedy =
      error.fault === 'tooLarge' ? ': raise max.decompressed.message.bytes of the topic' : '';
    throw new UncleanableError(
      `the batch at offset ${baseOffsetOf(buf, start)} cannot be decompressed: ${error.message}${remedy}`,
    );
  }
}
