/**
 * Many partitions: how long creating them takes, what they cost while nothing happens, and how long the controller's death
 * is felt. On a cluster that was not used before, since memory that was once used is not given back.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { errorName, isRetriable } from '../../net/protocol/errors.ts';
import { Client, record } from '../../test/harness/client.ts';
import type { Cluster } from '../../test/harness/cluster.ts';
import { ConnectionLostError } from '../../test/harness/connection.ts';
import type { Target } from '../../test/harness/load.ts';
import { residentBytes } from '../../test/harness/process_memory.ts';
import { readStat } from '../compare/proc.ts';

interface Shape {
  readonly topics: number;
  readonly partitionsPerTopic: number;
}

const copies = 3;
/** Longer than V8 waits before it collects the garbage of a thread that has nothing to do (8 s). Nobody makes it do so. */
const settleMs = 15_000;
/** After records were written, the next checkpoint stores what a restart needs of each log: once, within a minute. */
const checkpointMs = 65_000;
const idleMs = 30_000;
const withinMs = 300_000;
const lookAgainMs = 50;
const askMs = 60_000;
const requestPartitions = 500;

/** Of a cluster that has just started, in the order of the brokers. */
export async function manyPartitions(cluster: Cluster, shape: Shape): Promise<void> {
  const { topics, partitionsPerTopic } = shape;
  const count = topics * partitionsPerTopic;
  console.log(`${topics} topics of ${partitionsPerTopic} partitions, ${copies} copies of each`);
  await sleep(settleMs);
  const empty = resident(cluster);

  const begun = performance.now();
  const names = Array.from({ length: topics }, (_, k) => `many-${k}`);
  const client = await Client.connect(cluster.broker(1), 'bench', askMs);
  for (const name of names) await client.createTopic(name, partitionsPerTopic, {}, copies);
  client.close();
  const answered = performance.now() - begun;
  await whole(cluster, count);
  const seen = performance.now() - begun;
  console.log(
    `create: answered after ${seconds(answered)}, leaders and full ISR at every broker after ${seconds(seen)}`,
  );
  await sleep(settleMs);
  await idle(cluster, 'created');
  perReplica(cluster, empty, count, 'created');

  const targets = names.flatMap((topic) =>
    Array.from({ length: partitionsPerTopic }, (_, partition) => ({ topic, partition })),
  );
  console.log(`a record in each: ${seconds(await recordInEach(cluster, targets))}`);
  await sleep(checkpointMs);
  await idle(cluster, 'with a record in each');
  perReplica(cluster, empty, count, 'with a record in each');
  await controllerDies(cluster, targets);
}

function resident(cluster: Cluster): number[] {
  return cluster.brokers.map(({ pid }) => residentBytes(pid));
}

function perReplica(cluster: Cluster, before: number[], count: number, what: string): void {
  const each = resident(cluster).map((bytes, k) => (bytes - (before[k] ?? 0)) / count / 1024);
  const all = before.map((bytes) => (bytes / 2 ** 20).toFixed(0));
  console.log(
    `RSS per replica, ${what}: ${fixed(each)} KiB (empty brokers: ${all.join(', ')} MiB)`,
  );
}

async function idle(cluster: Cluster, what: string): Promise<void> {
  const cpu = (): number[] => cluster.brokers.map(({ pid }) => readStat(pid).cpuMs);
  const before = cpu();
  const begun = performance.now();
  await sleep(idleMs);
  const elapsed = performance.now() - begun;
  const percent = cpu().map((ms, k) => ((ms - (before[k] ?? 0)) / elapsed) * 100);
  console.log(`idle CPU over ${seconds(elapsed)}, ${what}: ${fixed(percent)} % of a core`);
}

/** Resolves when each broker that runs says of `count` partitions that they have a leader and all copies in sync. */
async function whole(cluster: Cluster, count: number): Promise<void> {
  for (const id of cluster.ids) {
    const client = await Client.connect(cluster.broker(id), 'bench', askMs);
    const deadline = performance.now() + withinMs;
    for (;;) {
      const { topics } = await client.metadata();
      const partitions = topics
        .filter(({ name }) => name?.startsWith('many-'))
        .flatMap((topic) => topic.partitions);
      const good = partitions.filter(
        ({ leaderId, isrNodes }) => leaderId >= 0 && isrNodes.length === copies,
      );
      if (good.length === count) break;
      assert(performance.now() < deadline, `broker ${id}: ${good.length} of ${count} are whole`);
      await sleep(lookAgainMs);
    }
    client.close();
  }
}

