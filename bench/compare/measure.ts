/** One timed piece of work: what it cost on both sides, and which side held it up. */
import type { RunningBroker } from './broker.ts';
import { clientCpuMs, readMachineTime } from './proc.ts';

/** Figures of one round by name; units are in the names. */
export type Values = Record<string, number>;

export type Bottleneck = 'server' | 'client' | 'neither';

/** One line of raw output: what one work did on one broker in one round. */
export interface Figures {
  /** The row it counts for, for example `W1`. */
  work: string;
  values: Values;
  bottleneck: Bottleneck | null;
  /** The client's command line, where the client is a program of its own. */
  command?: string;
}

export interface Cost {
  wallMs: number;
  serverCpuMs: number;
  clientCpuMs: number;
  /** What all CPUs did besides: the kernel's own threads (write-back) and the machine's other users. */
  othersCpuMs: number;
  /** What the host of a virtual machine took from its CPUs: above a tenth, trust no speed and no latency. */
  stolenMs: number;
}

/** Above this share of its one CPU a side counts as busy all the time. */
const BUSY = 0.85;

/** Runs `work` and says what it cost. `work` may return the wall time that counts, in milliseconds. */
export async function measure(
  broker: RunningBroker,
  work: () => Promise<number | undefined>,
): Promise<Cost> {
  const serverBefore = broker.cpuMs();
  const clientBefore = clientCpuMs();
  const before = readMachineTime();
  const started = performance.now();
  const counted = await work();
  const wallMs = counted ?? performance.now() - started;
  const serverCpuMs = broker.cpuMs() - serverBefore;
  const clientMs = clientCpuMs() - clientBefore;
  const after = readMachineTime();
  const othersCpuMs = Math.max(0, after.busyMs - before.busyMs - serverCpuMs - clientMs);
  const stolenMs = after.stolenMs - before.stolenMs;
  return { wallMs, serverCpuMs, clientCpuMs: clientMs, othersCpuMs, stolenMs };
}

/** The side that used its CPU nearly all the time; `neither` means that something else was waited for. */
export function bottleneckOf(cost: Cost): Bottleneck {
  const server = cost.serverCpuMs / cost.wallMs;
  const client = cost.clientCpuMs / cost.wallMs;
  if (Math.max(server, client) < BUSY) return 'neither';
  return server >= client ? 'server' : 'client';
}

/** The figures of moving `messages` messages with `mib` MiB of payload. */
export function throughputValues(cost: Cost, messages: number, mib: number): Values {
  return {
    messagesPerSecond: messages / (cost.wallMs / 1_000),
    serverCpuMsPerMiB: cost.serverCpuMs / mib,
    clientCpuMsPerMiB: cost.clientCpuMs / mib,
    ...shares(cost),
  };
}

/** How much of one CPU each side used, and everybody else, in per cent. */
export function shares(cost: Cost): {
  serverPercent: number;
  clientPercent: number;
  othersPercent: number;
  stolenPercent: number;
} {
  return {
    serverPercent: (cost.serverCpuMs / cost.wallMs) * 100,
    clientPercent: (cost.clientCpuMs / cost.wallMs) * 100,
    othersPercent: (cost.othersCpuMs / cost.wallMs) * 100,
    stolenPercent: (cost.stolenMs / cost.wallMs) * 100,
  };
}
