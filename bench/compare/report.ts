/** From raw rounds to what people read: medians, noise, and ratios to the peers round by round. */
import type { Values } from './measure.ts';
import type { RoundResult } from './runner.ts';
import { median, medianRatio, type RoundValue, spreadPercent } from './stats.ts';
import { formatNumber, renderTable } from './table.ts';

/** The brokers that others are compared with, where they are in the run. */
const BASES = ['kafka', 'sink', 'millrace@1'];

/** Short column heads for the names of values; others are printed as they are. */
const HEADS: Record<string, string> = {
  messagesPerSecond: 'msg/s',
  serverCpuMsPerMiB: 'server ms/MiB',
  clientCpuMsPerMiB: 'client ms/MiB',
  serverPercent: 'server %',
  clientPercent: 'client %',
  othersPercent: 'others %',
  stolenPercent: 'stolen %',
  serverCpuMsPer1000: 'server ms/1000',
  answeredPerSecond: 'answers/s',
  rssMiB: 'RSS MiB',
  p50Ms: 'p50 ms',
  p99Ms: 'p99 ms',
  p999Ms: 'p99.9 ms',
  maxMs: 'max ms',
};

export interface Summary {
  work: string;
  broker: string;
  rounds: number;
  median: Values;
  spreadPercent: Values;
  /** By the peer's name: median over the rounds of value / peer's value in the same round. */
  ratioTo: Record<string, Values>;
  /** How often each side was the bottleneck. */
  bottlenecks: Record<string, number>;
}

/** Summarises the counted rounds, by work, then by broker, each in the order of first appearance. */
export function summarise(results: readonly RoundResult[]): Summary[] {
  const counted = results.filter((result) => result.round > 0);
  const groups = new Map<string, RoundResult[]>();
  for (const result of counted) {
    const key = `${result.work}\n${result.broker}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [result]);
    else group.push(result);
  }
  const works = [...new Set(counted.map((result) => result.work))];
  return [...groups.values()]
    .map((group) => summariseGroup(group, groups))
    .sort((one, other) => works.indexOf(one.work) - works.indexOf(other.work));
}

function summariseGroup(
  group: readonly RoundResult[],
  groups: ReadonlyMap<string, readonly RoundResult[]>,
): Summary {
  const { work, broker } = group[0] as RoundResult;
  const summary: Summary = {
    work,
    broker,
    rounds: group.length,
    median: {},
    spreadPercent: {},
    ratioTo: {},
    bottlenecks: {},
  };
  const names = namesOf(group);
  for (const name of names) {
    const values = roundValues(group, name).map(({ value }) => value);
    summary.median[name] = median(values);
    summary.spreadPercent[name] = spreadPercent(values);
  }
  for (const base of BASES) {
    const bases = groups.get(`${work}\n${base}`);
    if (bases === undefined || base === broker) continue;
    summary.ratioTo[base] = Object.fromEntries(
      names.map((name) => [name, medianRatio(roundValues(group, name), roundValues(bases, name))]),
    );
  }
  for (const { bottleneck } of group)
    if (bottleneck !== null)
      summary.bottlenecks[bottleneck] = (summary.bottlenecks[bottleneck] ?? 0) + 1;
  return summary;
}

function namesOf(group: readonly RoundResult[]): string[] {
  return [...new Set(group.flatMap((result) => Object.keys(result.values)))];
}

function roundValues(group: readonly RoundResult[], name: string): RoundValue[] {
  return group
    .filter((result) => result.values[name] !== undefined)
    .map((result) => ({
      key: `${result.process}-${result.round}`,
      value: result.values[name] as number,
    }));
}

/** One table for each set of rows that have the same values; below each median its noise and ratios. */
export function renderReport(summaries: readonly Summary[]): string {
  const tables = new Map<string, Summary[]>();
  for (const summary of summaries) {
    // Brokers that can do only part of a work share its table.
    const family = [...tables.keys()].find((key) => sameFamily(tables.get(key)![0]!, summary));
    if (family === undefined) tables.set(String(tables.size), [summary]);
    else tables.get(family)!.push(summary);
  }
  return [...tables.values()].map(renderFamily).join('\n\n');
}

function sameFamily(one: Summary, other: Summary): boolean {
  if (one.work === other.work) return true;
  return Object.keys(one.median).join() === Object.keys(other.median).join();
}

function renderFamily(family: readonly Summary[]): string {
  const names = [...new Set(family.flatMap((summary) => Object.keys(summary.median)))];
  const cells = (values: Values): string[] =>
    names.map((name) => formatNumber(values[name] ?? Number.NaN));
  const rows: string[][] = [];
  for (const summary of family) {
    const held = Object.entries(summary.bottlenecks).sort(([, a], [, b]) => b - a);
    rows.push([
      `${summary.work}: ${summary.broker}`,
      String(summary.rounds),
      ...cells(summary.median),
      held[0]?.[0] ?? '',
    ]);
    if (summary.rounds > 1) rows.push(['  noise %', '', ...cells(summary.spreadPercent)]);
    for (const [base, values] of Object.entries(summary.ratioTo))
      rows.push([`  ÷ ${base}`, '', ...cells(values)]);
  }
  const heads = names.map((name) => HEADS[name] ?? name);
  return renderTable(['work: broker', 'rounds', ...heads, 'bottleneck'], rows);
}