/** Kills the controller, and asks for a topic and for a record in each partition at once. */
async function controllerDies(cluster: Cluster, targets: readonly Target[]): Promise<void> {
  const controller = await cluster.controller();
  const left = cluster.ids.filter((id) => id !== controller);
  const led = await ledBy(cluster, left[0]!, controller, targets);
  await cluster.kill(controller);
  const begun = performance.now();
  const since = async (done: Promise<unknown>): Promise<string> => {
    await done;
    return seconds(performance.now() - begun);
  };
  const [created, first, all] = await Promise.all([
    since(createdAt(cluster, left[0]!)),
    since(recordInEach(cluster, led.slice(0, 1))),
    since(recordInEach(cluster, led)),
  ]);
  console.log(
    `kill -9 of the controller: a topic is created after ${created}, of its ${led.length} partitions ` +
      `one takes a record after ${first} and the last after ${all}`,
  );
}

async function ledBy(
  cluster: Cluster,
  asked: number,
  leader: number,
  targets: readonly Target[],
): Promise<Target[]> {
  const leaders = await leadersOf(cluster, asked, targets);
  return targets.filter((_, k) => leaders[k] === leader);
}

async function createdAt(cluster: Cluster, id: number): Promise<void> {
  const client = await Client.connect(cluster.broker(id), 'bench', askMs);
  for (const deadline = performance.now() + withinMs; performance.now() < deadline; ) {
    const answer = await client.request('CreateTopics', {
      topics: [
        { name: 'after', numPartitions: 1, replicationFactor: 2, assignments: [], configs: [] },
      ],
      timeoutMs: 1_000,
    });
    const code = answer.topics[0]?.errorCode ?? ErrorCode.UNKNOWN_SERVER_ERROR;
    if (code === ErrorCode.NONE || code === ErrorCode.TOPIC_ALREADY_EXISTS) break;
    assert(isRetriable(code), `CreateTopics: ${errorName(code)}`);
    await sleep(lookAgainMs / 10);
  }
  client.close();
}

/** Writes a record to each partition, acks=all, asking again for those that refuse. Returns how long that took, ms. */
async function recordInEach(cluster: Cluster, targets: readonly Target[]): Promise<number> {
  const begun = performance.now();
  const clients = new Map<number, Client>();
  const up = cluster.ids.filter((id) => cluster.isUp(id));
  for (const id of up) clients.set(id, await Client.connect(cluster.broker(id), 'bench', askMs));
  let left = [...targets];
  for (let round = 0; left.length > 0; round += 1) {
    assert(performance.now() - begun < withinMs, `${left.length} partitions take no records`);
    const leaders = await leadersOf(cluster, up[round % up.length]!, left);
    const refused = await Promise.all(
      up.map(async (id) => {
        const own = left.filter((_, k) => leaders[k] === id);
        return own.length === 0 ? [] : await refusedBy(clients.get(id)!, own);
      }),
    );
    const unled = left.filter((_, k) => !up.includes(leaders[k]!));
    left = [...unled, ...refused.flat()];
    if (left.length > 0) await sleep(lookAgainMs);
  }
  for (const client of clients.values()) client.close();
  return performance.now() - begun;
}

/** Those of the partitions that did not acknowledge a record. */
async function refusedBy(client: Client, targets: readonly Target[]): Promise<Target[]> {
  const refused: Target[] = [];
  for (let at = 0; at < targets.length; at += requestPartitions) {
    const part = targets.slice(at, at + requestPartitions);
    try {
      const batch = [record('many')];
      const answers = await client.produce(part.map((target) => ({ ...target, batch })));
      refused.push(...part.filter((_, k) => answers[k]!.errorCode !== ErrorCode.NONE));
    } catch (error) {
      if (!(error instanceof ConnectionLostError)) throw error;
      return [...refused, ...targets.slice(at)];
    }
  }
  return refused;
}

/** As one broker tells them, in the order of `targets`; -1: nobody. */
async function leadersOf(
  cluster: Cluster,
  asked: number,
  targets: readonly Target[],
): Promise<number[]> {
  const client = await Client.connect(cluster.broker(asked), 'bench', askMs);
  const { topics } = await client.metadata([...new Set(targets.map(({ topic }) => topic))]);
  client.close();
  const leaders = new Map<string, number>();
  for (const { name, partitions } of topics)
    for (const { partitionIndex, leaderId } of partitions)
      leaders.set(`${name}-${partitionIndex}`, leaderId);
  return targets.map(({ topic, partition }) => leaders.get(`${topic}-${partition}`) ?? -1);
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(2)} s`;
}

function fixed(values: readonly number[]): string {
  return values.map((value) => value.toFixed(1)).join(', ');
}
