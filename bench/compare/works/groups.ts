/** G1 to G3: consumer groups on brokers that are up. A thousand members each with a connection of its own, and commits. */
import { join } from 'node:path';
import { Histogram } from '../../../tools/histogram.ts';
import { settle } from '../broker.ts';
import { sleep } from '../children.ts';
import { ConsumerMember } from '../consumer_member.ts';
import { runFlushFloor } from '../flush_floor.ts';
import {
  alterTopic,
  ClassicMember,
  commitError,
  commitFrame,
  findCoordinator,
  heartbeatError,
} from '../group_requests.ts';
import { sync } from '../machine.ts';
import { type Figures, measure, shares, type Values } from '../measure.ts';
import { deleteTopic, makeTopic, withClient } from '../requests.ts';
import { WireClient } from '../wire_client.ts';
import type { RoundContext, SharedWork } from './work.ts';

const MEMBERS = 1_000;
const JOIN_BATCH = 50;
const SETTLE_TIMEOUT_MS = 60_000;
const STEADY_MS = 15_000;

const GROUPS = 200;
const GROUP_SIZE = 5;
const HEARTBEAT_MS = 3_000;
const COMMIT_MS = 5_000;
const BUSY_SECONDS = 20;

const COMMITTERS = 100;
/** So many partitions of __consumer_offsets they have among them, and so many bytes has the batch of a commit. */
const COMMITTERS_PARTITIONS = 50;
const COMMIT_BYTES = 200;
const COMMITS_PER_SECOND = 2_000;
const COMMIT_SECONDS = 10;
const GRACE_MS = 10_000;
const OFFSETS_TOPIC = '__consumer_offsets';

export const groupWorks: readonly SharedWork[] = [
  { kind: 'shared', rows: ['G1'], durability: 'os', needs: 'fetch', run: runLargeGroup },
  { kind: 'shared', rows: ['G2'], durability: 'fsync', needs: 'fetch', run: runManyGroups },
  {
    kind: 'shared',
    rows: ['G3', 'G3 floor'],
    durability: 'fsync',
    needs: 'fetch',
    run: runCommits,
  },
];

async function connectAll(port: number, count: number): Promise<WireClient[]> {
  const clients: WireClient[] = [];
  while (clients.length < count) {
    const batch = Array.from({ length: JOIN_BATCH }, () => WireClient.connect(port));
    clients.push(...(await Promise.all(batch)));
  }
  return clients;
}

/** A new topic, with the coordinator up and the brokers idle. */
async function prepare(context: RoundContext, topic: string, partitions: number): Promise<void> {
  const { broker } = context;
  await makeTopic(broker.port, topic, { partitions });
  await withClient(broker.port, async (client) => {
    await findCoordinator(client, topic);
    const configs = broker.spec.flushedTopicConfigs;
    if (Object.keys(configs).length > 0) await alterTopic(client, OFFSETS_TOPIC, configs);
  });
  await settle(context.running);
  await sync();
}

/** G1: the members join as fast as they are let; then the group is watched while it does nothing but live. */
async function runLargeGroup(context: RoundContext): Promise<Figures[]> {
  const { broker } = context;
  const topic = `G1-${context.roundKey}`;
  await prepare(context, topic, MEMBERS);
  const clients = await connectAll(broker.port, MEMBERS);
  const members = clients.map((client) => new ConsumerMember(client, topic, topic));
  try {
    let joinMs = 0;
    let settleMs = 0;
    const joining = await measure(broker, async () => {
      const started = performance.now();
      await Promise.all(members.map((member) => member.join()));
      const joined = performance.now();
      joinMs = joined - started;
      await untilSettled(members);
      settleMs = performance.now() - joined;
      return undefined;
    });
    const heartbeats = members.reduce((sum, member) => sum + member.heartbeats, 0);
    const steady = await measure(broker, () => sleep(STEADY_MS).then(() => undefined));
    await untilSettled(members);
    const values = {
      joinMs,
      settleMs,
      heartbeats,
      settleServerCpuMs: joining.serverCpuMs,
      steadyServerPercent: shares(steady).serverPercent,
      rssMiB: broker.rssMiB(),
    };
    return [{ work: 'G1', values, bottleneck: null }];
  } finally {
    for (const member of members) member.close();
    await withClient(broker.port, (client) => deleteTopic(client, topic));
  }
}

/** Every member has one partition, no two the same, and all are of one epoch. */
async function untilSettled(members: readonly ConsumerMember[]): Promise<void> {
  const deadline = performance.now() + SETTLE_TIMEOUT_MS;
  for (;;) {
    const failure = members.find((member) => member.failure !== null)?.failure;
    if (failure !== undefined && failure !== null) throw failure;
    const owned = new Set(members.flatMap((member) => member.owned));
    const isEven = members.every((member) => member.owned.length === 1);
    const epochs = new Set(members.map((member) => member.epoch));
    if (isEven && owned.size === members.length && epochs.size === 1) return;
    if (performance.now() > deadline)
      throw new Error(`not settled: ${owned.size} partitions owned, ${epochs.size} epochs`);
    await sleep(5);
  }
}

