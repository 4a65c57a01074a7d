/**
 * Seeded histories of groups of the consumer protocol (KIP-848), as `groups.test.ts`, with topics that grow. Checked with
 * every event:
 *
 *   no partition is read by two members, nor given to one while another has it
 *   a member that keeps a partition never has to pause it
 *   committed offsets never go back, and what is fetched is what the log says last
 *   every request is answered once
 * and in the end that the group settles, with all living members in one epoch.
 *
 * Rules that are left out on purpose must be noticed. `node test/sim/consumer_groups.test.ts SEED` replays one seed.
 */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import type { Rule } from '../../engine/groups/coordinator_runtime.ts';
import { seedsAtLeast } from '../harness/budget.ts';
import { subscription } from './classic_client.ts';
import { ConsumerClient } from './consumer_client.ts';
import { groupId, isNoticed, type Protocol, runSeeds, topic } from './group_history.ts';

const test = suite('histories of consumer groups');
const oneSeed = Number(process.argv[2] ?? 0);
const seeds = oneSeed > 0 ? 1 : seedsAtLeast(200);

const protocol: Protocol = {
  type: 'consumer',
  newClient: (world, options) => new ConsumerClient(world, options),
  // A member's epoch begins anew in a group that was deleted, so that a commit from before might be taken: as in Kafka.
  deletesGroups: false,
  // One under the same name would have another id, and partitions that only look the same.
  deletesTopics: false,
  growsTopics: true,
  strangerRequests: [
    {
      api: 'JoinGroup',
      body: {
        groupId,
        sessionTimeoutMs: 10_000,
        rebalanceTimeoutMs: 10_000,
        memberId: '',
        groupInstanceId: null,
        protocolType: 'consumer',
        protocols: [{ name: 'range', metadata: subscription(topic) }],
        reason: null,
        requireKnownMemberId: false,
        supportSkippingAssignment: false,
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
    'new partitions',
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
  'revocation first',
];
for (const rule of rules)
  test(`notice when a coordinator has no rule "${rule}"`, () => {
    assert(isNoticed(rule, protocol, 300), 'no seed has noticed');
  });

test.run();
