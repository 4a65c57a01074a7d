/** `millrace bench consume`. */
import { CommandError, withClient } from '../cli/connect.ts';
import { interruption } from '../cli/terminal.ts';
import type { BenchConsumeOptions } from '../commands/bench.ts';
import { type Counters, cpuSince, LiveLine, printResult } from './report.ts';

export function benchConsume(options: BenchConsumeOptions): Promise<void> {
  return withClient(options, async (client) => {
    const { topic } = options;
    const admin = client.admin();
    const { partitions } = await admin.describeTopic(topic);
    const [first, end] = await Promise.all([
      admin.listOffsets(partitions, 'earliest'),
      admin.listOffsets(partitions, 'latest'),
    ]);
    const begins = first.flatMap(({ partition, offset }, number) =>
      offset < (end[number]?.offset ?? 0) ? [{ topic, partition, offset }] : [],
    );
    if (begins.length === 0)
      throw new CommandError(`${topic} is empty.`, 'millrace bench produce fills it.');
    const ends = new Map(end.map(({ partition, offset }) => [partition, offset]));
    const left = new Set(begins.map(({ partition }) => partition));
    const max = options.max ?? Number.POSITIVE_INFINITY;
    const counters: Counters = { messages: 0, bytes: 0, failed: 0 };
    const interrupted = interruption();
    await using consumer = client.consumer({ partitions: begins });
    const cpu = process.cpuUsage();
    const live = new LiveLine(counters, null);
    const begunMs = performance.now();
    try {
      for await (const batch of consumer.batches({ signal: interrupted.signal })) {
        counters.messages += batch.messages.length;
        for (const { key, value } of batch.messages)
          counters.bytes += (key?.length ?? 0) + (value?.length ?? 0);
        const last = batch.messages.at(-1)?.offset ?? 0;
        if (last + 1 >= (ends.get(batch.partition) ?? 0)) left.delete(batch.partition);
        if (left.size === 0 || counters.messages >= max) break;
      }
    } catch (error) {
      if (!interrupted.signal.aborted) throw error;
    }
    const seconds = (performance.now() - begunMs) / 1_000;
    live.end();
    interrupted.release();
    const cpuSeconds = cpuSince(cpu);
    printResult(
      { what: 'consumed', counters, seconds, latencies: null, cpuSeconds, error: null },
      options.json === true,
    );
  });
}
