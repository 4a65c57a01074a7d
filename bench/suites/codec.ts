/** Encoding and decoding of the messages of the produce and fetch paths. */
import { apiInfo } from '../../net/protocol/apis.ts';
import { codecFor } from '../../net/protocol/codec.ts';
import {
  decodeRequestHeader,
  encodeRequestFrame,
  encodeResponseFrame,
} from '../../net/protocol/frame.ts';
import { Reader } from '../../net/protocol/reader.ts';
import { type Benchmark, consume, type Suite } from '../micro/benchmark.ts';

const produceKey = 0;
const fetchKey = 1;
const produceVersion = apiInfo(produceKey)!.maxVersion;
const fetchVersion = apiInfo(fetchKey)!.maxVersion;
const topicId = 'vPeOCWypqUOSepEvx0cbog';

export function openCodecSuite(): Suite {
  const benchmarks = [
    decodingProduce(1),
    decodingProduce(10),
    encodingProduce(1),
    decodingFetch(1),
    decodingFetch(10),
    encodingFetch(1),
    encodingFetch(10),
  ];
  return { benchmarks, close: () => undefined };
}

function decodingProduce(partitions: number): Benchmark {
  const records = new Uint8Array(8 * 1024);
  const partitionData = indexes(partitions).map((index) => ({ index, records }));
  const { bytes } = encodeRequestFrame(
    { apiKey: produceKey, apiVersion: produceVersion, correlationId: 7, clientId: 'producer-1' },
    'ProduceRequest',
    { transactionalId: null, acks: -1, timeoutMs: 30_000, topicData: [{ topicId, partitionData }] },
  );
  const reader = new Reader(bytes);
  const codec = codecFor('ProduceRequest', produceVersion);
  return {
    name: `codec: decode Produce request, ${partitionsText(partitions)}`,
    calibration: 'script',
    run: () => {
      reader.reset(bytes, 4);
      decodeRequestHeader(reader);
      consume(codec.decode(reader).topicData.length);
    },
  };
}

function encodingProduce(partitions: number): Benchmark {
  const partitionResponses = indexes(partitions).map((index) => ({
    index,
    errorCode: 0,
    baseOffset: 123_456n,
    logAppendTimeMs: -1n,
    logStartOffset: 0n,
  }));
  const value = { responses: [{ topicId, partitionResponses }], throttleTimeMs: 0 };
  return {
    name: `codec: encode Produce response, ${partitionsText(partitions)}`,
    calibration: 'script',
    run: () => {
      const frame = encodeResponseFrame(produceKey, produceVersion, 7, 'ProduceResponse', value);
      consume(frame.bytes.length);
    },
  };
}

function decodingFetch(partitions: number): Benchmark {
  const { bytes } = encodeRequestFrame(
    { apiKey: fetchKey, apiVersion: fetchVersion, correlationId: 7, clientId: 'consumer-1' },
    'FetchRequest',
    {
      maxWaitMs: 500,
      minBytes: 1,
      maxBytes: 52_428_800,
      sessionId: 99,
      sessionEpoch: 5,
      topics: [
        {
          topicId,
          partitions: indexes(partitions).map((partition) => ({
            partition,
            currentLeaderEpoch: 3,
            fetchOffset: 123_456n,
            partitionMaxBytes: 1_048_576,
          })),
        },
      ],
    },
  );
  const reader = new Reader(bytes);
  const codec = codecFor('FetchRequest', fetchVersion);
  return {
    name: `codec: decode Fetch request, ${partitionsText(partitions)}`,
    calibration: 'script',
    run: () => {
      reader.reset(bytes, 4);
      decodeRequestHeader(reader);
      consume(codec.decode(reader).topics.length);
    },
  };
}

function encodingFetch(partitions: number): Benchmark {
  const responses = [
    {
      topicId,
      partitions: indexes(partitions).map((partitionIndex) => ({
        partitionIndex,
        errorCode: 0,
        highWatermark: 123_456n,
        lastStableOffset: 123_456n,
        logStartOffset: 0n,
        abortedTransactions: null,
        // A range of a file: only its length is written.
        records: { byteLength: 1_000_000 },
      })),
    },
  ];
  const value = { sessionId: 99, responses };
  return {
    name: `codec: encode Fetch response, ${partitionsText(partitions)}`,
    calibration: 'script',
    run: () => {
      const frame = encodeResponseFrame(fetchKey, fetchVersion, 7, 'FetchResponse', value);
      consume(frame.bytes.length + frame.holes.length);
    },
  };
}

function indexes(count: number): number[] {
  return Array.from({ length: count }, (_, k) => k);
}

function partitionsText(count: number): string {
  return count === 1 ? '1 partition' : `${count} partitions`;
}
