/** AlterConfigs and IncrementalAlterConfigs at the controller: KIP-133, KIP-226 and KIP-339. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { ConfigOperation } from '../../../replication/metadata/config_alteration.ts';
import type {
  AlterConfigsResult,
  ConfigChange,
  ConfigsToAlter,
} from '../../../replication/metadata/controller_api.ts';
import { ConfigResourceType, type MetadataRecord } from '../../../replication/metadata/records.ts';
import { newTopic, TestController } from './fixtures.ts';

const test = suite('config_alteration');
const { set, delete: remove, append, subtract } = ConfigOperation;

function started(): TestController {
  const controller = new TestController();
  controller.register(1);
  controller.result<'createTopics'>({
    type: 'createTopics',
    topics: [newTopic('orders', { configs: [{ name: 'a', value: '1' }] })],
    validateOnly: false,
  });
  return controller;
}

function change(name: string, operation: number, value: string | null): ConfigChange {
  return { name, operation, value };
}

function alter(
  controller: TestController,
  changes: readonly ConfigChange[],
  asked: Partial<ConfigsToAlter> = {},
  validateOnly = false,
): { result: AlterConfigsResult['resources'][number]; records: MetadataRecord[] } {
  const resource: ConfigsToAlter = {
    resourceType: ConfigResourceType.topic,
    resourceName: 'orders',
    replacesAll: false,
    changes,
    ...asked,
  };
  const { reply, records } = controller.ask<'alterConfigs'>({
    type: 'alterConfigs',
    resources: [resource],
    validateOnly,
  });
  assert(reply.result !== null);
  return { result: reply.result.resources[0]!, records };
}

function now(controller: TestController, type = 2, name = 'orders'): Record<string, string> {
  return Object.fromEntries(controller.controller.image.configs(type, name));
}

test('SET adds and changes, DELETE takes away, the rest stays', () => {
  const controller = started();
  alter(controller, [change('b', set, '2'), change('a', set, '9')]);
  assert.deepEqual(now(controller), { a: '9', b: '2' });
  const { records } = alter(controller, [change('a', remove, null), change('c', remove, null)]);
  assert.deepEqual(now(controller), { b: '2' });
  // Nothing is written for a key that had no override.
  assert.deepEqual(
    records.map((record) => (record.type === 'ConfigRecord' ? [record.name, record.value] : [])),
    [['a', null]],
  );
});

test('APPEND and SUBTRACT change lists, beginning with the default', () => {
  const controller = started();
  alter(controller, [change('list.x', append, 'b,a')]);
  assert.equal(now(controller)['list.x'], 'a,b');
  alter(controller, [change('list.x', append, 'b, c')]);
  assert.equal(now(controller)['list.x'], 'a,b,c');
  alter(controller, [change('list.x', subtract, 'a,d')]);
  assert.equal(now(controller)['list.x'], 'b,c');
  alter(controller, [change('list.x', subtract, 'b,c')]);
  assert.equal(now(controller)['list.x'], '');
});

test('only lists can be appended to', () => {
  const { result } = alter(started(), [change('a', append, '2')]);
  assert.deepEqual(
    [result.errorCode, result.errorMessage],
    [ErrorCode.INVALID_CONFIG, "Can't APPEND to key a because its type is not LIST."],
  );
});

test('a request that replaces all takes away what it does not name', () => {
  const controller = started();
  alter(controller, [change('b', set, '2')], { replacesAll: true });
  assert.deepEqual(now(controller), { b: '2' });
  alter(controller, [], { replacesAll: true });
  assert.deepEqual(now(controller), {});
});

test('a resource is changed as a whole or not at all', () => {
  const controller = started();
  const { result, records } = alter(controller, [change('b', set, '2'), change('bad.c', set, '')]);
  assert.deepEqual(
    [result.errorCode, result.errorMessage, records.length],
    [ErrorCode.INVALID_CONFIG, 'bad.c is bad', 0],
  );
  const { resources } = controller.result<'alterConfigs'>({
    type: 'alterConfigs',
    validateOnly: false,
    resources: [
      { resourceType: 2, resourceName: 'nobody', replacesAll: false, changes: [] },
      { resourceType: 4, resourceName: '', replacesAll: false, changes: [change('x', set, '1')] },
    ],
  });
  assert.deepEqual(
    resources.map(({ errorCode }) => errorCode),
    [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE],
  );
  assert.deepEqual(now(controller, 4, ''), { x: '1' });
});

test('brokers have settings of their own and for all of them', () => {
  const controller = started();
  const broker = { resourceType: ConfigResourceType.broker, resourceName: '1' };
  alter(controller, [change('x', set, '1')], broker);
  assert.deepEqual(now(controller, 4, '1'), { x: '1' });
  const bad = alter(controller, [change('bad.x', set, '1')], broker).result;
  assert.deepEqual([bad.errorCode, bad.errorMessage], [ErrorCode.INVALID_REQUEST, 'bad.x is bad']);
  const unknown = alter(controller, [], { ...broker, resourceName: '7' }).result;
  assert.deepEqual(
    [unknown.errorCode, unknown.errorMessage],
    [ErrorCode.BROKER_ID_NOT_REGISTERED, 'No broker with id 7 found.'],
  );
});

test('validate only checks everything and changes nothing', () => {
  const controller = started();
  const { result, records } = alter(controller, [change('b', set, '2')], {}, true);
  assert.deepEqual([result.errorCode, records.length], [ErrorCode.NONE, 0]);
  const bad = alter(controller, [change('bad.b', set, '2')], {}, true).result;
  assert.equal(bad.errorCode, ErrorCode.INVALID_CONFIG);
  assert.deepEqual(now(controller), { a: '1' });
});

test('a value is not longer than Kafka takes it', () => {
  const { result } = alter(started(), [change('b', set, 'x'.repeat(32_768))]);
  assert.deepEqual(
    [result.errorCode, result.errorMessage],
    [ErrorCode.INVALID_CONFIG, 'The value of b is longer than 32767.'],
  );
});

test.run();
