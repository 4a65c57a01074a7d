/**
 * What a consumer may rely on that dies by kill -9 at any moment: who commits after processing processes every record at
 * least once; who commits before processing, at most once. The broker is killed now and then, too.
 *
 *   node test/scenario/ledger.test.ts [--rounds N] [--seed N]     N records
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import { BrokerProcess } from '../harness/broker_process.ts';
import { Client, record } from '../harness/client.ts';
import type { LedgerConsumerOptions } from '../harness/ledger_consumer.ts';
import { runScenario, type ScenarioRun, scenarioOptions } from '../harness/scenario_options.ts';

const options = scenarioOptions();
const records = options.rounds ?? 400;
const deathIn = 25;
const brokerDeaths = 3;
const program = join(import.meta.dirname, '..', 'harness', 'ledger_consumer.ts');

const test = suite('ledger');

interface Outcome {
  /** How often each record was processed. */
  readonly times: ReadonlyMap<string, number>;
  readonly deaths: number;
}

/** Writes the records and has them consumed, by one consumer after the other. */
async function runLedger(
  { dataDir, random }: ScenarioRun,
  commit: LedgerConsumerOptions['commit'],
): Promise<Outcome> {
  const brokerDir = join(dataDir, 'data');
  mkdirSync(brokerDir);
  const broker = await BrokerProcess.start({
    dataDir: brokerDir,
    settings: { 'group.initial.rebalance.delay.ms': 0 },
  });
  try {
    const client = await Client.connect(broker);
    await client.createTopic('work');
    for (let count = 0; count < records; count += 1)
      await client.produceOne('work', 0, [record(`record ${count}`)]);
    client.close();
    const ledger = join(dataDir, 'ledger');
    let isDone = false;
    const killing = (async () => {
      for (let count = 0; count < brokerDeaths && !isDone; count += 1) {
        await sleep(500 + random(1_500));
        await broker.kill();
        await broker.restart();
      }
    })();
    const { host } = broker;
    const deaths = await consumeAll(() => {
      const { port } = broker;
      const end = records;
      return { host, port, group: 'ledger', topic: 'work', commit, ledger, end, deathIn };
    });
    isDone = true;
    await killing;
    return { times: count(ledger), deaths };
  } finally {
    await broker.dispose();
  }
}

/** Starts consumers until one comes to the end. Returns how many died. */
async function consumeAll(optionsNow: () => LedgerConsumerOptions): Promise<number> {
  for (let deaths = 0; ; deaths += 1) {
    const child = spawn(process.execPath, [program, JSON.stringify(optionsNow())], {
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    const [code, signal] = await new Promise<[number | null, string | null]>((resolve) =>
      child.once('close', (...end) => resolve(end)),
    );
    if (code === 0) return deaths;
    assert.equal(signal, 'SIGKILL', `a consumer ended with ${code}`);
    assert(deaths < records, 'the consumers do not come to the end');
  }
}

function count(ledger: string): Map<string, number> {
  const times = new Map<string, number>();
  const lines = existsSync(ledger) ? readFileSync(ledger, 'utf8').trimEnd().split('\n') : [];
  for (const line of lines) times.set(line, (times.get(line) ?? 0) + 1);
  return times;
}

const all = Array.from({ length: records }, (_, index) => `record ${index}`);

test('who commits after processing has processed every record at least once', async () => {
  await runScenario(options, async (run) => {
    const { times, deaths } = await runLedger(run, 'after');
    const lost = all.filter((one) => !times.has(one));
    assert.deepEqual(lost, []);
    const again = all.filter((one) => (times.get(one) ?? 0) > 1).length;
    // A consumer that dies between the two has its record processed again: the price of losing none.
    assert(deaths > 0 && again > 0, `${deaths} deaths, ${again} records processed again`);
    console.log(
      `${deaths} deaths, ${again} of ${records} records processed more than once, none lost`,
    );
  });
});

test('who commits before processing has processed every record at most once', async () => {
  await runScenario(options, async (run) => {
    const { times, deaths } = await runLedger(run, 'before');
    assert.deepEqual(
      [...times].filter(([, times]) => times > 1),
      [],
    );
    const lost = all.filter((one) => !times.has(one)).length;
    assert(deaths > 0 && lost > 0, `${deaths} deaths, ${lost} records lost`);
    console.log(`${deaths} deaths, ${lost} of ${records} records never processed, none twice`);
  });
});

test.run();
