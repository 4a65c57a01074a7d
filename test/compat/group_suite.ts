/**
 * What every client's consumer groups must come through: members that join, leave and crash, with records coming all the
 * while. Every record is processed by somebody, every partition has one owner once the group has settled, and in the
 * end all is committed.
 */
import assert from 'node:assert/strict';
import { suite, type Test } from 'uvu';
import type { BrokerProcess } from '../harness/broker_process.ts';
import { startBroker } from './exchange.ts';
import type { GroupMember } from './group_member.ts';
import { type GroupKind, GroupRun } from './group_run.ts';
import type { GroupProgram } from './peers/program_peer.ts';

export interface GroupFeatures {
  /** The client has a cooperative assignor. */
  readonly cooperative?: boolean;
  /** It knows static members. */
  readonly statics?: boolean;
  /** It knows the consumer protocol (KIP-848). */
  readonly consumer?: boolean;
}

/** Partitions that a member keeps over a rebalance stay with it all the while. */
function assertKept(member: GroupMember, before: readonly number[], seen: number): void {
  const kept = before.filter((partition) => member.assigned.includes(partition));
  for (const assigned of member.assignments.slice(seen))
    for (const partition of kept)
      assert(
        assigned.includes(partition),
        `${member.name} lost partition ${partition} for a while: ${JSON.stringify(member.assignments)}`,
      );
}

/** Has a member of the client join. */
type Join = (name: string, instance?: string) => Promise<GroupMember>;

async function threeMembers(run: GroupRun, join: Join, kind: GroupKind): Promise<void> {
  const isIncremental = kind.strategy === 'cooperative' || kind.protocol === 'consumer';
  const first = await join('first');
  await run.settled(first);
  const second = await join('second');
  await run.settled(first, second);
  const [before, seen] = [first.assigned, first.assignments.length];
  const third = await join('third');
  await run.settled(first, second, third);
  if (isIncremental) assertKept(first, before, seen);
  await second.leave();
  await run.settled(first, third);
  await first.crash();
  await run.settled(third);
  const count = await run.finish();
  assert(count > 100, `${count} records`);
  await third.leave();
  await run.checkCommitted();
}

/** A static member that comes back within its session gets what it had, and nobody else notices. */
async function staticMember(run: GroupRun, join: Join): Promise<void> {
  const stays = await join('stays', 'a');
  await run.settled(stays);
  const goes = await join('goes', 'b');
  await run.settled(stays, goes);
  const had = goes.assigned;
  const seen = stays.assignments.length;
  await goes.crash();
  const back = await join('comes back', 'b');
  await run.until(
    () => back.assigned.length > 0,
    () => JSON.stringify(back.events),
  );
  assert.deepEqual(back.assigned, had);
  await run.until(
    () => back.processed.length > 0,
    () => JSON.stringify(back.events),
  );
  assert.deepEqual(stays.assignments.slice(seen), [], 'a rebalance that was not needed');
  await run.finish();
  await stays.leave();
  await back.leave();
  await run.checkCommitted();
}

/** The tests of a client's groups. The caller runs them. */
export function groupSuite(name: GroupProgram, features: GroupFeatures = {}): Test {
  const test = suite(`groups of ${name}`);
  let broker: BrokerProcess | null = null;
  test.before(async () => {
    broker = await startBroker({ settings: { 'group.initial.rebalance.delay.ms': 300 } });
  });
  test.after(async () => {
    await broker?.dispose();
  });
  const add = (
    title: string,
    topic: string,
    kind: GroupKind,
    body: (run: GroupRun, join: Join) => Promise<void>,
  ): void => {
    test(title, async () => {
      assert(broker !== null);
      const run = await GroupRun.start(broker, topic);
      const join: Join = (member, instance) =>
        run.join({ name: member, program: name, kind, instance: instance ?? null });
      try {
        await body(run, join);
      } finally {
        await run.close();
      }
    });
  };
  const eager: GroupKind = { strategy: 'eager', protocol: 'classic' };
  const cooperative: GroupKind = { strategy: 'cooperative', protocol: 'classic' };
  const consumer: GroupKind = { strategy: 'cooperative', protocol: 'consumer' };
  add('three members join, leave and crash', 'eager', eager, (run, join) =>
    threeMembers(run, join, eager),
  );
  if (features.cooperative === true)
    add('the same with a cooperative assignor', 'cooperative', cooperative, (run, join) =>
      threeMembers(run, join, cooperative),
    );
  if (features.statics === true)
    add('a static member comes back unnoticed', 'static', eager, staticMember);
  if (features.consumer === true)
    add('three members of the consumer protocol', 'consumer', consumer, (run, join) =>
      threeMembers(run, join, consumer),
    );
  return test;
}
