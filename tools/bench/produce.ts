/** `millrace bench produce`. */
import { randomBytes } from 'node:crypto';
import { explainedText, withClient } from '../cli/connect.ts';
import { CliExit } from '../cli/exit_code.ts';
import { interruption, say } from '../cli/terminal.ts';
import type { BenchOptions } from '../commands/bench.ts';
import { Histogram } from '../histogram.ts';
import { ensureTopic } from './bench_topic.ts';
import { runOpenLoop } from './open_loop.ts';
import { type Counters, cpuSince, LiveLine, printResult } from './report.ts';

/** Different values, so that compression has something to do; as many as fit well into a cache. */
const valuesCount = 64;

export function benchProduce(options: BenchOptions): Promise<void> {
  return withClient(options, async (client) => {
    const { topic, partitions, size, rate, seconds } = options;
    await ensureTopic(client.admin(), topic, partitions);
    await using producer = client.producer(producerOptions(options));
    const values = valuesOf(size);
    const latencies = new Histogram();
    const counters: Counters = { messages: 0, bytes: 0, failed: 0 };
    let firstError: unknown = null;
    const send = async (number: number, dueMs: number): Promise<void> => {
      try {
        await producer.send({ topic, value: values[number % valuesCount] as Uint8Array });
        latencies.record(performance.now() - dueMs);
        counters.messages += 1;
        counters.bytes += size;
      } catch (error) {
        firstError ??= error;
        counters.failed += 1;
      }
    };
    const cpu = process.cpuUsage();
    const live = new LiveLine(counters, latencies);
    const interrupted = interruption();
    const { signal } = interrupted;
    const begunMs = performance.now();
    await runOpenLoop({ rate, seconds, signal, send });
    const elapsed = (performance.now() - begunMs) / 1_000;
    live.end();
    interrupted.release();
    const error = firstError === null ? null : explainedText(firstError);
    printResult(
      { what: 'produced', counters, seconds: elapsed, latencies, cpuSeconds: cpuSince(cpu), error },
      options.json === true,
    );
    if (error === null) return;
    process.exitCode = CliExit.failed;
    if (options.json !== true) say(`millrace: ${error}`);
  });
}

/** As `client.producer` takes them. */
export function producerOptions({ compression, acks, linger, batch }: BenchOptions): {
  readonly compression: BenchOptions['compression'];
  readonly acks: 'all' | 1 | 0;
  readonly lingerMs: number;
  readonly batchBytes: number;
} {
  return {
    ...{ compression, lingerMs: linger, batchBytes: batch },
    acks: acks === 'all' ? 'all' : acks === '1' ? 1 : 0,
  };
}

/** Half noise and half text, which compresses to about half. */
export function valuesOf(size: number): Uint8Array[] {
  return Array.from({ length: valuesCount }, (_, number) => {
    const value = Buffer.alloc(size, `millrace bench ${number} `);
    value.set(randomBytes(size >> 1), 0);
    return value;
  });
}
