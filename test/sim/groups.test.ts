/**
 * Seeded histories of classic consumer groups: members join, leave, die, stall and come back, records fail to be stored,
 * the coordinator dies and loads again. Checked with every event:
 *
 *   at most one owner of a partition in a generation
 *   committed offsets never go back, and what is fetched is what the log says last
 *   every request is answered once
 * and in the end, when nothing fails any more, that the group settles: all who live are members of one generation, each
 * has its partitions, all partitions have an owner that lives, and commits go through.
 *
 * Rules that are left out on purpose must be noticed. `node test/sim/groups.test.ts SEED` replays one seed.
 */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import type { Rule } from '../../engine/groups/coordinator_runtime.ts';
import { seedsAtLeast } from '../harness/budget.ts';
import { ClassicClient } from './classic_client.ts';
import { groupId, isNoticed, type Protocol, runSeeds, topic } from './group_history.ts';

const test = suite('histories of classic groups');
const oneSeed = Number(process.argv[2] ?? 0);
const seeds = oneSeed > 0 ? 1 : seedsAtLeast(200);

const protocol: Protocol = {
  type: 'classic',
  newClient: (world, options) => new ClassicClient(world, options),
  deletesGroups: true,
  deletesTopics: true,
  growsTopics: false,
  strangerRequests: [
    {
      api: 'ConsumerGroupHeartbeat',
      body: {
        groupId,
        apiVersion: 1,
        memberId: 'stranger',
        memberEpoch: 0,
        instanceId: null,
        rackId: null,
        rebalanceTimeoutMs: 10_000,
        subscribedTopicNames: [topic],
        subscribedTopicRegex: null,
        serverAssignor: null,
        topicPartitions: [],
      },
    },
  ],
};

test('keep their promises and settle', () => {
  const totals = runSeeds(oneSeed || 1, seeds, protocol);
  if (oneSeed > 0 || seeds > 200) process.stdout.write(`${JSON.stringify(totals)}\n`);
  if (oneSeed > 0) return;
  for (const what of [
    'joins',
    'leaves',
    'crashes',
    'late heartbeats',
    'restarts',
    'restarts that lose records',
    'failed appends',
    'fenced',
    'requests of strangers',
    'visits of the other protocol',
    'deleted groups',
    'deleted topics',
    'refused: group is full',
  ])
    assert((totals[what] ?? 0) > seeds / 20, `too little of ${what}: ${JSON.stringify(totals)}`);
});

const rules: readonly Rule[] = [
  'generation check',
  'session expiry',
  'commits from members only',
  'load order',
  'answers wait for the log',
];
for (const rule of rules)
  test(`notice when a coordinator has no rule "${rule}"`, () => {
    assert(isNoticed(rule, protocol, 200), 'no seed has noticed');
  });

test.run();
