/** `millrace bench latency`: from the time at which a message is due until a consumer has it, all in this process. */
import { explainedText, withClient } from '../cli/connect.ts';
import { CliExit } from '../cli/exit_code.ts';
import { interruption, say } from '../cli/terminal.ts';
import type { BenchOptions } from '../commands/bench.ts';
import { Histogram } from '../histogram.ts';
import { ensureTopic } from './bench_topic.ts';
import { runOpenLoop } from './open_loop.ts';
import { producerOptions } from './produce.ts';
import { type Counters, cpuSince, LiveLine, printResult } from './report.ts';

/** What is not consumed by then is counted as failed. */
const drainMs = 10_000;

export function benchLatency(options: BenchOptions): Promise<void> {
  return withClient(options, async (client) => {
    const { topic, partitions, size, rate, seconds } = options;
    const admin = client.admin();
    await ensureTopic(admin, topic, partitions);
    const ends = await admin.listOffsets((await admin.describeTopic(topic)).partitions, 'latest');
    await using producer = client.producer(producerOptions(options));
    await using consumer = client.consumer({
      partitions: ends.map(({ partition, offset }) => ({ topic, partition, offset })),
    });
    const latencies = new Histogram();
    const counters: Counters = { messages: 0, bytes: 0, failed: 0 };
    const run = process.hrtime.bigint();
    let firstError: unknown = null;
    const send = async (_: number, dueMs: number): Promise<void> => {
      const value = Buffer.alloc(Math.max(16, size));
      value.writeDoubleBE(dueMs, 0);
      // Messages of an earlier run, or of another process, are not this one's.
      value.writeBigInt64BE(run, 8);
      try {
        await producer.send({ topic, value });
      } catch (error) {
        firstError ??= error;
        counters.failed += 1;
      }
    };
    const stopping = new AbortController();
    const reading = (async (): Promise<void> => {
      for await (const { value } of consumer.messages({ signal: stopping.signal })) {
        if (value === null || value.length < 16 || value.readBigInt64BE(8) !== run) continue;
        latencies.record(performance.now() - value.readDoubleBE(0));
        counters.messages += 1;
        counters.bytes += value.length;
      }
    })().catch((error: unknown) => {
      if (!stopping.signal.aborted) firstError ??= error;
    });
    const cpu = process.cpuUsage();
    const live = new LiveLine(counters, latencies);
    const interrupted = interruption();
    const begunMs = performance.now();
    const { signal } = interrupted;
    const { sent } = await runOpenLoop({ rate, seconds, signal, send });
    const deadlineMs = performance.now() + drainMs;
    const isComplete = (): boolean => counters.messages + counters.failed >= sent;
    while (!isComplete() && performance.now() < deadlineMs && !signal.aborted)
      await new Promise((resolve) => setTimeout(resolve, 5));
    const elapsed = (performance.now() - begunMs) / 1_000;
    stopping.abort();
    await reading;
    live.end();
    interrupted.release();
    counters.failed = sent - counters.messages;
    const error = firstError === null ? null : explainedText(firstError);
    printResult(
      { what: 'messages', counters, seconds: elapsed, latencies, cpuSeconds: cpuSince(cpu), error },
      options.json === true,
    );
    if (counters.failed > 0 && !signal.aborted) process.exitCode = CliExit.failed;
    if (error !== null && options.json !== true) say(`millrace: ${error}`);
  });
}
