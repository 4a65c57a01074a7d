/**
 * What stands in a snapshot of the metadata, in Kafka's format (KIP-630, KIP-853): batches as in the log, with offsets of
 * their own from 0 on. The first is a control batch with the header, the quorum's version and its voters; then come the
 * records of the state; the last is a control batch with the footer.
 */
import type {
  MetadataRecord,
  MetadataRecordCodec,
  MetadataSnapshot,
  Voter,
} from '../metadata/records.ts';
import type { SnapshotId } from './messages.ts';
import { encodeControlBatch, encodeDataBatch, forEachBatch } from './metadata_batch.ts';

export interface SnapshotContent {
  readonly id: SnapshotId;
  /** null: those of the configuration (kraft.version 0). */
  readonly voters: readonly Voter[] | null;
  readonly records: Iterable<MetadataRecord>;
}

export interface LoadedSnapshot extends SnapshotContent {
  readonly records: readonly MetadataRecord[];
}

/** As it is handed out. @param leaderId -1 while unknown */
export function stateOf(
  { id: { endOffset, epoch }, records }: LoadedSnapshot,
  leaderId: number,
): MetadataSnapshot {
  const lastOffset = endOffset - 1;
  // When a feature was changed last is not told; not later than this.
  return { snapshot: true, lastOffset, epoch, leaderId, featuresEpoch: lastOffset, records };
}

/** Records of one batch, so that none takes long to write. */
const batchRecordsMax = 500;

/** Batch by batch: `records` is asked for as they are. @param timestampMs since 1970 */
export function* encodeSnapshot(
  { id, voters, records }: SnapshotContent,
  codec: MetadataRecordCodec,
  timestampMs: number,
): Generator<Uint8Array, void, void> {
  const { epoch } = id;
  const header = [
    codec.encodeControl({ type: 'SnapshotHeader', lastContainedLogTimestamp: timestampMs }),
  ];
  if (voters !== null) {
    header.push(codec.encodeControl({ type: 'KRaftVersion', kraftVersion: 1 }));
    header.push(codec.encodeControl({ type: 'Voters', voters }));
  }
  yield encodeControlBatch(header, 0, epoch, timestampMs);
  let offset = header.length;
  let values: Uint8Array[] = [];
  for (const record of records) {
    values.push(codec.encode(record));
    if (values.length < batchRecordsMax) continue;
    yield encodeDataBatch(values, offset, epoch, timestampMs);
    offset += values.length;
    values = [];
  }
  if (values.length > 0) yield encodeDataBatch(values, offset, epoch, timestampMs);
  const footer = [codec.encodeControl({ type: 'SnapshotFooter' })];
  yield encodeControlBatch(footer, offset + values.length, epoch, timestampMs);
}

/** @throws Error that says what is wrong with it: every batch is checked, and that none is missing at the end */
export function decodeSnapshot(
  id: SnapshotId,
  bytes: Uint8Array,
  codec: MetadataRecordCodec,
): LoadedSnapshot {
  const records: MetadataRecord[] = [];
  let voters: readonly Voter[] | null = null;
  let hasHeader = false;
  let hasFooter = false;
  forEachBatch(
    bytes,
    (batch) => {
      if (hasFooter) throw new Error('it goes on after its footer');
      if (!batch.isControl)
        for (const { value } of batch.records) records.push(codec.decode(value));
      else
        for (const { key, value } of batch.records) {
          const record = codec.decodeControl(key, value);
          if (record?.type === 'SnapshotHeader') hasHeader = true;
          else if (record?.type === 'SnapshotFooter') hasFooter = true;
          else if (record?.type === 'Voters') voters = record.voters;
        }
      if (!hasHeader) throw new Error('it has no header');
    },
    (what) => new Error(`there is ${what}`),
  );
  if (!hasFooter) throw new Error('it has no footer: its end is missing');
  return { id, voters, records };
}
