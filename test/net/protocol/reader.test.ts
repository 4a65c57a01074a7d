import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { codecFor } from '../../../net/protocol/codec.ts';
import type { MessageName } from '../../../net/protocol/messages.gen.ts';
import { decodeLimits, ProtocolError, Reader } from '../../../net/protocol/reader.ts';
import { loadSchema } from '../../../net/protocol/schema.ts';
import { fromHex, goldenVectors, messageNames } from './golden.ts';

const test = suite('reader: limits for strangers');

/** A FetchRequest v12 with nothing in it, up to its tag section. */
const fetchV12 = `${'00'.repeat(25)}010101`;

function refuses(name: MessageName, version: number, hex: string, message: string): void {
  assert.throws(
    () => codecFor(name, version).decode(new Reader(fromHex(hex))),
    (error) => {
      assert(error instanceof ProtocolError);
      assert.equal(error.message, message);
      return true;
    },
  );
}

test('a negative length other than null is refused', () => {
  const at = 'FindCoordinatorRequest v0: key';
  refuses('FindCoordinatorRequest', 0, 'fffe', `${at}: a negative length, -2`);
  refuses('FindCoordinatorRequest', 0, '8000', `${at}: a negative length, -32768`);
  refuses(
    'SaslAuthenticateRequest',
    0,
    '80000000',
    'SaslAuthenticateRequest v0: authBytes: a negative length, -2147483648',
  );
});

test('null is refused where the version does not allow it', () => {
  const reason = 'null, which this version does not allow';
  refuses('FindCoordinatorRequest', 0, 'ffff', `FindCoordinatorRequest v0: key: ${reason}`);
  refuses('FindCoordinatorRequest', 3, '0000', `FindCoordinatorRequest v3: key: ${reason}`);
  refuses(
    'SaslAuthenticateRequest',
    0,
    'ffffffff',
    `SaslAuthenticateRequest v0: authBytes: ${reason}`,
  );
  refuses('MetadataRequest', 0, 'ffffffff', `MetadataRequest v0: topics: ${reason}`);
  refuses('CreateTopicsRequest', 5, '00', `CreateTopicsRequest v5: topics: ${reason}`);
});

test('a length beyond the frame is refused before anything is allocated', () => {
  const left = (bytes: number) => `bytes announced or needed, ${bytes} left in the frame`;
  refuses(
    'FindCoordinatorRequest',
    0,
    '7fff61',
    `FindCoordinatorRequest v0: key: 32767 ${left(1)}`,
  );
  refuses(
    'SaslAuthenticateRequest',
    0,
    '7fffffff',
    `SaslAuthenticateRequest v0: authBytes: 2147483647 ${left(0)}`,
  );
  refuses(
    'SaslAuthenticateRequest',
    2,
    'ffffffff0f61',
    `SaslAuthenticateRequest v2: authBytes: 4294967294 ${left(1)}`,
  );
  const produce = 'ffff ffff 00007530 00000001 0001 61 00000001 00000000 7fffffff'.replaceAll(
    ' ',
    '',
  );
  refuses(
    'ProduceRequest',
    3,
    produce,
    `ProduceRequest v3: PartitionProduceData.records: 2147483647 ${left(0)}`,
  );
});

test('a compact string is no longer than one with an int16 length can be', () => {
  // Lengths are told plus one.
  const fits = `808002${'61'.repeat(32_767)}0000`;
  const read = codecFor('FindCoordinatorRequest', 3).decode(new Reader(fromHex(fits)));
  assert.equal(read.key.length, 32_767);
  const at = 'FindCoordinatorRequest';
  const reason = 'a string of 32768 bytes; the limit is 32767';
  const long = `818002${'61'.repeat(32_768)}`;
  refuses(at, 3, `${long}0000`, `${at} v3: key: ${reason}`);
  refuses(at, 4, `0002${long}00`, `${at} v4: coordinatorKeys: ${reason}`);
});

test('an array is refused when its elements cannot be in the frame', () => {
  const least = (count: number, size: number, left: number) =>
    `${count} elements of at least ${size} bytes announced, ${left} bytes left in the frame`;
  refuses(
    'MetadataRequest',
    0,
    '7fffffff',
    `MetadataRequest v0: topics: ${least(2147483647, 2, 0)}`,
  );
  refuses(
    'MetadataRequest',
    9,
    'ffffffff0f0000',
    `MetadataRequest v9: topics: ${least(4294967294, 2, 2)}`,
  );
  refuses('MetadataRequest', 12, '030000', `MetadataRequest v12: topics: ${least(2, 18, 2)}`);
  refuses(
    'MetadataRequest',
    0,
    '80000000',
    'MetadataRequest v0: topics: a negative count, -2147483648',
  );
  refuses('MetadataRequest', 0, 'fffffffe', 'MetadataRequest v0: topics: a negative count, -2');
});

test('a varint of more than 32 bits is refused', () => {
  const at = 'MetadataRequest v9: topics: a varint of more than 32 bits';
  refuses('MetadataRequest', 9, 'ffffffff10', at);
  refuses('MetadataRequest', 9, 'ffffffffff01', at);
  refuses('MetadataRequest', 9, '808080808080808080', at);
  refuses(
    'MetadataRequest',
    9,
    'ff',
    'MetadataRequest v9: topics: 1 bytes announced or needed, 0 left in the frame',
  );
});

