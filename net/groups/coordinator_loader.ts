/**
 * Reads the logs of coordinators that begin their work, one after another and in slices, so that the shard serves
 * others meanwhile. A coordinator that somebody asks for goes first.
 *
 * Thread: the shard of the partitions. What lies above the high watermark when the loading comes to it is waited for:
 * it is being flushed, and until then it may yet be lost.
 */
import { CompressionError } from '../../engine/batch/compression_error.ts';
import { crc32c } from '../../engine/batch/crc.ts';
import {
  attributeBits,
  batchCrcStart,
  batchHeaderBytes,
  Codec,
  codecOf,
  crcOf,
  hasAttribute,
  lastOffsetOf,
  producerIdOf,
  recordCountOf,
  sizeOf,
} from '../../engine/batch/header.ts';
import { type VisitKeyValue, visitKeyValues } from '../../engine/batch/key_values.ts';
import { BatchFormatError, recordBytesOf } from '../../engine/batch/records.ts';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { GroupRecord } from '../../engine/groups/group_records.ts';
import { DiskError } from '../../engine/ports.ts';
import { ProtocolError } from '../protocol/reader.ts';
import type { ShardLogger } from '../shard_context.ts';
import { decodeGroupRecord } from './group_records.ts';
import type { PartitionCoordinator } from './partition_coordinator.ts';
import { isCommitMarker, TransactionalOffsets } from './transactional_offsets.ts';

/** Bytes that a slice reads, decodes and gives to the machine: some milliseconds of the thread's time. */
const sliceBytesMax = 128 * 1024;

export interface CoordinatorLoaderOptions {
  /** `offsets.load.buffer.size`: most bytes to read at a time, but for a batch that is larger. */
  readonly bufferBytes: number;
  /** Runs the function in a later turn. */
  readonly defer: (run: () => void) => void;
  readonly nowMs: () => number;
  readonly logger: ShardLogger;
}

/** A coordinator that is not loaded yet, and how far it is. */
interface Loading {
  readonly coordinator: PartitionCoordinator;
  nextOffset: number;
  readonly transactional: TransactionalOffsets;
}

export class CoordinatorLoader {
  readonly #options: CoordinatorLoaderOptions;
  readonly #sliceBytes: number;
  readonly #queue: Loading[] = [];
  #isScheduled: boolean = false;
  /** Since the queue was last empty. */
  #startedMs = 0;
  #records = 0;

  constructor(options: CoordinatorLoaderOptions) {
    this.#options = options;
    this.#sliceBytes = Math.min(options.bufferBytes, sliceBytesMax);
  }

  add(coordinator: PartitionCoordinator): void {
    const nextOffset = coordinator.leader.log.logStartOffset;
    if (this.#queue.length === 0) this.#startedMs = this.#options.nowMs();
    this.#queue.push({ coordinator, nextOffset, transactional: new TransactionalOffsets() });
    this.wake();
  }

  /** Somebody waits for this one: it is loaded before the others. */
  hurry(coordinator: PartitionCoordinator): void {
    const at = this.#queue.findIndex((loading) => loading.coordinator === coordinator);
    if (at > 0) this.#queue.unshift(...this.#queue.splice(at, 1));
  }

  /** There may be something to do: a coordinator is new, or a high watermark has moved. */
  wake(): void {
    if (this.#isScheduled || this.#queue.length === 0) return;
    this.#isScheduled = true;
    this.#options.defer(() => {
      this.#isScheduled = false;
      this.#turn();
    });
  }

