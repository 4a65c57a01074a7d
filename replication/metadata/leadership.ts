/**
 * What a controller works on while it leads: the image that runs ahead of the log by the controller's own appends, the index
 * of its partitions, and the batches that the running step appends.
 *
 * Thread and owner: those of the controller. Concurrency: none. Durability: none of its own; it is dropped with the
 * leadership, and what was not committed with it.
 */
import type { MetadataImage } from './image.ts';
import { PartitionIndex } from './partition_index.ts';
import type { MetadataRecord } from './records.ts';

/** Keeps a batch well below the log's limit; only what must be atomic may exceed it. */
const recordsPerBatchMax = 5_000;

export class Leadership {
  readonly image: MetadataImage;
  readonly index: PartitionIndex;
  readonly #nodeId: number;
  readonly #epoch: number;
  #nextOffset: number;
  #batches: MetadataRecord[][] = [];

  /** @param image taken over */
  constructor(nodeId: number, epoch: number, nextOffset: number, image: MetadataImage) {
    this.image = image;
    this.index = new PartitionIndex(image);
    this.#nodeId = nodeId;
    this.#epoch = epoch;
    this.#nextOffset = nextOffset;
  }

  /** Offset of the next record, as the log counts. */
  get nextOffset(): number {
    return this.#nextOffset;
  }

  /**
   * The only place where the log grows, so that the image and the next offset cannot be forgotten. The records become
   * part of one batch, perhaps with those before and after them.
   */
  append(records: readonly MetadataRecord[]): void {
    if (records.length === 0) return;
    const firstOffset = this.#nextOffset;
    this.#nextOffset += records.length;
    this.image.follow(
      {
        snapshot: false,
        firstOffset,
        lastOffset: this.#nextOffset - 1,
        epoch: this.#epoch,
        leaderId: this.#nodeId,
        records,
      },
      this.index,
    );
    const open = this.#batches.at(-1);
    if (open !== undefined && open.length + records.length <= recordsPerBatchMax)
      for (const record of records) open.push(record);
    else this.#batches.push([...records]);
  }

  /** The batches since the last call, in order. */
  takeBatches(): readonly (readonly MetadataRecord[])[] {
    const batches = this.#batches;
    this.#batches = [];
    return batches;
  }
}
