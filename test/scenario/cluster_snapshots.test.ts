/**
 * Snapshots of the metadata in a real cluster: a broker that was down while the log that it lacks was deleted copies the
 * leader's snapshot, brokers begin with their own after kill -9, and all know the same in the end.
 */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import type { Client } from '../harness/client.ts';
import { Cluster } from '../harness/cluster.ts';
import { runScenario, scenarioOptions } from '../harness/scenario_options.ts';

const options = scenarioOptions();
const lookAgainMs = 20;
const settings = { 'metadata.log.max.record.bytes.between.snapshots': 4_000 };

const test = suite('snapshots of a cluster');

test('who was away copies the state from the leader, and all begin with a snapshot of their own', async () => {
  await runScenario(options, async ({ dataDir }) => {
    const cluster = await Cluster.start({ settings, dataDir });
    try {
      await history(cluster);
    } catch (error) {
      for (const { output } of cluster.brokers) console.error(output.slice(-6_000));
      throw error;
    } finally {
      await cluster.dispose();
    }
  });
});

async function history(cluster: Cluster): Promise<void> {
  const leader = await cluster.controller();
  const away = cluster.ids.find((id) => id !== leader)!;
  const client = await cluster.client(leader);
  await client.createTopic('kept', 3, { 'retention.ms': 77_000 }, 3);
  await client.createTopic('gone', 3, {}, 3);
  await cluster.kill(away);
  await client.request('DeleteTopics', {
    topics: [{ name: 'gone', topicId: 'AAAAAAAAAAAAAAAAAAAAAA' }],
    topicNames: ['gone'],
    timeoutMs: 30_000,
  });
  const awayEnd = Math.max(...snapshotEnds(cluster, away), 0);
  const made: string[] = [];
  // Until the leader's log begins behind all that the other one can have.
  while (logStart(cluster, leader) <= awayEnd || made.length < 60) {
    const name = `topic-${made.length}`;
    await client.createTopic(name, 3, {}, 2);
    made.push(name);
  }
  assert(snapshotEnds(cluster, leader).length >= 2, 'two are kept');
  await cluster.restart(away);
  const copied = Math.min(...snapshotEnds(cluster, away));
  assert(
    copied > awayEnd && logStart(cluster, away) <= copied,
    'it has the snapshot of another one',
  );
  const wanted = inOrder(['kept', ...made]);
  await assertKnown(await cluster.client(away), wanted);

  await Promise.all(cluster.ids.map((id) => cluster.kill(id)));
  await Promise.all(cluster.ids.map((id) => cluster.restart(id)));
  for (const id of cluster.ids) await assertKnown(await cluster.client(id), wanted);
  for (const { output } of cluster.brokers) assert.doesNotMatch(output, /\b(?:ERROR|FATAL)\b/);
}

/** End offsets of the snapshots that a broker has. */
function snapshotEnds(cluster: Cluster, id: number): number[] {
  return offsetsOf(cluster, id, '.checkpoint');
}

function logStart(cluster: Cluster, id: number): number {
  return Math.min(...offsetsOf(cluster, id, '.log'));
}

function offsetsOf(cluster: Cluster, id: number, suffix: string): number[] {
  const names = readdirSync(join(cluster.broker(id).dataDir, '__cluster_metadata-0'));
  const found = names
    .filter((name) => name.endsWith(suffix))
    .map((name) => Number(name.slice(0, 20)));
  return found.filter((offset) => suffix === '.log' || offset > 0);
}

function inOrder(names: readonly string[]): string[] {
  return [...names].sort((one, other) => one.localeCompare(other));
}

async function assertKnown(client: Client, wanted: readonly string[]): Promise<void> {
  for (;;) {
    const { topics } = await client.metadata();
    const names = inOrder(topics.map(({ name }) => name ?? ''));
    if (names.length === wanted.length) {
      assert.deepEqual(names, wanted);
      break;
    }
    await sleep(lookAgainMs);
  }
  const { results } = await client.request('DescribeConfigs', {
    resources: [{ resourceType: 2, resourceName: 'kept', configurationKeys: ['retention.ms'] }],
  });
  assert.equal(results[0]?.configs[0]?.value, '77000');
}

test.run();
