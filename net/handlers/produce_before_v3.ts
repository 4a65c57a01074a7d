/**
 * Answers Produce v0-2 with UNSUPPORTED_VERSION for every partition. Those versions carry message formats
 * 0 and 1, which are not stored any more (KIP-896), and have no schema any more either: hence by hand.
 *
 * request:  acks int16, timeout int32, [topic string, [partition int32, records bytes]]
 * response: [topic string, [partition int32, error int16, base offset int64, v2: log append time int64]],
 *           v1: throttle time int32
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { Reader } from '../protocol/reader.ts';
import type { RequestContext } from '../server/request_context.ts';

interface AskedTopic {
  readonly name: Uint8Array;
  readonly partitions: number[];
}

const acksWithoutAnswer = 0;
/** Least bytes of an element, so that a count cannot make us allocate more than the frame holds. */
const topicBytesMin = 6;
const partitionBytesMin = 8;

export function refuseOldProduce(ctx: RequestContext): void {
  const { reader } = ctx;
  reader.enter('ProduceRequest');
  const acks = reader.view.getInt16(reader.take(2, 'acks'));
  reader.take(4, 'timeoutMs');
  const topics: AskedTopic[] = [];
  for (let left = reader.count32(topicBytesMin, 1, 'topicData'); left > 0; left -= 1)
    topics.push(readTopic(reader));
  if (acks === acksWithoutAnswer)
    ctx.fail(
      `Produce v${ctx.apiVersion} is not supported; use a client that knows v3 (Kafka 0.11)`,
    );
  else ctx.respondRaw(encodeRefusal(ctx.apiVersion, ctx.correlationId, topics));
}

function readTopic(reader: Reader): AskedTopic {
  const name = reader.copy(Math.max(0, reader.length16('name')));
  const partitions: number[] = [];
  for (let left = reader.count32(partitionBytesMin, 0, 'partitionData'); left > 0; left -= 1) {
    partitions.push(reader.view.getInt32(reader.take(4, 'index')));
    reader.take(Math.max(0, reader.length32('records')), 'records');
  }
  return { name, partitions };
}

function encodeRefusal(
  version: number,
  correlationId: number,
  topics: readonly AskedTopic[],
): Uint8Array {
  const perPartition = version >= 2 ? 22 : 14;
  let length = 12 + (version >= 1 ? 4 : 0);
  for (const topic of topics)
    length += 6 + topic.name.length + topic.partitions.length * perPartition;
  const bytes = new Uint8Array(length);
  const view = new DataView(bytes.buffer);
  view.setInt32(0, length - 4);
  view.setInt32(4, correlationId);
  view.setInt32(8, topics.length);
  let at = 12;
  for (const topic of topics) {
    view.setInt16(at, topic.name.length);
    bytes.set(topic.name, at + 2);
    at += 2 + topic.name.length;
    view.setInt32(at, topic.partitions.length);
    at += 4;
    for (const partition of topic.partitions) {
      view.setInt32(at, partition);
      view.setInt16(at + 4, ErrorCode.UNSUPPORTED_VERSION);
      view.setBigInt64(at + 6, -1n);
      if (version >= 2) view.setBigInt64(at + 14, -1n);
      at += perPartition;
    }
  }
  return bytes;
}
