import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { Codec } from '../../../engine/batch/header.ts';
import { type LoadedConfig, loadBrokerConfig } from '../../../net/config/load.ts';

const test = suite('group_config');

function load(...sets: string[]): LoadedConfig {
  const surroundings = { cwd: '/', hostname: 'mill', memoryBytes: 2 ** 33 };
  return loadBrokerConfig({ sets, surroundings });
}

test('by default both protocols are served, and what coordinators write is not compressed', () => {
  const groups = load().config?.groups;
  assert.equal(groups?.servesConsumerProtocol, true);
  assert.equal(groups?.offsetsTopicCompression, Codec.none);
});

test('the consumer protocol can be left out, the classic one cannot', () => {
  const key = 'group.coordinator.rebalance.protocols';
  assert.equal(load(`${key}=classic`).config?.groups.servesConsumerProtocol, false);
  assert.equal(load(`${key}=consumer,classic`).config?.groups.servesConsumerProtocol, true);
  const { config, errors } = load(`${key}=consumer`);
  assert.equal(config, null);
  assert.match(errors.join(), /rebalance\.protocols=consumer .*classic/);
});

test('codecs are numbers that exist', () => {
  const key = 'offsets.topic.compression.codec';
  assert.equal(load(`${key}=4`).config?.groups.offsetsTopicCompression, Codec.zstd);
  for (const value of ['5', '-1']) {
    const { config, errors } = load(`${key}=${value}`);
    assert.equal(config, null);
    assert.match(errors.join(), /compression\.codec=.*0 \(none\)/);
  }
});

test.run();