/** G2: every member sends a heartbeat every 3 s and commits its partition every 5 s, as clients do by default. */
async function runManyGroups(context: RoundContext): Promise<Figures[]> {
  const { broker } = context;
  const topic = `G2-${context.roundKey}`;
  await prepare(context, topic, GROUP_SIZE);
  const clients = await connectAll(broker.port, GROUPS * GROUP_SIZE);
  try {
    const members = clients.map(
      (client, index) => new ClassicMember(client, `${topic}-${index % GROUPS}`, topic),
    );
    await joinAll(members);
    await settle(context.running);
    const latency = new Histogram();
    const cost = await measure(broker, () => liveOn(members, topic, latency));
    const values = { ...shares(cost), p99Ms: latency.percentile(99), requests: latency.count };
    return [{ work: 'G2', values, bottleneck: null }];
  } finally {
    for (const client of clients) client.close();
    await withClient(broker.port, (client) => deleteTopic(client, topic));
  }
}

/** All join; whoever hears of a rebalance joins again, until there is none and every leader has the whole group. */
async function joinAll(members: readonly ClassicMember[]): Promise<void> {
  await Promise.all(members.map((member) => member.join()));
  for (let pass = 0; pass < 10; pass += 1) {
    const rejoin = await Promise.all(members.map((member) => member.mustRejoin()));
    const late = members.filter((_, index) => rejoin[index]);
    if (late.length === 0) break;
    await Promise.all(late.map((member) => member.join()));
  }
  const complete = members.filter((member) => member.size === GROUP_SIZE).length;
  if (complete !== GROUPS) throw new Error(`${complete} of ${GROUPS} groups are complete`);
}

/** Spreads heartbeats and commits evenly. */
async function liveOn(
  members: readonly ClassicMember[],
  topic: string,
  latency: Histogram,
): Promise<undefined> {
  let errors = 0;
  let sent = 0;
  const send = (member: ClassicMember, frame: Buffer, codeOf: (body: Buffer) => number): void => {
    const sentAt = performance.now();
    sent += 1;
    member.client.send(frame, (body) => {
      latency.record(performance.now() - sentAt);
      if (codeOf(body) !== 0) errors += 1;
    });
  };
  for (const { client } of members) client.onFailure(() => (errors += 1));
  const started = performance.now();
  let heartbeats = 0;
  let commits = 0;
  for (let now = 0; now < BUSY_SECONDS * 1_000; now = performance.now() - started) {
    for (; heartbeats < (now * members.length) / HEARTBEAT_MS; heartbeats += 1) {
      const member = members[heartbeats % members.length] as ClassicMember;
      send(member, member.heartbeatFrame(), heartbeatError);
    }
    for (; commits < (now * members.length) / COMMIT_MS; commits += 1) {
      const index = commits % members.length;
      const member = members[index] as ClassicMember;
      send(member, member.commitFrame(topic, Math.floor(index / GROUPS), commits), commitError);
    }
    await sleep(2);
  }
  await untilAnswered(() => latency.count === sent);
  if (errors > 0) throw new Error(`G2: ${errors} requests or connections failed`);
  return undefined;
}

async function untilAnswered(isDone: () => boolean): Promise<void> {
  const deadline = performance.now() + GRACE_MS;
  while (!isDone()) {
    if (performance.now() > deadline) throw new Error('not all requests were answered');
    await sleep(5);
  }
}

/** G3: an open loop of commits, each of one partition, by 100 groups with a connection each; then the disk alone. */
async function runCommits(context: RoundContext): Promise<Figures[]> {
  const { broker } = context;
  const topic = `G3-${context.roundKey}`;
  await prepare(context, topic, 1);
  const clients = await connectAll(broker.port, COMMITTERS);
  try {
    const latency = new Histogram();
    const cost = await measure(broker, () => commitSteadily(clients, topic, latency));
    const floor = new Histogram();
    await runFlushFloor(
      {
        directory: join(context.scratch, `${topic}-floor`),
        files: COMMITTERS_PARTITIONS,
        recordBytes: COMMIT_BYTES,
        perSecond: COMMITS_PER_SECOND,
        seconds: COMMIT_SECONDS,
      },
      floor,
    );
    return [
      { work: 'G3', values: { ...latencies(latency), ...shares(cost) }, bottleneck: null },
      { work: 'G3 floor', values: latencies(floor), bottleneck: null },
    ];
  } finally {
    for (const client of clients) client.close();
    await withClient(broker.port, (client) => deleteTopic(client, topic));
  }
}

function latencies(latency: Histogram): Values {
  return {
    p50Ms: latency.percentile(50),
    p99Ms: latency.percentile(99),
    p999Ms: latency.percentile(99.9),
    maxMs: latency.maxMs,
    answered: latency.count,
  };
}

/** Latency counts from when a commit was due. */
async function commitSteadily(
  clients: readonly WireClient[],
  topic: string,
  latency: Histogram,
): Promise<undefined> {
  const total = COMMITS_PER_SECOND * COMMIT_SECONDS;
  const intervalMs = 1_000 / COMMITS_PER_SECOND;
  let errors = 0;
  for (const client of clients) client.onFailure(() => (errors += 1));
  const started = performance.now();
  for (let sent = 0; sent < total; ) {
    const due = Math.min(total, Math.floor((performance.now() - started) / intervalMs) + 1);
    for (; sent < due; sent += 1) {
      const dueAt = started + sent * intervalMs;
      const index = sent % clients.length;
      const committer = { group: `${topic}-${index}`, generation: -1, memberId: '' };
      (clients[index] as WireClient).send(commitFrame(committer, topic, [0], sent), (body) => {
        latency.record(performance.now() - dueAt);
        if (commitError(body) !== 0) errors += 1;
      });
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
  await untilAnswered(() => latency.count === total || errors > 0);
  if (errors > 0) throw new Error(`G3: ${errors} commits or connections failed`);
  return undefined;
}
