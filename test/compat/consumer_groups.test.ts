/**
 * kafka-consumer-groups, kafka-groups and kafka-dump-log, the same commands against Millrace and against Kafka, with the
 * same members: what they print is the same but for the lines that `consumer_groups_steps.ts` has a reason for.
 */
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { differences, steps } from './consumer_groups_steps.ts';
import { GroupMember } from './group_member.ts';
import { groupPrograms } from './peers/program_peer.ts';
import { comparisonSuite, type Tools, type Verb } from './tool_comparison.ts';

const joinTimeoutMs = 60_000;
const emptyTimeoutMs = 60_000;
/** Longer than all steps take: a static member of the newer protocol that has left is there to the end. */
const sessionMs = 1_200_000;
/** By their names and the broker that they are with. */
const members = new Map<string, GroupMember>();

const startMember: Verb = async (_, broker, args) => {
  const [name = '', group = '', topic = '', protocol, strategy, instance = null] = args;
  const options = {
    bootstrap: broker.bootstrap,
    topic,
    group,
    strategy: strategy === 'cooperative' ? 'cooperative' : 'eager',
    instance,
    protocol: protocol === 'consumer' ? 'consumer' : 'classic',
  } as const;
  const member = new GroupMember(name, await groupPrograms.java(), options);
  members.set(`${name} ${broker.bootstrap}`, member);
  const deadline = Date.now() + joinTimeoutMs;
  while (member.assigned.length === 0) {
    if (Date.now() > deadline) throw new Error(`${name} has no partitions`);
    await sleep(50);
  }
  return [];
};

const leave: Verb = async (_, broker, [name]) => {
  const key = `${name} ${broker.bootstrap}`;
  const member = members.get(key);
  await member?.leave();
  await member?.close();
  members.delete(key);
  return [];
};

/** A static member that has left stays until its session is over: at each broker at another moment. */
const emptied: Verb = async (tools, broker, [group = '']) => {
  const deadline = Date.now() + emptyTimeoutMs;
  const args = ['--describe', '--state', '--group', group];
  for (;;) {
    const lines = await tools.run(broker, 'kafka-consumer-groups', args);
    if (lines.some((line) => /\sEmpty\s/.test(line))) return [];
    if (Date.now() > deadline) throw new Error(`${group} has members: ${lines.join('\n')}`);
    await sleep(200);
  }
};

const pathOf = (tools: Tools, name: string): string => join(tools.dir, `file-${name}`);

const file: Verb = async (tools, _, [name = '', content = '']) => {
  writeFileSync(pathOf(tools, name), content.split(';').join('\n'));
  return [];
};

const keep: Verb = async (tools, broker, [name = '', tool = '', ...args]) => {
  const lines = await tools.run(broker, tool, args);
  writeFileSync(pathOf(tools, name), lines.slice(0, -1).join('\n'));
  return lines;
};

const consumerGroups: Verb = (tools, broker, args) =>
  tools.run(
    broker,
    'kafka-consumer-groups',
    args.map((one) => (one.startsWith('@') ? pathOf(tools, one.slice(1)) : one)),
  );

/** Per partition of `__consumer_offsets` and key the last value. */
const stored: Verb = async (tools, broker) => {
  const names = readdirSync(broker.dataDir, { recursive: true, encoding: 'utf8' });
  const last = new Map<string, string>();
  for (const name of names.filter((one) => /__consumer_offsets-\d+\/\d+\.log$/.test(one)).sort()) {
    const args = ['--offsets-decoder', '--files', join(broker.dataDir, name)];
    const partition = /__consumer_offsets-\d+/.exec(name)?.[0];
    const lines = await tools.run(broker, 'kafka-dump-log', args);
    last.set(`${partition} is read to its end`, lines.at(-1) ?? '');
    for (const line of lines) {
      const [, key, value] = /\bkey: (.*) payload: (.*)$/.exec(line) ?? [];
      if (key !== undefined && value !== undefined) last.set(`${partition} ${key}`, value);
    }
  }
  return [...last].map(([key, value]) => `${key}: ${value}`);
};

/** Without ids, times and the width of columns. */
function normalised(line: string): string {
  return line
    .replaceAll(/[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}/g, '<id>')
    .replaceAll(/(?<![\w-])(?=[\w-]*[A-Z\d])[\w-]{22}(?![\w-])/g, '<id>')
    .replaceAll(/("\w*[tT]imestamp":)\d{13}/g, '$1<time>')
    .replaceAll(/\s+/g, ' ')
    .trim();
}

comparisonSuite('consumer groups', {
  // The records are older than what is kept by default.
  settings: {
    'group.initial.rebalance.delay.ms': 0,
    'log.retention.ms': -1,
    'group.consumer.session.timeout.ms': sessionMs,
    'group.consumer.max.session.timeout.ms': sessionMs,
  },
  steps,
  differences,
  verbs: {
    join: startMember,
    leave,
    emptied,
    file,
    keep,
    stored,
    'kafka-consumer-groups': consumerGroups,
  },
  normalised,
  isUnordered: true,
  settling: /^kafka-(?:consumer-)?groups --(?:list|describe)|^stored/,
  close: async () => {
    for (const member of members.values()) await member.close();
  },
}).run();
