import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { ApiKey } from '../../../net/protocol/api_key.gen.ts';
import { allApis, apiInfo } from '../../../net/protocol/apis.ts';
import { errorInfo, errorMessage, errorName, isRetriable } from '../../../net/protocol/errors.ts';
import { loadSchema } from '../../../net/protocol/schema.ts';

const test = suite('tables');

test('every error has a name, a text and a place in the vocabulary', () => {
  for (const [name, code] of Object.entries(ErrorCode)) {
    assert.equal(errorName(code), name);
    assert.match(errorMessage(code), /^[A-Z].*\.$/);
  }
  assert(isRetriable(ErrorCode.NOT_LEADER_OR_FOLLOWER));
  assert(errorInfo(ErrorCode.NOT_LEADER_OR_FOLLOWER).refreshesMetadata);
  assert(!isRetriable(ErrorCode.OFFSET_OUT_OF_RANGE));
  assert.equal(errorName(9999), 'UNKNOWN_ERROR_9999');
});

test('APIs and schemas say the same about versions', () => {
  assert(allApis().length > 80);
  for (const api of allApis()) {
    for (const name of [api.requestName, api.responseName]) {
      const schema = loadSchema(name);
      assert.equal(schema.apiKey, api.key, name);
      assert.deepEqual(schema.versions, { min: api.minVersion, max: api.maxVersion }, name);
      const { min, max } = schema.flexible;
      const flexibleFrom = min > max ? Infinity : Math.max(min, api.minVersion);
      assert.equal(flexibleFrom, api.flexibleFrom, name);
    }
  }
});

test('Produce is advertised from version 0', () => {
  assert.equal(apiInfo(ApiKey.Produce)?.advertisedMinVersion, 0);
  assert.equal(apiInfo(ApiKey.Produce)?.minVersion, 3);
  assert.equal(apiInfo(ApiKey.Fetch)?.advertisedMinVersion, 4);
  assert.equal(apiInfo(4), null);
  assert.equal(apiInfo(-1), null);
});

test.run();
