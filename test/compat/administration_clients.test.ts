/** Calls of administration in librdkafka, through confluent-kafka for Python: every change, and how it is told afterwards. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import type { BrokerProcess } from '../harness/broker_process.ts';
import { isKafka, startBroker } from './exchange.ts';
import { type Program, startPython } from './peers/program_peer.ts';

const test = suite('administration_clients');
let broker: BrokerProcess;
let python: Program;
const closers: (() => Promise<void>)[] = [];

test.before(async () => {
  broker = await startBroker();
  closers.push(() => broker.dispose());
  python = await startPython();
  closers.push(() => python.close());
});

test.after(async () => {
  for (const close of closers.reverse()) await close();
});

test('librdkafka changes a topic and reads back what it changed', async () => {
  const { bootstrap } = broker;
  const topic = 'administered';
  await python.run({ command: 'create', bootstrap, topic, partitions: 2 });
  const output = join(python.dir, 'found');
  await python.run({ command: 'administer', bootstrap, topic, output });
  const found = JSON.parse(readFileSync(output, 'utf8')) as Record<string, unknown>;
  // Value, source (1 topic, 5 default), whether it is read-only, whether it is the default.
  assert.deepEqual(found, {
    partitions: 4,
    fewer: [
      'INVALID_PARTITIONS',
      `The topic ${topic} currently has 4 partition(s); 3 would not be an increase.`,
    ],
    validated: 4,
    set: ['5000', 1, false, false],
    appended: ['delete,compact', 1, false, false],
    subtracted: ['compact', 1, false, false],
    deleted: [isKafka ? '604800000' : '1209600000', 5, false, true],
    unknown: [
      'INVALID_CONFIG',
      `Unknown topic config name: retntion.ms${isKafka ? '' : '. Did you mean retention.ms?'}`,
    ],
    replaced: ['6000', 1, false, false],
    dropped: ['delete', 5, false, true],
    broker: ['1048588', 5, false, true],
    fixed: ['1', 5, true, true],
    latest: 0,
    earliest: 0,
    largest: -1,
    at: -1,
  });
});

test.run();
