import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { codecFor } from '../../../net/protocol/codec.ts';
import { decodeRequestHeader, encodeResponseFrame } from '../../../net/protocol/frame.ts';
import { Reader } from '../../../net/protocol/reader.ts';
import { decodeFetch, encodeFetch } from '../../../net/replication/fetch_wire.ts';

const test = suite('fetches between brokers on the wire');

const topicA = 'BAAAAAAAAAAAAAAAAAAAAA';
const topicB = 'CAAAAAAAAAAAAAAAAAAAAA';

test('a request says who fetches, and groups partitions by topic', () => {
  const position = { lastFetchedEpoch: 2, logStartOffset: 1, maxBytes: 1_000 };
  const bytes = encodeFetch(
    {
      sessionId: 7,
      sessionEpoch: 3,
      maxWaitMs: 500,
      minBytes: 1,
      maxBytes: 10_000,
      partitions: [
        { topicId: topicA, partition: 0, currentLeaderEpoch: 5, fetchOffset: 10, ...position },
        { topicId: topicB, partition: 1, currentLeaderEpoch: 6, fetchOffset: 11, ...position },
        { topicId: topicA, partition: 4, currentLeaderEpoch: 7, fetchOffset: 2 ** 40, ...position },
      ],
      forgotten: [
        { topicId: topicB, partition: 3 },
        { topicId: topicB, partition: 5 },
      ],
    },
    { brokerId: 2, brokerEpoch: 99 },
    'cluster',
    12,
  );
  const reader = new Reader(bytes, 4);
  const header = decodeRequestHeader(reader);
  assert.deepEqual([header.apiKey, header.correlationId], [1, 12]);
  const request = codecFor('FetchRequest', header.apiVersion).decode(reader);
  assert.deepEqual(request.replicaState, { replicaId: 2, replicaEpoch: 99n });
  assert.deepEqual(
    [request.clusterId, request.sessionId, request.sessionEpoch, request.maxWaitMs],
    ['cluster', 7, 3, 500],
  );
  assert.deepEqual([request.minBytes, request.maxBytes, request.isolationLevel], [1, 10_000, 0]);
  assert.deepEqual(
    request.topics.map(({ topicId, partitions }) => [
      topicId,
      partitions.map((one) => [
        one.partition,
        one.currentLeaderEpoch,
        one.fetchOffset,
        one.lastFetchedEpoch,
        one.logStartOffset,
        one.partitionMaxBytes,
      ]),
    ]),
    [
      [
        topicA,
        [
          [0, 5, 10n, 2, 1n, 1_000],
          [4, 7, 2n ** 40n, 2, 1n, 1_000],
        ],
      ],
      [topicB, [[1, 6, 11n, 2, 1n, 1_000]]],
    ],
  );
  assert.deepEqual(
    request.forgottenTopicsData.map(({ topicId, partitions }) => [topicId, partitions]),
    [[topicB, [3, 5]]],
  );
});

test('a response is read with its records in place', () => {
  const records = Buffer.from('some batches');
  const { bytes } = encodeResponseFrame<'Fetch'>(1, 18, 12, 'FetchResponse', {
    errorCode: ErrorCode.NONE,
    sessionId: 7,
    responses: [
      {
        topicId: topicA,
        partitions: [
          { partitionIndex: 0, errorCode: 0, highWatermark: 5, logStartOffset: 1, records },
          {
            partitionIndex: 1,
            errorCode: 0,
            highWatermark: 9,
            logStartOffset: 2,
            divergingEpoch: { epoch: 3, endOffset: 4 },
            records: null,
          },
          {
            partitionIndex: 2,
            errorCode: ErrorCode.NOT_LEADER_OR_FOLLOWER,
            highWatermark: -1,
            records: null,
          },
        ],
      },
    ],
  });
  const memory = Buffer.from(new SharedArrayBuffer(bytes.length));
  memory.set(bytes);
  const { correlationId, response } = decodeFetch(new Reader(memory, 4));
  assert.deepEqual([correlationId, response.errorCode, response.sessionId], [12, 0, 7]);
  const [first, second, third] = response.partitions;
  assert.equal(first?.records?.buffer, memory.buffer, 'a copy');
  assert.equal(Buffer.from(first!.records!).toString(), 'some batches');
  assert.deepEqual([first?.topicId, first?.highWatermark, first?.logStartOffset], [topicA, 5, 1]);
  assert.equal(first?.diverging, null);
  assert.deepEqual(second?.diverging, { epoch: 3, endOffset: 4 });
  assert.deepEqual(
    [third?.partition, third?.errorCode, third?.highWatermark, third?.records],
    [2, ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, null],
  );
});

test.run();
