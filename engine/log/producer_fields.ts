/** What the producers' rules look at: some header fields of a batch. */
import {
  attributeBits,
  baseSequenceOf,
  hasAttribute,
  lastOffsetDeltaOf,
  producerEpochOf,
  producerIdOf,
} from '../batch/header.ts';

export interface ProducerFields {
  producerId: number;
  producerEpoch: number;
  baseSequence: number;
  lastOffsetDelta: number;
  isTransactional: boolean;
}

export function newProducerFields(): ProducerFields {
  return {
    producerId: -1,
    producerEpoch: -1,
    baseSequence: -1,
    lastOffsetDelta: 0,
    isTransactional: false,
  };
}

/** Fills `fields` from the header at `start`. Control batches count as none of a producer's sequence. */
export function readFields(buf: Uint8Array, start: number, fields: ProducerFields): void {
  const isControl = hasAttribute(buf, start, attributeBits.control);
  fields.producerId = isControl ? -1 : producerIdOf(buf, start);
  fields.producerEpoch = producerEpochOf(buf, start);
  fields.baseSequence = baseSequenceOf(buf, start);
  fields.lastOffsetDelta = lastOffsetDeltaOf(buf, start);
  fields.isTransactional = hasAttribute(buf, start, attributeBits.transactional);
}
