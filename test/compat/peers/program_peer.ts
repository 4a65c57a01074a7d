/** The clients that are programs of ours in other languages, all behind the contract of ../clients/README.md. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import {
  installFranz,
  installGo,
  installJava,
  installNode,
  installOldJava,
  installPurePython,
  installPython,
  installRust,
} from './install.ts';
import {
  CONSUME_TIMEOUT_MS,
  type Limits,
  type Mode,
  type Peer,
  type PeerRecord,
  type ReadRecord,
  type Wanted,
} from './peer.ts';

interface Answer {
  readonly ok: boolean;
  readonly error?: string;
}

/** A running peer program: one command at a time. */
export class Program {
  /** For the files through which records travel. */
  readonly dir: string = mkdtempSync(join(tmpdir(), 'millrace-peer-'));
  readonly #child: ChildProcess;
  readonly #answers: AsyncIterator<string>;
  readonly #closed: Promise<unknown>;
  #errors = '';

  constructor(file: string, args: readonly string[]) {
    this.#child = spawn(file, args, { cwd: this.dir, stdio: ['pipe', 'pipe', 'pipe'] });
    this.#closed = new Promise((resolve) => {
      this.#child.once('close', resolve);
      this.#child.once('error', resolve);
    });
    this.#child.stdin?.on('error', () => {});
    this.#child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      this.#errors = (this.#errors + chunk).slice(-20_000);
    });
    const { stdout } = this.#child;
    if (stdout === null) throw new Error('no output');
    this.#answers = createInterface({ input: stdout })[Symbol.asyncIterator]();
  }

  /** What it has written to standard error since the last command began. */
  get errors(): string {
    return this.#errors;
  }

  /** Carries out a command and returns what the client wrote to standard error; throws what it reports, with that. */
  async run(command: Readonly<Record<string, unknown>>): Promise<string> {
    this.#errors = '';
    this.#child.stdin?.write(`${JSON.stringify(command)}\n`);
    const line = await this.#answers.next();
    if (line.done === true) throw new Error(`the client ended; it said:\n${this.#errors}`);
    const answer = JSON.parse(line.value) as Answer;
    // The answer and what was written before it come through different pipes.
    await new Promise((resolve) => setTimeout(resolve, 20));
    if (!answer.ok) throw new Error(`${answer.error}\n${this.#errors}`.trim());
    return this.#errors;
  }

  /** The end that a program does not see coming; its files stay until `close`. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#closed;
  }

  async close(): Promise<void> {
    this.#child.stdin?.end();
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), 10_000);
    await this.#closed;
    clearTimeout(timer);
    rmSync(this.dir, { recursive: true, force: true });
  }
}

/** Writes records as JSON lines. */
function writeRecords(path: string, records: readonly PeerRecord[]): void {
  writeFileSync(path, records.map((record) => `${JSON.stringify(record)}\n`).join(''));
}

/** A client whose program knows all three commands. */
class ProgramPeer implements Peer {
  readonly name: string;
  readonly limits: Limits;
  readonly #program: Program;
  readonly #bootstrap: string;

  constructor(name: string, program: Program, bootstrap: string, limits: Limits = {}) {
    this.name = name;
    this.limits = limits;
    this.#program = program;
    this.#bootstrap = bootstrap;
  }

  async create(topic: string, partitions: number): Promise<void> {
    await this.#program.run({ command: 'create', bootstrap: this.#bootstrap, topic, partitions });
  }

  async produce(
    topic: string,
    partition: number,
    mode: Mode,
    records: readonly PeerRecord[],
  ): Promise<void> {
    const input = join(this.#program.dir, 'input');
    writeRecords(input, records);
    const bootstrap = this.#bootstrap;
    await this.#program.run({ command: 'produce', bootstrap, topic, partition, input, ...mode });
  }

  async consume(wanted: readonly Wanted[]): Promise<ReadRecord[]> {
    const output = join(this.#program.dir, 'output');
    await this.#program.run({
      command: 'consume',
      bootstrap: this.#bootstrap,
      partitions: wanted,
      output,
      timeoutMs: CONSUME_TIMEOUT_MS,
    });
    const lines = readFileSync(output, 'utf8').trimEnd().split('\n');
    return lines.map((line) => JSON.parse(line) as ReadRecord);
  }