test('a struct may have 64 tagged fields and no more', () => {
  const codec = codecFor('ListGroupsRequest', 3);
  const tagged = (count: number) => {
    const fields = Array.from({ length: count }, (_, tag) => [tag + 1, 1, 0x5a]);
    return new Uint8Array([count, ...fields.flat()]);
  };
  assert.deepEqual(codec.decode(new Reader(tagged(64))), { statesFilter: [], typesFilter: [] });
  const limit = 'ListGroupsRequest v3: tags: 65 tagged fields, and at most 64 are allowed';
  assert.throws(() => codec.decode(new Reader(tagged(65))), {
    name: 'ProtocolError',
    message: limit,
  });
  const millions = '20000000 tagged fields, and at most 64 are allowed';
  refuses('ListGroupsRequest', 3, '80dac409', `ListGroupsRequest v3: tags: ${millions}`);
  refuses('FetchRequest', 12, `${fetchV12}80dac409`, `FetchRequest v12: tags: ${millions}`);
});

test('a tagged field is exactly as long as it says', () => {
  const at = 'FetchRequest v12: tags:';
  const { clusterId } = codecFor('FetchRequest', 12).decode(
    new Reader(fromHex(`${fetchV12}0100020261`)),
  );
  assert.equal(clusterId, 'a');
  refuses(
    'FetchRequest',
    12,
    `${fetchV12}010003026162`,
    `${at} tag 0 ends at byte 33, but its size says 34`,
  );
  refuses(
    'FetchRequest',
    12,
    `${fetchV12}01000103616200`,
    `${at} tag 0 ends at byte 34, but its size says 32`,
  );
  refuses(
    'FetchRequest',
    12,
    `${fetchV12}0100050261`,
    `${at} 5 bytes announced or needed, 2 left in the frame`,
  );
});

test('an element costs one of a million, wherever in the message it stands', () => {
  const name = 'DeleteTopicsRequest';
  const frame = (count: number) => {
    const bytes = new Uint8Array(4 + count * 2 + 4);
    new DataView(bytes.buffer).setInt32(0, count);
    return bytes;
  };
  const max = decodeLimits.elementsMax;
  const codec = codecFor(name, 1);
  assert.equal(codec.decode(new Reader(frame(max))).topicNames.length, max);
  assert.throws(() => codec.decode(new Reader(frame(max + 1))), {
    name: 'ProtocolError',
    message: `${name} v1: topicNames: a message may hold 1000000 array elements: split the request`,
  });
});

test('numbers in arrays cost nothing, as they take their room in the frame', () => {
  const count = decodeLimits.elementsMax + 1;
  const bytes = new Uint8Array(1 + 4 + 2 + 4 + 4 * count + 4);
  const view = new DataView(bytes.buffer);
  view.setInt32(1, 1);
  view.setInt32(7, count);
  const request = codecFor('ElectLeadersRequest', 1).decode(new Reader(bytes));
  assert.equal(request.topicPartitions?.[0]?.partitions.length, count);
});

test('a message cut short anywhere is refused', () => {
  for (const name of messageNames()) {
    const version = loadSchema(name).versions.max;
    const codec = codecFor(name, version);
    for (const [of, sample, , hex] of goldenVectors(name)) {
      if (of !== version || sample === 'default') continue;
      const bytes = fromHex(hex);
      for (let end = 0; end < bytes.length; end += 1) {
        assert.throws(
          () => codec.decode(new Reader(bytes, 0, end)),
          ProtocolError,
          `${name} ${end}`,
        );
      }
    }
  }
});

test('records are views of the frame, other bytes are copies', () => {
  const produce = fromHex(
    'ffffffff000075300000000100016100000001000000000000000301 0203'.replace(' ', ''),
  );
  const request = codecFor('ProduceRequest', 3).decode(new Reader(produce));
  const records = request.topicData[0]?.partitionData[0]?.records as Uint8Array;
  assert.equal(records.buffer, produce.buffer);
  assert.equal(records.byteOffset, produce.length - 3);
  assert.deepEqual([...records], [1, 2, 3]);

  const sasl = fromHex('00000003010203');
  const { authBytes } = codecFor('SaslAuthenticateRequest', 0).decode(new Reader(sasl));
  sasl.fill(0);
  assert.deepEqual([...authBytes], [1, 2, 3]);
  assert.equal(authBytes.buffer.byteLength, 3);
});

test('frames may lie in shared memory', () => {
  const shared = new Uint8Array(new SharedArrayBuffer(64), 8, 40);
  const text = 'grüße €😀';
  shared[1] = Buffer.byteLength(text);
  Buffer.from(text).copy(shared, 2);
  assert.equal(codecFor('FindCoordinatorRequest', 0).decode(new Reader(shared)).key, text);
});

test('repeated strings and ids are the same, and different ones are told apart', () => {
  const codec = codecFor('FindCoordinatorRequest', 0);
  for (let round = 0; round < 2; round += 1) {
    for (let at = 0; at < 5000; at += 1) {
      const key = `${at}`.padStart(1 + (at % 80), 'k');
      const bytes = new Uint8Array(2 + key.length);
      bytes[1] = key.length;
      bytes.set(Buffer.from(key), 2);
      assert.equal(codec.decode(new Reader(bytes)).key, key);
    }
  }
});

test('ids are base64url of their bytes', () => {
  const bytes = new Uint8Array(16);
  const reader = new Reader(bytes);
  assert.equal(reader.uuidAt(0), 'AAAAAAAAAAAAAAAAAAAAAA');
  for (let at = 0; at < 5000; at += 1) {
    new DataView(bytes.buffer).setUint32((at % 4) * 4, Math.imul(at, 0x9e3779b1) >>> 0);
    assert.equal(reader.uuidAt(0), Buffer.from(bytes).toString('base64url'));
  }
});

test.run();
