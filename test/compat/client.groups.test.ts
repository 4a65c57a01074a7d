/**
 * Members of the project's own client and of Kafka's Java client in one and the same group, in either protocol and whoever
 * leads it: they share the partitions, leave and join, and since nobody crashes every record is read once.
 */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import type { BrokerProcess } from '../harness/broker_process.ts';
import { startBroker } from './exchange.ts';
import { type GroupKind, GroupRun, type RunMember } from './group_run.ts';

const test = suite<{ broker?: BrokerProcess }>('client, in a group with Java');

test.before(async (context) => {
  const settings = {
    'group.initial.rebalance.delay.ms': 300,
    'group.consumer.heartbeat.interval.ms': 500,
    'group.consumer.min.heartbeat.interval.ms': 500,
  };
  context.broker = await startBroker({ settings });
});

test.after(async ({ broker }) => {
  await broker?.dispose();
});

type Join = (name: string) => Promise<RunMember>;

/** Both clients lead: at first one of the first client, and in the end one of the other, which has been there for longer. */
async function shareOneGroup(run: GroupRun, joinFirst: Join, joinOther: Join): Promise<void> {
  const first = await joinFirst('first');
  await run.settled(first);
  const other = await joinOther('other');
  await run.settled(first, other);
  const second = await joinFirst('second');
  await run.settled(first, other, second);
  await other.leave();
  await run.settled(first, second);
  const again = await joinOther('other again');
  await run.settled(first, second, again);
  await first.leave();
  await run.settled(second, again);
  await second.leave();
  await run.settled(again);
  const last = await joinFirst('last');
  await run.settled(again, last);
  const written = await run.finish();
  await again.leave();
  await last.leave();
  await run.checkCommitted();
  const processed = run.members.flatMap((member) => member.processed);
  const twice = processed.filter((one, at) => processed.indexOf(one) !== at);
  assert.deepEqual(twice, [], 'read more than once');
  assert.equal(processed.length, written);
}

interface Case {
  readonly kind: GroupKind;
  readonly first: 'own' | 'java';
}

const cases: Readonly<Record<string, Case>> = {
  range: { kind: { strategy: 'eager', protocol: 'classic' }, first: 'own' },
  cooperative: { kind: { strategy: 'cooperative', protocol: 'classic' }, first: 'java' },
  consumer: { kind: { strategy: 'cooperative', protocol: 'consumer' }, first: 'own' },
};
for (const [what, { kind, first }] of Object.entries(cases))
  test(`${what}: partitions are shared, and every record is read once`, async ({ broker }) => {
    const run = await GroupRun.start(broker as BrokerProcess, what);
    const joinOwn: Join = async (name) => run.joinOwn(name, kind);
    const joinJava: Join = (name) => run.join({ name, program: 'java', kind });
    try {
      if (first === 'own') await shareOneGroup(run, joinOwn, joinJava);
      else await shareOneGroup(run, joinJava, joinOwn);
    } finally {
      await run.close();
    }
  });

test.run();
