/** Makes smaller batches of one that the topic's max.message.bytes does not allow: together they hold the same records. */
import { iterateRecordBytes } from '../../engine/batch/records.ts';
import { BufferPool } from './buffer_pool.ts';
import { RecordBatch, type Settle } from './record_batch.ts';
import { encodeHeaders } from './record_headers.ts';

/** At least two, each of about half the size or of one record. The batch has at least two records. */
export function splitBatch(batch: RecordBatch): RecordBatch[] {
  const pool = new BufferPool(0);
  const bytesMax = Math.ceil(batch.byteLength / 2);
  const parts: RecordBatch[] = [];
  const { bytes, baseTimestamp } = batch.records();
  let index = 0;
  for (const record of iterateRecordBytes(bytes, batch.count, baseTimestamp, null)) {
    const headers = encodeHeaders(
      record.headers.map(({ key, value }) => [Buffer.from(key).toString('utf8'), value]),
    );
    const append = (to: RecordBatch): number =>
      to.append(
        Number(record.timestamp),
        record.key,
        record.key?.length ?? -1,
        record.value,
        record.value?.length ?? -1,
        headers,
      );
    let part = parts.at(-1);
    if (part === undefined || append(part) === 0) {
      part = new RecordBatch(pool, bytesMax, bytesMax, batch.createdMs);
      parts.push(part);
      append(part);
    }
    part.settles.push(batch.settles[index] as Settle);
    index += 1;
  }
  batch.handOver(parts);
  return parts;
}
