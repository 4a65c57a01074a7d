/**
 * The same commands of Kafka's tools against Millrace and against Kafka: what they print is the same but for the lines
 * that there is a reason for. A suite brings its steps, the differences with their reasons, and verbs of its own.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite, type Test } from 'uvu';
import {
  BrokerProcess,
  type Launcher,
  millrace,
  type Settings,
} from '../harness/broker_process.ts';
import { Cluster } from '../harness/cluster.ts';
import { kafkaLauncher } from './kafka_broker.ts';
import { type Program, startJava } from './peers/program_peer.ts';

/** Lines that only one of the two says, or that each says in its own way. Each must be met at least once. */
export interface Difference {
  readonly reason: string;
  /** Of the steps where the lines may be. */
  readonly step: RegExp;
  /** Kafka's lines. */
  readonly kafka?: RegExp;
  /** Millrace's lines. */
  readonly millrace?: RegExp;
}

/** A broker, or the brokers of a cluster. */
export interface Subject {
  readonly bootstrap: string;
  /** Of a cluster, what holds the brokers' own, which have their ids as names. */
  readonly dataDir: string;
  readonly cluster: Cluster | null;
}

/** A step that is no tool of Kafka's; answers with lines to compare. */
export type Verb = (tools: Tools, broker: Subject, args: readonly string[]) => Promise<string[]>;

export interface Comparison {
  /** Beside what a Kafka of one node needs. */
  readonly settings?: Settings;
  /** Clusters of so many brokers, in place of one broker each. */
  readonly brokers?: number;
  readonly steps: readonly string[];
  readonly differences: readonly Difference[];
  readonly verbs?: Readonly<Record<string, Verb>>;
  /** Takes out what differs from run to run. */
  readonly normalised: (line: string) => string;
  /** The order of lines is the tool's own, by hashes. */
  readonly isUnordered?: boolean;
  /** Steps that are repeated for a while until both say the same: what they show needs its time. */
  readonly settling?: RegExp;
  readonly close?: () => Promise<void>;
}

/** What a Kafka of one node needs, and Millrace takes as well. */
const oneNode: Settings = {
  'offsets.topic.replication.factor': 1,
  'transaction.state.log.replication.factor': 1,
  'transaction.state.log.min.isr': 1,
};

const classes: Readonly<Record<string, string>> = {
  'kafka-topics': 'org.apache.kafka.tools.TopicCommand',
  'kafka-configs': 'org.apache.kafka.tools.ConfigCommand',
  'kafka-log-dirs': 'org.apache.kafka.tools.LogDirsCommand',
  'kafka-get-offsets': 'org.apache.kafka.tools.GetOffsetShell',
  'kafka-consumer-groups': 'org.apache.kafka.tools.consumer.group.ConsumerGroupCommand',
  'kafka-groups': 'org.apache.kafka.tools.GroupsCommand',
  'kafka-console-consumer': 'org.apache.kafka.tools.consumer.ConsoleConsumer',
  'kafka-dump-log': 'org.apache.kafka.tools.DumpLogSegments',
  'kafka-reassign-partitions': 'org.apache.kafka.tools.reassign.ReassignPartitionsCommand',
  'kafka-leader-election': 'org.apache.kafka.tools.LeaderElectionCommand',
  'kafka-metadata-quorum': 'org.apache.kafka.tools.MetadataQuorumCommand',
  'kafka-cluster': 'org.apache.kafka.tools.ClusterTool',
};

/** Where the address goes that a tool is to ask. */
function addressed(name: string, bootstrap: string, args: readonly string[]): readonly string[] {
  if (name === 'kafka-dump-log') return args;
  // This one takes it behind its subcommand, the others before anything else.
  const at = name === 'kafka-cluster' ? 1 : 0;
  return [...args.slice(0, at), '--bootstrap-server', bootstrap, ...args.slice(at)];
}

const settleTries = 10;
/** Kafka needs seconds to notice that a broker is gone, and more when it led the quorum. */
const clusterSettleTries = 60;
const settleMs = 500;

/** The steps of a text: one a line, empty lines for the eye. */
export function stepsOf(text: string): string[] {
  return text.split('\n').filter((line) => line !== '');
}

/** One JVM in which the tools run, one after the other. */
export class Tools {
  readonly #java: Program;

  constructor(java: Program) {
    this.#java = java;
  }

  /** Where files for the tools go. */
  get dir(): string {
    return this.#java.dir;
  }

  /** What the command prints, and how it ends. */
  async run(broker: Subject, name: string, args: readonly string[]): Promise<string[]> {
    const output = join(this.dir, 'output');
    let errors: string;
    let status = 'ends with success';
    try {
      errors = await this.#java.run({
        command: 'tool',
        class: classes[name],
        args: addressed(name, broker.bootstrap, args),
        input: null,
        output,
      });
    } catch (error) {
      errors = (error as Error).message;
      status = /the tool exited with \d+/.exec(errors)?.[0] ?? errors;
    }
    const said = `${readFileSync(output, 'utf8')}\n${errors}`.split('\n').filter(isSaid);
    return [...said, status];
  }

  /** Writes one record by the producer of Java: topic, partition, timestamp. */
  async produce(broker: Subject, args: readonly string[]): Promise<string[]> {
    const [topic, partition, time] = args;
    const input = join(this.dir, 'input');
    const record = { key: '6b', value: '76', headers: [], timestamp: Number(time) };
    writeFileSync(input, `${JSON.stringify(record)}\n`);
    await this.#java.run({
      command: 'produce',
      bootstrap: broker.bootstrap,
      topic,
      partition: Number(partition),
      input,
      codec: 'none',
      acks: 'all',
      idempotent: true,
    });
    return [];
  }

  /** Puts in what only the broker knows: `@id(topic)`. */
  async complete(broker: Subject, step: string): Promise<string> {
    const topic = /@id\((\w+)\)/.exec(step)?.[1];
    if (topic === undefined) return step;
    const lines = await this.run(broker, 'kafka-topics', ['--describe', '--topic', topic]);
    const id = /TopicId: ([\w-]{22})/.exec(lines.join('\n'))?.[1];
    assert(id !== undefined, `${topic} has no id`);
    return step.replace(/@id\(\w+\)/, id);
  }
}

