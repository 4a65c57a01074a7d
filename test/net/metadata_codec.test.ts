import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { metadataCodec } from '../../net/metadata_codec.ts';
import { encodeMetadataRecord } from '../../net/protocol/record_codec.ts';
import type { MetadataRecord } from '../../replication/metadata/records.ts';
import { uuids } from '../replication/metadata/fixtures.ts';

const test = suite('metadata_codec');
const uuid = uuids(1);
const topicId = 'AAAABwAAAAAAAAAAAAAAAQ';
const directory = 'AAAAyQAAAAAAAAAAAAAAAQ';

const records: MetadataRecord[] = [
  { type: 'TopicRecord', name: 'orders', topicId },
  {
    type: 'PartitionRecord',
    partitionId: 3,
    topicId: uuid(),
    replicas: [1, 2],
    isr: [2],
    removingReplicas: [1],
    addingReplicas: [],
    leader: 2,
    leaderRecoveryState: 1,
    leaderEpoch: 7,
    partitionEpoch: 9,
    directories: [uuid(), uuid()],
    eligibleLeaderReplicas: [1],
    lastKnownElr: null,
  },
  {
    type: 'PartitionChangeRecord',
    partitionId: 3,
    topicId: uuid(),
    isr: [1, 2],
    leader: -1,
    replicas: null,
    removingReplicas: [],
    addingReplicas: null,
    leaderRecoveryState: -1,
    directories: null,
    eligibleLeaderReplicas: null,
    lastKnownElr: [2],
  },
  { type: 'ConfigRecord', resourceType: 2, resourceName: 'orders', name: 'k', value: null },
  { type: 'RemoveTopicRecord', topicId },
  {
    type: 'RegisterBrokerRecord',
    brokerId: 1,
    incarnationId: uuid(),
    brokerEpoch: 2 ** 40,
    endPoints: [{ name: 'PLAINTEXT', host: 'h', port: 65_535, securityProtocol: 0 }],
    features: [{ name: 'metadata.version', minSupportedVersion: 7, maxSupportedVersion: 33 }],
    rack: 'r',
    fenced: true,
    inControlledShutdown: false,
    logDirs: [directory],
  },
  {
    type: 'BrokerRegistrationChangeRecord',
    brokerId: 1,
    brokerEpoch: 5,
    fenced: -1,
    inControlledShutdown: 0,
    logDirs: [],
  },
  { type: 'UnregisterBrokerRecord', brokerId: 1, brokerEpoch: 5 },
  { type: 'FeatureLevelRecord', name: 'metadata.version', featureLevel: 33 },
  { type: 'ProducerIdsRecord', brokerId: 1, brokerEpoch: 4, nextProducerId: 2 ** 50 },
  { type: 'NoOpRecord' },
];

for (const record of records)
  test(`${record.type} survives the way to disk and back`, () => {
    assert.deepEqual(metadataCodec.decode(metadataCodec.encode(record)), record);
  });

test('the bytes are those that kafka-dump-log 4.4.0 read as these records', () => {
  const hex = (record: MetadataRecord) => Buffer.from(metadataCodec.encode(record)).toString('hex');
  assert.equal(hex(records[0]!), '010200076f72646572730000000700000000000000000000000100');
  assert.equal(
    hex({
      type: 'BrokerRegistrationChangeRecord',
      brokerId: 1,
      brokerEpoch: 4,
      fenced: -1,
      inControlledShutdown: 0,
      logDirs: [],
    }),
    '011103000000010000000000000004010001ff',
  );
  assert.equal(
    hex({ type: 'ProducerIdsRecord', brokerId: 1, brokerEpoch: 4, nextProducerId: 1000 }),
    '010f0000000001000000000000000400000000000003e800',
  );
});

test('the older records of fencing mean the same', () => {
  const fence = encodeMetadataRecord('FenceBrokerRecord', 0, { id: 2, epoch: 8n });
  assert.deepEqual(metadataCodec.decode(fence), {
    type: 'BrokerRegistrationChangeRecord',
    brokerId: 2,
    brokerEpoch: 8,
    fenced: 1,
    inControlledShutdown: 0,
    logDirs: [],
  });
  const unfence = encodeMetadataRecord('UnfenceBrokerRecord', 0, { id: 2, epoch: 8n });
  const decoded = metadataCodec.decode(unfence);
  assert(decoded.type === 'BrokerRegistrationChangeRecord' && decoded.fenced === -1);
});

test('records of other parts are kept apart by name, aborted transactions are refused', () => {
  const quota = encodeMetadataRecord('RemoveUserScramCredentialRecord', 0, {
    name: 'u',
    mechanism: 1,
  });
  assert.deepEqual(metadataCodec.decode(quota), {
    type: 'UnknownRecord',
    name: 'RemoveUserScramCredentialRecord',
  });
  const begin = encodeMetadataRecord('BeginTransactionRecord', 0, { name: null });
  assert.deepEqual(metadataCodec.decode(begin), { type: 'NoOpRecord' });
  const abort = encodeMetadataRecord('AbortTransactionRecord', 0, { reason: null });
  assert.throws(() => metadataCodec.decode(abort), /aborted transaction/);
  assert.throws(() => metadataCodec.decode(new Uint8Array([1, 99, 0])), /not known/);
});

test('control records, with the keys of Kafka', () => {
  const voter = { voterId: 1, voterDirectoryId: directory, endpoints: [] };
  const voters = metadataCodec.encodeControl({ type: 'Voters', voters: [voter] });
  assert.deepEqual([...voters.key], [0, 0, 0, 6]);
  const decoded = metadataCodec.decodeControl(voters.key, voters.value);
  assert(decoded?.type === 'Voters');
  assert.equal(decoded.voters[0]?.voterDirectoryId, directory);
  const change = metadataCodec.encodeControl({
    type: 'LeaderChange',
    leaderId: 1,
    voters: [voter],
  });
  assert.deepEqual([...change.key], [0, 0, 0, 2]);
  const version = metadataCodec.encodeControl({ type: 'KRaftVersion', kraftVersion: 1 });
  assert.deepEqual([...version.key], [0, 0, 0, 5]);
  assert.deepEqual(metadataCodec.decodeControl(version.key, version.value), {
    type: 'KRaftVersion',
    kraftVersion: 1,
  });
  const header = { type: 'SnapshotHeader', lastContainedLogTimestamp: 7 } as const;
  const encodedHeader = metadataCodec.encodeControl(header);
  assert.deepEqual([...encodedHeader.key], [0, 0, 0, 3]);
  assert.deepEqual(metadataCodec.decodeControl(encodedHeader.key, encodedHeader.value), header);
  const footer = metadataCodec.encodeControl({ type: 'SnapshotFooter' });
  assert.deepEqual([...footer.key], [0, 0, 0, 4]);
  assert.equal(metadataCodec.decodeControl(new Uint8Array([0, 0, 0, 99]), version.value), null);
});

test.run();
