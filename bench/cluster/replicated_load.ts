/** acks=all to three replicas: what it costs, and how long it takes. */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { record } from '../../test/harness/client.ts';
import { Histogram } from '../../tools/histogram.ts';
import type { Bench } from '../cluster.ts';
import { run } from '../compare/children.ts';
import { readStat } from '../compare/proc.ts';

export const backMs = 300_000;
export const loadMiB = 256;
const rounds = 4;
const lineBytes = 1_024;
export const latencySeconds = 10;
const perSecond = 200;

/** Lines of 1 KiB that do not compress. */
export function payload({ dir }: Bench, mib: number): string {
  const file = join(dir, `payload-${mib}`);
  const lines = Array.from({ length: (mib * 1_048_576) / lineBytes }, () =>
    randomBytes((lineBytes / 4) * 3).toString('base64'),
  );
  writeFileSync(file, `${lines.join('\n')}\n`);
  return file;
}

/** kcat writes the file to all partitions; answers with the milliseconds. */
export function produce({ cluster, topic }: Bench, file: string): Promise<number> {
  const settings = ['acks=all', 'linger.ms=5', 'batch.size=1000000', 'batch.num.messages=100000'];
  const options = settings.flatMap((one) => ['-X', one]);
  return run(['kcat', '-P', '-b', cluster.bootstrap, '-t', topic, ...options, '-l', file], {
    timeoutMs: backMs,
  });
}

function cpuMs({ cluster }: Bench): number {
  return cluster.ids
    .filter((id) => cluster.isUp(id))
    .reduce((sum, id) => sum + readStat(cluster.broker(id).pid).cpuMs, 0);
}

/** CPU of all three brokers for each MiB, and the rate; the first round warms up. */
export async function load(bench: Bench): Promise<void> {
  const file = payload(bench, loadMiB);
  await bench.view.electPreferred();
  for (let round = 0; round < rounds; round += 1) {
    await sleep(1_000);
    const before = cpuMs(bench);
    const ms = await produce(bench, file);
    await sleep(300);
    const cpu = (cpuMs(bench) - before) / loadMiB;
    const rate = Math.round((loadMiB * 1_048_576) / lineBytes / (ms / 1_000));
    console.log(
      `load, ${round === 0 ? 'dropped' : `round ${round}`}: ${cpu.toFixed(2)} ms of CPU on three brokers for each MiB, ${rate} messages of 1 KiB a second`,
    );
  }
}

/** Sends one record of 1 KiB after the other, on time whatever the answers do; answers with how long each took. */
export async function openLoop(bench: Bench, seconds: number): Promise<Histogram> {
  const { view, topic, partitions } = bench;
  const value = randomBytes(512).toString('hex');
  const begun = performance.now();
  const times = new Histogram();
  const answers: Promise<void>[] = [];
  for (let count = 0; count < seconds * perSecond; count += 1) {
    const due = begun + (count * 1_000) / perSecond;
    const earlyMs = due - performance.now();
    if (earlyMs > 0) await sleep(earlyMs);
    const partition = count % partitions;
    const client = await view.client(view.partition({ topic, partition })?.leaderId ?? 1);
    if (client === null) throw new Error('no connection to a leader');
    const sent = client.produce([{ topic, partition, batch: [record(value)] }]);
    answers.push(
      sent.then(([answer]) => {
        if (answer?.errorCode !== ErrorCode.NONE) throw new Error(`refused: ${answer?.errorCode}`);
        times.record(performance.now() - due);
      }),
    );
  }
  await Promise.all(answers);
  return times;
}

export function percentiles(times: Histogram): string {
  return `p50 ${times.percentile(50).toFixed(2)} ms, p99 ${times.percentile(99).toFixed(2)} ms`;
}

/** One record a request, 200 a second; the first run warms up. */
export async function latency(bench: Bench): Promise<void> {
  await bench.view.electPreferred();
  await bench.view.refresh();
  for (let round = 0; round < rounds; round += 1) {
    const times = await openLoop(bench, latencySeconds);
    const what = round === 0 ? 'dropped' : `round ${round}`;
    console.log(`latency at ${perSecond}/s, ${what}: ${percentiles(times)}`);
  }
}
