/** Resident memory of a process, from /proc. */
import { readFileSync, writeFileSync } from 'node:fs';

/** Bytes that the process has in memory now. */
export function residentBytes(pid: number): number {
  return statusBytes(pid, 'VmRSS');
}

/** The most that it ever had since `resetPeak`. */
export function peakBytes(pid: number): number {
  return statusBytes(pid, 'VmHWM');
}

/** Starts the peak anew from what the process has now. */
export function resetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5');
}

function statusBytes(pid: number, field: string): number {
  const match = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(
    readFileSync(`/proc/${pid}/status`, 'utf8'),
  );
  if (match === null) throw new Error(`/proc/${pid}/status has no ${field}`);
  return Number(match[1]) * 1024;
}
