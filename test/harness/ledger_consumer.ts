/**
 * A process that consumes in a group and writes what it processes into a ledger, a line for each record. It commits each
 * record either after or before it processes it, and now and then dies in between, as by kill -9. It ends with 0 when
 * it has come to the offset that it was told.
 *
 *   node test/harness/ledger_consumer.ts '{ "host", "port", "group", "topic", "commit", "ledger", "end", "deathIn" }'
 */

import { randomInt } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { textOf } from './client.ts';
import { ConnectionLostError } from './connection.ts';
import { decodeRecords } from './fetched_records.ts';
import { type Generation, GroupSession, RejoinError } from './group_session.ts';

export interface LedgerConsumerOptions {
  readonly host: string;
  readonly port: number;
  readonly group: string;
  readonly topic: string;
  readonly commit: 'after' | 'before';
  /** Path of the ledger. */
  readonly ledger: string;
  /** Offset behind the last record. */
  readonly end: number;
  /** It dies once in so many steps. */
  readonly deathIn: number;
}

const options = JSON.parse(process.argv[2] ?? '{}') as LedgerConsumerOptions;

function perhapsDie(): void {
  if (randomInt(options.deathIn) === 0) process.kill(process.pid, 'SIGKILL');
}

async function consume(session: GroupSession, generation: Generation): Promise<void> {
  let offset = (await session.committed()).get(0) ?? 0;
  while (offset < options.end) {
    const part = { topic: options.topic, partition: 0, offset };
    const answer = await session.client.fetch([part], { maxWaitMs: 100 });
    const records = answer.responses[0]?.partitions[0]?.records ?? null;
    if (!(records instanceof Uint8Array)) continue;
    for (const one of decodeRecords(records, offset).records) {
      const commit = () => session.commit(generation, new Map([[0, one.offset + 1]]));
      const work = () => appendFileSync(options.ledger, `${textOf(one.value)}\n`);
      if (options.commit === 'before') await commit();
      else work();
      perhapsDie();
      if (options.commit === 'before') work();
      else await commit();
      offset = one.offset + 1;
    }
    await session.heartbeat(generation);
  }
}

async function main(): Promise<void> {
  for (;;) {
    try {
      const session = await GroupSession.connect(options, {
        group: options.group,
        topic: options.topic,
        partitions: 1,
        // A static member takes its own place when it comes back, and need not wait for a session to end.
        instance: 'ledger',
        sessionTimeoutMs: 6_000,
        rebalanceTimeoutMs: 6_000,
      });
      await consume(session, await session.join(''));
      session.close();
      return;
    } catch (error) {
      if (!(error instanceof ConnectionLostError) && !(error instanceof RejoinError)) throw error;
      await sleep(20);
    }
  }
}

await main();
