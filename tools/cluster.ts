/** `millrace cluster`: a few brokers on this machine as one cluster, each a process of its own, for trying. */
import { type ChildProcess, spawn } from 'node:child_process';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { ExitCode } from './start_options.ts';

export interface ClusterOptions {
  /** How many, at least one. */
  readonly brokers: number;
  /** Each broker keeps its data in a directory below, by its number. */
  readonly dir: string;
  /** Of the first broker; the others have the next ones, and the quorum's listeners those from 100 above. */
  readonly port: number;
  /** For all brokers, over what the cluster needs. */
  readonly set: readonly string[];
}

interface Member {
  readonly id: number;
  readonly child: ChildProcess;
  readonly command: readonly string[];
}

const controllerPortsFrom = 100;
const readyLine = /\bready in \d+ ms/;

/** Runs the cluster until it is told to stop, or until all brokers have ended. */
export async function runCluster(options: ClusterOptions): Promise<void> {
  const members: Member[] = [];
  let isStopping = false;
  let ready = 0;
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const)
    process.on(signal, () => {
      isStopping = true;
      // Ctrl-C has reached them already; the same signal again within a second does no harm.
      for (const { child } of members) child.kill(signal);
    });
  const onReady = (): void => {
    ready += 1;
    if (ready !== options.brokers) return;
    say(`all ${options.brokers} brokers are ready: ${bootstrapServers(options)}`);
    for (const { id, child } of members) say(`broker ${id} is process ${child.pid}`);
    say('Ctrl-C stops all of them');
  };
  const ended: Promise<number>[] = [];
  for (let id = 1; id <= options.brokers; id += 1) {
    const member = startMember(id, options);
    members.push(member);
    printLines(member, onReady);
    ended.push(
      endOf(member, (how) => {
        if (isStopping) return;
        say(
          `broker ${id} ended (${how}). The others go on; to start it again in another terminal:`,
        );
        say(`  ${member.command.join(' ')}`);
      }),
    );
  }
  const codes = await Promise.all(ended);
  process.exitCode = codes.find((code) => code !== ExitCode.stopped) ?? ExitCode.stopped;
}

/** The settings that make broker `id` one of the cluster; what the user has set comes last and wins. */
export function memberSettings(id: number, options: ClusterOptions): string[] {
  const { brokers, dir, port, set } = options;
  const controllerPort = (of: number): number => port + controllerPortsFrom + of - 1;
  const ids = Array.from({ length: brokers }, (_, index) => index + 1);
  const voters = ids.map((of) => `${of}@127.0.0.1:${controllerPort(of)}`);
  const copies = Math.min(3, brokers);
  return [
    `node.id=${id}`,
    `log.dirs=${resolve(dir, String(id))}`,
    `listeners=PLAINTEXT://127.0.0.1:${port + id - 1},CONTROLLER://127.0.0.1:${controllerPort(id)}`,
    `controller.quorum.voters=${voters.join(',')}`,
    `default.replication.factor=${copies}`,
    `min.insync.replicas=${copies === 3 ? 2 : 1}`,
    ...set,
  ];
}

function bootstrapServers({ brokers, port }: ClusterOptions): string {
  const addresses = Array.from({ length: brokers }, (_, index) => `127.0.0.1:${port + index}`);
  return addresses.join(',');
}

function startMember(id: number, options: ClusterOptions): Member {
  const sets = memberSettings(id, options).flatMap((setting) => ['--set', setting]);
  const args = [join(import.meta.dirname, 'millrace.ts'), 'start', ...sets];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  return { id, child, command: [process.execPath, ...args] };
}

function printLines({ id, child }: Member, onReady: () => void): void {
  for (const stream of [child.stdout, child.stderr]) {
    if (stream === null) continue;
    createInterface({ input: stream }).on('line', (line) => {
      console.log(`${id} | ${line}`);
      if (readyLine.test(line)) onReady();
    });
  }
}

/** Resolves with the exit code; one that a signal ended has failed. */
function endOf({ child }: Member, onEnd: (how: string) => void): Promise<number> {
  return new Promise((resolveEnd) => {
    child.once('error', (error) => {
      onEnd(error.message);
      resolveEnd(ExitCode.cannotStart);
    });
    child.once('close', (code, signal) => {
      onEnd(signal ?? `exit code ${code}`);
      resolveEnd(code ?? ExitCode.failed);
    });
  });
}

function say(text: string): void {
  console.log(`cluster | ${text}`);
}