  async close(): Promise<void> {
    await this.#program.close();
  }
}

const javaOptions = [
  '-Xmx512m',
  '-XX:+UseSerialGC',
  '-XX:TieredStopAtLevel=1',
  '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn',
  `-Djava.io.tmpdir=${tmpdir()}`,
];

/** Starts the Java program: a heap that is enough, and a compiler that does not compete with the broker. */
export async function startJava(): Promise<Program> {
  const { classPath } = await installJava();
  return new Program('java', [...javaOptions, '-cp', classPath, 'Peer']);
}

async function startFranz(): Promise<Program> {
  const { program } = await installFranz();
  return new Program(program, []);
}

async function startGo(name: Parameters<typeof installGo>[0]): Promise<Program> {
  const { program } = await installGo(name);
  return new Program(program, []);
}

async function startNode(name: Parameters<typeof installNode>[0]): Promise<Program> {
  const { program } = await installNode(name);
  return new Program(process.execPath, [program]);
}

async function startPurePython(name: Parameters<typeof installPurePython>[0]): Promise<Program> {
  const { python, program } = await installPurePython(name);
  return new Program(python, [program]);
}

export type GroupProgram =
  | 'aiokafka'
  | 'franz'
  | 'java'
  | 'kafkajs'
  | 'platformatic'
  | 'python'
  | 'sarama'
  | 'segmentio';

/** The programs that know the command `member`. */
export const groupPrograms: Readonly<Record<GroupProgram, () => Promise<Program>>> = {
  aiokafka: () => startPurePython('aiokafka'),
  franz: startFranz,
  java: startJava,
  kafkajs: () => startNode('kafkajs'),
  platformatic: () => startNode('platformatic'),
  python: startPython,
  sarama: () => startGo('sarama'),
  segmentio: () => startGo('segmentio'),
};

export type RidingProgram = Extract<
  GroupProgram,
  'aiokafka' | 'franz' | 'java' | 'kafkajs' | 'python'
>;

/** Apache Kafka's own client. */
export async function javaPeer(bootstrap: string): Promise<Peer> {
  return new ProgramPeer('java', await startJava(), bootstrap);
}

/** franz-go. */
export async function franzPeer(bootstrap: string): Promise<Peer> {
  return new ProgramPeer('franz-go', await startFranz(), bootstrap);
}

/** Starts the program of confluent-kafka for Python. */
export async function startPython(): Promise<Program> {
  const { python, program } = await installPython();
  return new Program(python, [program]);
}

/** confluent-kafka for Python, a current librdkafka. */
export async function pythonPeer(bootstrap: string): Promise<Peer> {
  return new ProgramPeer('python', await startPython(), bootstrap);
}

/** Kafka's client of 2018, the oldest that Kafka 4 still serves. */
export async function oldJavaPeer(bootstrap: string): Promise<Peer> {
  const { classPath } = await installOldJava();
  const program = new Program('java', [...javaOptions, '-cp', classPath, 'OldPeer']);
  return new ProgramPeer('java 2.1', program, bootstrap);
}

/** A client of clients/go. */
export async function goPeer(
  name: Parameters<typeof installGo>[0],
  bootstrap: string,
  limits: Limits = {},
): Promise<Peer> {
  return new ProgramPeer(name, await startGo(name), bootstrap, limits);
}

/** A client of clients/node. */
export async function nodePeer(
  name: Parameters<typeof installNode>[0],
  bootstrap: string,
  limits: Limits = {},
): Promise<Peer> {
  return new ProgramPeer(name, await startNode(name), bootstrap, limits);
}

/** A client of clients/python_pure. */
export async function purePythonPeer(
  name: Parameters<typeof installPurePython>[0],
  bootstrap: string,
  limits: Limits = {},
): Promise<Peer> {
  return new ProgramPeer(name, await startPurePython(name), bootstrap, limits);
}

/** rdkafka. */
export async function rustPeer(bootstrap: string): Promise<Peer> {
  const { program } = await installRust();
  const limits = { noNullHeaders: true, readsNullHeadersAsEmpty: true } as const;
  return new ProgramPeer('rdkafka', new Program(program, []), bootstrap, limits);
}
