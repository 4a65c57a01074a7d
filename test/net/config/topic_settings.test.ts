import assert from 'node:assert/strict';
import { suite } from 'uvu';
import type { BrokerConfig } from '../../../net/config/broker_config.ts';
import { loadBrokerConfig } from '../../../net/config/load.ts';
import { topicSettings } from '../../../net/config/topic_settings.ts';

const test = suite('topic_settings');

test('settings of a topic that is being created have their sources', () => {
  const { config } = loadBrokerConfig({ sets: ['auto.create.topics.enable=false'] });
  const settings = topicSettings(config as BrokerConfig);
  assert.equal(settings.autoCreateTopicsEnable, false);
  assert.equal(settings.deleteTopicEnable, true);
  assert.equal(settings.maxRequestPartitionSizeLimit, 2_000);
  const entries = settings.topicConfigEntries([
    { name: 'segment.bytes', value: '2000000' },
    { name: 'retention.ms', value: null },
  ]);
  const found = entries
    .filter(({ name }) => ['segment.bytes', 'retention.ms'].includes(name))
    .map(({ name, value, source, readOnly, sensitive }) => [
      name,
      value,
      source,
      readOnly,
      sensitive,
    ]);
  assert.deepEqual(found, [
    ['retention.ms', '1209600000', 5, false, false],
    ['segment.bytes', '2000000', 1, false, false],
  ]);
});

test.run();
