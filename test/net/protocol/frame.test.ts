import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ApiKey } from '../../../net/protocol/api_key.gen.ts';
import { allApis, apiInfo, responseHeaderVersion } from '../../../net/protocol/apis.ts';
import { codecFor } from '../../../net/protocol/codec.ts';
import {
  decodeRequestHeader,
  decodeResponse,
  encodeRequestFrame,
  encodeResponseFrame,
} from '../../../net/protocol/frame.ts';
import { ProtocolError, Reader } from '../../../net/protocol/reader.ts';
import { fromHex, goldenValue, goldenVectors, toHex } from './golden.ts';

const test = suite('frames');

test('requests of all APIs: header, then body', () => {
  for (const api of allApis()) {
    for (const [version, sample, json, hex] of goldenVectors(api.requestName)) {
      if (sample !== 'full' && sample !== 'default') continue;
      const clientId = sample === 'full' ? 'clïent' : null;
      const header = { apiKey: api.key, apiVersion: version, correlationId: -7, clientId };
      const value = goldenValue(api.requestName, version, json) as never;
      const { bytes } = encodeRequestFrame(header, api.requestName, value);
      const ids = `${hex16(api.key)}${hex16(version)}fffffff9`;
      const client = clientId === null ? 'ffff' : '0007636cc3af656e74';
      const tags = version >= api.flexibleFrom ? '00' : '';
      assert.equal(toHex(bytes.subarray(4)), ids + client + tags + hex, `${api.name} v${version}`);
      const reader = new Reader(bytes);
      assert.equal(reader.view.getInt32(reader.take(4, 'size')), bytes.length - 4);
      assert.deepEqual(decodeRequestHeader(reader), header);
      assert.equal(toHex(bytes.subarray(reader.pos)), hex);
    }
  }
});

test('responses of all APIs: header, then body', () => {
  for (const api of allApis()) {
    for (const [version, sample, json, hex] of goldenVectors(api.responseName)) {
      if (sample !== 'full') continue;
      const value = goldenValue(api.responseName, version, json) as never;
      const { bytes } = encodeResponseFrame(api.key, version, 42, api.responseName, value);
      const tags = version >= api.flexibleFrom && api.name !== 'ApiVersions' ? '00' : '';
      assert.equal(toHex(bytes.subarray(4)), `0000002a${tags}${hex}`, `${api.name} v${version}`);
      const reader = new Reader(bytes, 4);
      const response = decodeResponse(reader, api.key, version, api.responseName);
      assert.deepStrictEqual(response, { correlationId: 42, value });
    }
  }
});

test('headers agree with the schemas of the headers', () => {
  for (const [version, , json, hex] of goldenVectors('RequestHeader')) {
    const header = goldenValue('RequestHeader', version, json) as {
      requestApiKey: number;
      requestApiVersion: number;
      correlationId: number;
      clientId: string | null;
    };
    const api = apiInfo(header.requestApiKey);
    const flexible = api !== null && header.requestApiVersion >= api.flexibleFrom;
    if (flexible !== (version === 2)) continue;
    assert.deepEqual(decodeRequestHeader(new Reader(fromHex(hex))), {
      apiKey: header.requestApiKey,
      apiVersion: header.requestApiVersion,
      correlationId: header.correlationId,
      clientId: header.clientId,
    });
  }
  assert.equal(codecFor('RequestHeader', 1).flexible, false);
  assert.equal(responseHeaderVersion(ApiKey.ApiVersions, 4), 0);
  assert.equal(responseHeaderVersion(ApiKey.Metadata, 8), 0);
  assert.equal(responseHeaderVersion(ApiKey.Metadata, 9), 1);
});

test('the header of an ApiVersions request of a version that we do not know can be read', () => {
  const reader = new Reader(fromHex('0012 7fff 00000001 0001 61 00 5a'.replaceAll(' ', '')));
  const header = decodeRequestHeader(reader);
  assert.deepEqual(header, { apiKey: 18, apiVersion: 32767, correlationId: 1, clientId: 'a' });
  assert.equal(reader.remaining, 1);
});

test('a header of an unknown API is read as the oldest form', () => {
  for (const key of [-1, 4, 999, 32767]) {
    const reader = new Reader(fromHex(`${hex16(key)}000000000001ffff`));
    assert.equal(decodeRequestHeader(reader).apiKey, key);
    assert.equal(reader.remaining, 0);
  }
});

test('unknown tagged fields of a header are skipped', () => {
  const reader = new Reader(fromHex('0003 000c 00000001 ffff 01 07 02 abcd'.replaceAll(' ', '')));
  assert.equal(decodeRequestHeader(reader).correlationId, 1);
  assert.equal(reader.remaining, 0);
});

test('a malformed header is a protocol error that says where', () => {
  const header = (hex: string) => () => decodeRequestHeader(new Reader(fromHex(hex)));
  const short = 'RequestHeader: apiKey: 8 bytes announced or needed, 7 left in the frame';
  assert.throws(header('00000000000000'), { name: 'ProtocolError', message: short });
  assert.throws(header('0000000000000001fffe'), {
    name: 'ProtocolError',
    message: 'RequestHeader: clientId: a negative length, -2',
  });
  assert.throws(header('00000000000000017fff61'), ProtocolError);
});

test('the size of a frame counts what is not in memory', () => {
  const partition = { partitionIndex: 0, errorCode: 0, highWatermark: 1 };
  const records = { byteLength: 1_000_000_000 };
  const response = { responses: [{ topic: 't', partitions: [{ ...partition, records }] }] };
  const { bytes, holes } = encodeResponseFrame(ApiKey.Fetch, 12, 1, 'FetchResponse', response);
  const size = new DataView(bytes.buffer, bytes.byteOffset).getInt32(0);
  assert.equal(size, bytes.length - 4 + 1_000_000_000);
  assert.equal(holes.length, 1);
  assert.equal(holes[0]?.value, records);

  const tooBig = {
    responses: [{ topic: 't', partitions: Array(3).fill({ ...partition, records }) }],
  };
  assert.throws(
    () => encodeResponseFrame(ApiKey.Fetch, 12, 1, 'FetchResponse', tooBig),
    /limit is 2 GiB/,
  );
});

test('a frame that fails leaves nothing behind in the next', () => {
  const bad = { key: null as unknown as string };
  const header = { apiKey: 10, apiVersion: 0, correlationId: 1, clientId: null };
  assert.throws(() => encodeRequestFrame(header, 'FindCoordinatorRequest', bad), /null/);
  const { bytes } = encodeRequestFrame(header, 'FindCoordinatorRequest', { key: 'k' });
  assert.equal(toHex(bytes), '0000000d000a000000000001ffff00016b');
});

test('a name and a key that do not belong together are refused', () => {
  const value = { key: 'k' };
  const header = { apiKey: 3, apiVersion: 0, correlationId: 1, clientId: null };
  assert.throws(() => encodeRequestFrame(header, 'FindCoordinatorRequest', value), /for API key 3/);
});

test('bytes behind a response are a protocol error', () => {
  const { bytes } = encodeResponseFrame(12, 0, 1, 'HeartbeatResponse', { errorCode: 0 });
  const more = new Uint8Array([...bytes, 0]);
  assert.throws(() => decodeResponse(new Reader(more, 4), 12, 0, 'HeartbeatResponse'), {
    name: 'ProtocolError',
    message: 'HeartbeatResponse v0: end: 1 bytes are left over',
  });
});

function hex16(value: number): string {
  return (value & 0xffff).toString(16).padStart(4, '0');
}

test.run();