const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Neither empty, nor of a stack trace, nor of a log, nor of how the peer lets a tool exit. */
function isSaid(line: string): boolean {
  const noise =
    /^\s*$|^\s+(?:at |\.\.\. )|^Caused by: |^\[[\w |-]+\] (?:ERROR|WARN) |ToolExit|^exit with |IllegalStateException: the tool exited/;
  return !noise.test(line);
}

/** Starts what a comparison is about, and says how to end it. */
async function startSubject(
  launcher: () => Launcher,
  { brokers = 1, settings = {} }: Comparison,
): Promise<[Subject, () => Promise<void>]> {
  if (brokers === 1) {
    const all = { ...oneNode, ...settings };
    const broker = await BrokerProcess.start({ launcher: launcher(), settings: all });
    const { bootstrap, dataDir } = broker;
    return [{ bootstrap, dataDir, cluster: null }, () => broker.dispose()];
  }
  const dataDir = mkdtempSync(join(tmpdir(), 'millrace-comparison-'));
  const cluster = await Cluster.start({ brokers, settings, dataDir, launcher });
  const end = async (): Promise<void> => {
    await cluster.dispose();
    rmSync(dataDir, { recursive: true });
  };
  return [{ bootstrap: cluster.bootstrap, dataDir, cluster }, end];
}

/** Names addresses and directories alike, wherever they are. */
function named({ bootstrap, dataDir, cluster }: Subject, line: string): string {
  let text = line;
  for (const id of cluster?.ids ?? []) {
    const { host, port } = cluster!.broker(id);
    const controller = cluster!.controllerEndpoint(id);
    text = text
      .replaceAll(`${dataDir}/${id}/logs`, `<directory ${id}>`)
      .replaceAll(`${dataDir}/${id}`, `<directory ${id}>`)
      .replaceAll(`${host}:${port}`, `<address ${id}>`)
      .replaceAll(new RegExp(`\\b${port}\\b`, 'g'), `<port ${id}>`)
      .replaceAll(`${host}:${controller.port}`, `<controller ${id}>`);
  }
  return text
    .replaceAll(`${dataDir}/logs`, '<directory>')
    .replaceAll(dataDir, '<directory>')
    .replaceAll(bootstrap, '<address>');
}

/** The tests of a comparison, one a step. The caller runs them. */
export function comparisonSuite(name: string, comparison: Comparison): Test {
  const { steps, differences, settling } = comparison;
  const test = suite(name);
  let tools: Tools;
  let kafka: Subject;
  let ours: Subject;
  const closers: (() => Promise<void>)[] = [];
  const met = new Set<Difference>();

  test.before(async () => {
    const java = await startJava();
    closers.push(() => java.close());
    tools = new Tools(java);
    const start = async (launcher: () => Launcher): Promise<Subject> => {
      const [subject, end] = await startSubject(launcher, comparison);
      closers.push(end);
      return subject;
    };
    kafka = await start(() => kafkaLauncher());
    ours = await start(() => millrace);
  });

  test.after(async () => {
    await comparison.close?.();
    for (const close of closers) await close();
  });

  const run = async (broker: Subject, step: string): Promise<string[]> => {
    const [verb = '', ...args] = (await tools.complete(broker, step)).split(' ');
    const lines = await runVerb(broker, verb, args);
    const plain = lines.map((line) => comparison.normalised(named(broker, line)));
    return comparison.isUnordered === true ? plain.sort(byText) : plain;
  };

  const runVerb = (broker: Subject, verb: string, args: string[]): Promise<string[]> => {
    if (verb === 'produce') return tools.produce(broker, args);
    const own = comparison.verbs?.[verb];
    return own === undefined ? tools.run(broker, verb, args) : own(tools, broker, args);
  };

  /** Takes the lines out that differ for a reason. */
  const explained = (
    lines: readonly string[],
    step: string,
    side: 'kafka' | 'millrace',
  ): string[] => {
    const reasons = differences.filter((one) => one.step.test(step) && one[side] !== undefined);
    return lines.filter((line) => {
      const reason = reasons.find((one) => one[side]?.test(line));
      if (reason !== undefined) met.add(reason);
      return reason === undefined;
    });
  };

  for (const [index, step] of steps.entries())
    test(`${index + 1}: ${step}`, async () => {
      const patience = comparison.brokers === undefined ? settleTries : clusterSettleTries;
      const triesMax = settling?.test(step) === true ? patience : 1;
      for (let tries = 1; ; tries += 1) {
        const expected = await run(kafka, step);
        const actual = await run(ours, step);
        if (actual.join('\n') === expected.join('\n')) return;
        const [left, right] = [
          explained(actual, step, 'millrace'),
          explained(expected, step, 'kafka'),
        ];
        if (left.join('\n') !== right.join('\n') && tries < triesMax) await sleep(settleMs);
        else return assert.deepEqual(left, right);
      }
    });

  test('every reason is needed', () => {
    const idle = differences.filter((one) => !met.has(one)).map(({ reason }) => reason);
    assert.deepEqual(idle, []);
  });
  return test;
}