  #turn(): void {
    for (const loading of [...this.#queue]) {
      const state = this.#slice(loading);
      if (state === 'waits') continue;
      if (state === 'done') this.#queue.splice(this.#queue.indexOf(loading), 1);
      break;
    }
    if (this.#queue.length === 0) this.#report();
    // With all of them waiting for their high watermarks, those wake us.
    else if (this.#queue.some(hasWork)) this.wake();
  }

  #slice(loading: Loading): 'more' | 'waits' | 'done' {
    const { coordinator } = loading;
    const { leader } = coordinator;
    if (coordinator.isResigned) return 'done';
    if (!hasWork(loading)) return 'waits';
    if (loading.nextOffset >= leader.highWatermark) return finish(loading);
    const slice = leader.log.read(loading.nextOffset, this.#sliceBytes, leader.highWatermark, true);
    // Nothing is there although the log goes on: its last records have been compacted away.
    if (slice === ErrorCode.NONE) return finish(loading);
    if (typeof slice === 'number') return this.#fail(loading, `it cannot be read: error ${slice}`);
    try {
      const bytes = leader.log.copy(slice);
      if (bytes.length < slice.length) return this.#fail(loading, 'its file is cut short');
      this.#load(loading, bytes);
    } catch (error) {
      if (!isDamage(error)) throw error;
      return this.#fail(loading, error.message);
    }
    return 'more';
  }

  #load(loading: Loading, bytes: Uint8Array): void {
    const { coordinator } = loading;
    const { decompressedMaxBytes } = coordinator.leader.batchRules;
    const all: GroupRecord[] = [];
    for (let at = 0; at + batchHeaderBytes <= bytes.length; at += sizeOf(bytes, at)) {
      const end = at + sizeOf(bytes, at);
      if (crc32c(bytes.subarray(at + batchCrcStart, end)) !== crcOf(bytes, at))
        throw new BatchFormatError('a checksum does not match');
      loading.nextOffset = lastOffsetOf(bytes, at) + 1;
      const producerId = producerIdOf(bytes, at);
      if (hasAttribute(bytes, at, attributeBits.control)) {
        const count = recordCountOf(bytes, at);
        visitKeyValues(bytes, at + batchHeaderBytes, end, count, (_bytes, keyAt, keyLength) => {
          const isCommitted = isCommitMarker(bytes, keyAt, keyLength);
          all.push(...loading.transactional.end(producerId, isCommitted));
        });
        continue;
      }
      const records = recordsOf(bytes, at, end, decompressedMaxBytes);
      if (hasAttribute(bytes, at, attributeBits.transactional)) {
        loading.transactional.add(producerId, records);
        continue;
      }
      loading.transactional.overtake(records);
      for (const record of records) all.push(record);
    }
    this.#records += all.length;
    coordinator.load(all);
  }

  #report(): void {
    const records = this.#records;
    this.#records = 0;
    if (records === 0) return;
    const ms = Math.round(this.#options.nowMs() - this.#startedMs);
    this.#options.logger.info({ records, ms }, 'loaded the state of consumer groups');
  }

  /** Serving what could be read would let groups begin again where they have been already: nobody is served. */
  #fail({ coordinator, nextOffset }: Loading, reason: string): 'done' {
    const { topic, partition } = coordinator.leader;
    this.#options.logger.error(
      { partition: `${topic}-${partition}`, offset: nextOffset, reason },
      'the state of consumer groups cannot be loaded: the groups of this partition are not served. Repair the partition, then restart',
    );
    coordinator.resign();
    return 'done';
  }
}

/** The records of the batch that lies from `at` to `end`. */
function recordsOf(bytes: Uint8Array, at: number, end: number, maxBytes: number): GroupRecord[] {
  const records: GroupRecord[] = [];
  const visit: VisitKeyValue = (buf, keyAt, keyLength, valueAt, valueLength) => {
    const record = decodeGroupRecord(buf, keyAt, keyLength, valueAt, valueLength);
    if (record !== null) records.push(record);
  };
  const count = recordCountOf(bytes, at);
  if (codecOf(bytes, at) === Codec.none) {
    visitKeyValues(bytes, at + batchHeaderBytes, end, count, visit);
  } else {
    const plain = recordBytesOf(bytes, at, maxBytes);
    visitKeyValues(plain, 0, plain.length, count, visit);
  }
  return records;
}

function finish({ coordinator }: Loading): 'done' {
  coordinator.loaded();
  return 'done';
}

function hasWork({ coordinator, nextOffset }: Loading): boolean {
  const { leader, isResigned } = coordinator;
  return isResigned || leader.isCaughtUp || nextOffset < leader.highWatermark;
}

function isDamage(error: unknown): error is Error {
  return (
    error instanceof BatchFormatError ||
    error instanceof CompressionError ||
    error instanceof DiskError ||
    error instanceof ProtocolError
  );
}
