/** What a measurement shows while it runs, and at its end. */
import { byteText, spanText } from '../cli/quantity.ts';
import { printTable } from '../cli/table.ts';
import { columns, isInteractive, printJson, writeOut } from '../cli/terminal.ts';
import type { Histogram } from '../histogram.ts';

const redrawMs = 250;
const percents = [50, 90, 99, 99.9] as const;

export interface Counters {
  messages: number;
  bytes: number;
  failed: number;
}

/** A line on standard error, drawn anew four times a second; nothing where that is no terminal. */
export class LiveLine {
  readonly #counters: Counters;
  readonly #latencies: Histogram | null;
  readonly #begunMs = performance.now();
  readonly #timer: NodeJS.Timeout | null;
  #lastMs = this.#begunMs;
  #lastMessages = 0;
  #lastBytes = 0;

  constructor(counters: Counters, latencies: Histogram | null) {
    this.#counters = counters;
    this.#latencies = latencies;
    this.#timer = isInteractive(process.stderr)
      ? setInterval(() => this.#draw(), redrawMs).unref()
      : null;
  }

  end(): void {
    if (this.#timer === null) return;
    clearInterval(this.#timer);
    process.stderr.write('\r\u001b[2K');
  }

  #draw(): void {
    const nowMs = performance.now();
    const seconds = (nowMs - this.#lastMs) / 1_000;
    const { messages, bytes, failed } = this.#counters;
    const text = liveText({
      elapsed: (nowMs - this.#begunMs) / 1_000,
      messageRate: (messages - this.#lastMessages) / seconds,
      byteRate: (bytes - this.#lastBytes) / seconds,
      latencies: this.#latencies,
      failed,
    });
    this.#lastMs = nowMs;
    this.#lastMessages = messages;
    this.#lastBytes = bytes;
    process.stderr.write(`\r\u001b[2K${text.slice(0, columns(process.stderr) - 1)}`);
  }
}

interface Live {
  readonly elapsed: number;
  readonly messageRate: number;
  readonly byteRate: number;
  readonly latencies: Histogram | null;
  readonly failed: number;
}

function liveText({ elapsed, messageRate, byteRate, latencies, failed }: Live): string {
  const parts = [
    `${elapsed.toFixed(1).padStart(5)} s`,
    `${rateText(messageRate).padStart(9)} msg/s`,
    `${byteText(byteRate).padStart(8)}/s`,
  ];
  if (latencies !== null && latencies.count > 0)
    parts.push(`p50 ${msText(latencies.percentile(50))}  p99 ${msText(latencies.percentile(99))}`);
  if (failed > 0) parts.push(`${failed} failed`);
  return parts.join('  ');
}

function rateText(rate: number): string {
  return Math.round(rate).toLocaleString('en-US');
}

function msText(ms: number): string {
  return ms < 1_000 ? `${ms.toFixed(ms < 10 ? 2 : 1)} ms` : spanText(ms);
}

export interface Result {
  readonly what: string;
  readonly counters: Counters;
  readonly seconds: number;
  readonly latencies: Histogram | null;
  /** Of this process. */
  readonly cpuSeconds: number;
  readonly error: string | null;
}

/** Returns whether all went well. */
export function printResult(result: Result, isJson: boolean): void {
  const { what, counters, seconds, latencies, cpuSeconds, error } = result;
  const { messages, bytes, failed } = counters;
  const latencyMs =
    latencies === null || latencies.count === 0
      ? null
      : Object.fromEntries([
          ...percents.map((percent) => [`p${percent}`, latencies.percentile(percent)] as const),
          ['max', latencies.maxMs],
        ]);
  if (isJson) {
    const rates = { messagesPerSecond: messages / seconds, bytesPerSecond: bytes / seconds };
    printJson({ what, messages, bytes, failed, seconds, ...rates, cpuSeconds, latencyMs, error });
    return;
  }
  printTable(
    [what, 'seconds', 'msg/s', 'bytes/s', 'client cpu', 'failed'],
    [
      [
        messages,
        seconds.toFixed(1),
        rateText(messages / seconds),
        byteText(bytes / seconds),
        `${cpuSeconds.toFixed(1)} s`,
        failed,
      ],
    ],
  );
  if (latencyMs === null) return;
  writeOut('\n');
  const names = Object.keys(latencyMs);
  printTable(['latency', ...names], [['', ...names.map((name) => msText(latencyMs[name] ?? 0))]]);
}

/** Seconds of this process's processor time since `from`. */
export function cpuSince(from: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(from);
  return (user + system) / 1e6;
}
