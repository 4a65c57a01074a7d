/**
 * What the kernel knows about a process, from procfs (see proc(5)). Linux only.
 */
import { readFileSync } from 'node:fs';

/**
 * Clock ticks a second in /proc/<pid>/stat. The kernel's USER_HZ is 100 on every architecture that Node
 * is built for, whatever its internal HZ.
 */
const TICKS_PER_SECOND = 100;
const MS_PER_TICK = 1_000 / TICKS_PER_SECOND;

export interface ProcessStat {
  pid: number;
  /** The executable's name, without its parentheses. It may hold spaces and parentheses of its own. */
  name: string;
  /** One letter: R running, S sleeping, D waiting for a disk, Z zombie, T stopped. */
  state: string;
  /** User and system time of all threads, those that have ended included, in milliseconds. */
  cpuMs: number;
  /** User and system time of the children that have been waited for, in milliseconds. */
  childrenCpuMs: number;
  threads: number;
}

/** Parses one line of /proc/<pid>/stat. Throws when it is not one. */
export function parseStat(text: string): ProcessStat {
  const open = text.indexOf('(');
  const close = text.lastIndexOf(')');
  if (open < 1 || close < open) throw new Error(`not a line of /proc/<pid>/stat: ${text}`);
  // Field 3 of proc(5) is the first one behind the name.
  const fields = text.slice(close + 2).split(' ');
  const field = (number: number): number => {
    const value = Number(fields[number - 3]);
    if (!Number.isFinite(value)) throw new Error(`field ${number} is missing in: ${text}`);
    return value;
  };
  return {
    pid: Number(text.slice(0, open)),
    name: text.slice(open + 1, close),
    state: fields[0] ?? '?',
    cpuMs: (field(14) + field(15)) * MS_PER_TICK,
    childrenCpuMs: (field(16) + field(17)) * MS_PER_TICK,
    threads: field(20),
  };
}

/** A size of /proc/<pid>/status ("VmRSS:  1024 kB") in MiB. Throws when the line is not there. */
export function parseStatusMiB(text: string, key: 'VmRSS' | 'VmHWM'): number {
  const match = new RegExp(`^${key}:\\s+(\\d+) kB$`, 'm').exec(text);
  if (match === null) throw new Error(`${key} is missing in /proc/<pid>/status`);
  return Number(match[1]) / 1_024;
}

/** What all CPUs together did since boot, in milliseconds. */
export interface MachineTime {
  /** Busy for this machine's own threads and interrupts: everything but idle, waiting for disks and stolen. */
  busyMs: number;
  /** A virtual CPU wanted to run and the host ran something else. */
  stolenMs: number;
}

/** Parses the first line of /proc/stat. Throws when it is not that file. */
export function parseMachineTime(text: string): MachineTime {
  const [name, ...fields] = (text.split('\n')[0] ?? '').split(/\s+/);
  if (name !== 'cpu' || fields.length < 8) throw new Error(`not /proc/stat: ${text.slice(0, 80)}`);
  // user nice system idle iowait irq softirq steal; guest time is part of user.
  const [user, nice, system, , , irq, softirq, steal] = fields.map(Number) as number[];
  return {
    busyMs: (user! + nice! + system! + irq! + softirq!) * MS_PER_TICK,
    stolenMs: steal! * MS_PER_TICK,
  };
}

export function readMachineTime(): MachineTime {
  return parseMachineTime(readFileSync('/proc/stat', 'latin1'));
}

export function readStat(pid: number): ProcessStat {
  return parseStat(readFileSync(`/proc/${pid}/stat`, 'latin1'));
}

/** Resident memory of the process now, in MiB. */
export function readRssMiB(pid: number): number {
  return parseStatusMiB(readFileSync(`/proc/${pid}/status`, 'latin1'), 'VmRSS');
}

/**
 * CPU time of the client side so far, in milliseconds: this process and all children that it has waited
 * for. A client such as kcat counts once it has ended; brokers do not count while they run.
 */
export function clientCpuMs(): number {
  const own = process.cpuUsage();
  return (own.user + own.system) / 1_000 + readStat(process.pid).childrenCpuMs;
}
