/**
 * InitProducerId: a producer id for idempotent production (KIP-98).
 *
 *   v1  throttling after the answer    v3  recovering producers (KIP-360)    v5  transactions (KIP-890)
 *   v2  flexible                       v4  PRODUCER_FENCED (KIP-588)
 *
 * Transactional ids are refused until there are transactions. Without one every request gets a new id, whatever
 * id the producer had before, as in Kafka.
 *
 * Thread: the connection's shard; ids come from blocks that the controller committed.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { type Handler, rpc } from '../server/registry.ts';
import type { ShardServices } from '../shard_services.ts';

export function initProducerIdHandler(services: ShardServices): Handler {
  return rpc('InitProducerId', 0, 5, async ({ transactionalId, producerId: id, producerEpoch }) => {
    if (transactionalId === '' || (id === -1n) !== (producerEpoch === -1))
      return { errorCode: ErrorCode.INVALID_REQUEST, producerId: -1, producerEpoch: -1 };
    if (transactionalId !== null)
      return { errorCode: ErrorCode.UNSUPPORTED_VERSION, producerId: -1, producerEpoch: -1 };
    const { errorCode, producerId } = await services.producerIds.next();
    return { errorCode, producerId, producerEpoch: errorCode === ErrorCode.NONE ? 0 : -1 };
  });
}
