/**
 * kill -9 of the broker in the middle of rebalances and offset commits, again and again. No committed offset is lost or
 * moved back, and the groups settle again within the session timeout (I6, fault 27 of one broker).
 *
 *   node test/scenario/groups_kill_loop.test.ts [--rounds 100] [--seed N]
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import { BrokerProcess } from '../harness/broker_process.ts';
import { Client } from '../harness/client.ts';
import { CommitLedger, CommittingMember } from '../harness/committing_member.ts';
import { GroupSession, type GroupSessionOptions } from '../harness/group_session.ts';
import { runScenario, type ScenarioRun, scenarioOptions } from '../harness/scenario_options.ts';
import type { Random } from '../harness/split_mix.ts';

const options = scenarioOptions();
const rounds = options.rounds ?? 10;

const groupCount = 4;
const membersMax = 4;
const partitions = 6;
const topic = 'counted';
const sessionTimeoutMs = 6_000;
/** A member may have been lost just before the kill: its session ends, and then the rebalance. */
const settleMs = sessionTimeoutMs + 10_000;

const settings = {
  'group.initial.rebalance.delay.ms': 50,
  'log.flush.offset.checkpoint.interval.ms': 300,
  'offsets.topic.num.partitions': 5,
};

const test = suite('kill loop of groups');

test(`${rounds} rounds of kill -9: no committed offset is lost or moved back, groups settle`, async () => {
  await runScenario(options, async (run) => {
    const broker = await BrokerProcess.start({ dataDir: run.dataDir, settings });
    try {
      await killLoop(broker, run);
    } finally {
      await broker.dispose();
    }
  });
});

class Group {
  readonly name: string;
  readonly ledger = new CommitLedger();
  readonly #members: CommittingMember[] = [];
  readonly #broker: BrokerProcess;
  readonly #options: GroupSessionOptions;

  constructor(broker: BrokerProcess, name: string) {
    this.#broker = broker;
    this.name = name;
    this.#options = {
      group: name,
      topic,
      partitions,
      instance: null,
      sessionTimeoutMs,
      rebalanceTimeoutMs: sessionTimeoutMs,
    };
  }

  add(): void {
    this.#members.push(new CommittingMember(() => this.#broker, this.#options, this.ledger));
  }

  /** A member comes, leaves, or dies. */
  async change(random: Random): Promise<void> {
    const kind = random(3);
    if (this.#members.length < 2 || (kind === 0 && this.#members.length < membersMax)) {
      this.add();
      return;
    }
    const [member] = this.#members.splice(random(this.#members.length), 1);
    await member?.stop(kind === 1 ? 'leave' : 'crash');
  }

  assertHealthy(): void {
    for (const member of this.#members) member.assertHealthy();
  }

  /** All members are in one generation and have all partitions between them, each once. */
  get isSettled(): boolean {
    const generations = this.#members.map(({ generation }) => generation);
    const owned = generations.flatMap((generation) => generation?.partitions ?? []);
    return (
      generations.every((generation) => generation !== null) &&
      new Set(generations.map((generation) => generation?.generationId)).size === 1 &&
      owned.length === partitions &&
      new Set(owned).size === partitions
    );
  }

  async settled(): Promise<void> {
    const deadline = performance.now() + settleMs;
    while (!this.isSettled) {
      this.assertHealthy();
      const state = JSON.stringify(this.#members.map(({ generation }) => generation));
      assert(performance.now() < deadline, `${this.name} did not settle: ${state}`);
      await sleep(20);
    }
  }

  async check(): Promise<void> {
    const session = await GroupSession.connect(this.#broker, this.#options);
    const ackedBefore = new Map(this.ledger.acked);
    this.ledger.check(this.name, await session.committed(), ackedBefore);
    session.close();
  }

  async stop(): Promise<void> {
    for (const member of this.#members) await member.stop('leave');
  }
}

async function killLoop(broker: BrokerProcess, { random }: ScenarioRun): Promise<void> {
  const admin = await Client.connect(broker);
  await admin.createTopic(topic, partitions);
  admin.close();
  const groups = Array.from({ length: groupCount }, (_, k) => new Group(broker, `group-${k}`));
  for (const group of groups) for (let count = 0; count < 3; count += 1) group.add();
  let slowestMs = 0;
  try {
    for (const group of groups) await group.settled();
    for (let round = 1; round <= rounds; round += 1) {
      // The kill comes at any point of the rebalances that these bring about.
      const changes = groups.map((group) => (random(2) === 0 ? group.change(random) : null));
      await sleep(random(500));
      await broker.kill();
      await Promise.all(changes);
      await broker.restart();
      const startedMs = performance.now();
      for (const group of groups) await group.check();
      for (const group of groups) await group.settled();
      slowestMs = Math.max(slowestMs, performance.now() - startedMs);
      for (const group of groups) group.assertHealthy();
      await sleep(random(200));
    }
    for (const group of groups) await group.check();
  } finally {
    for (const group of groups) await group.stop();
  }
  const commits = groups.reduce((sum, { ledger }) => sum + ledger.commits, 0);
  assert(commits > rounds * 10, `only ${commits} commits`);
  console.log(
    `${rounds} rounds, ${commits} commits acknowledged, slowest settling ${Math.round(slowestMs)} ms`,
  );
}

test.run();
