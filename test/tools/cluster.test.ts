/** `millrace cluster` as somebody runs it who wants to try one: started, used, a broker killed, Ctrl-C, started again. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { Client, record } from '../harness/client.ts';
import { ConnectionLostError } from '../harness/connection.ts';
import { splitMix } from '../harness/split_mix.ts';

const test = suite('millrace cluster');
const script = join(import.meta.dirname, '..', '..', 'tools', 'millrace.ts');
const readyMs = 60_000;
const topic = 'tried';

/** The command in a process group of its own, as a shell starts it. */
class Run {
  readonly #child: ChildProcess;
  readonly #closed: Promise<number | null>;
  output = '';

  constructor(dir: string, port: number) {
    const args = [script, 'cluster', '--brokers', '3', '--dir', dir, '--port', String(port)];
    this.#child = spawn(process.execPath, args, {
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#closed = new Promise((resolve) => this.#child.once('close', resolve));
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.output += text;
      });
  }

  async says(what: RegExp): Promise<RegExpExecArray> {
    const deadline = performance.now() + readyMs;
    for (;;) {
      const found = what.exec(this.output);
      if (found !== null) return found;
      if (performance.now() > deadline) throw new Error(`no ${what} in\n${this.output}`);
      await sleep(20);
    }
  }

  /** What a terminal does: the signal goes to all processes of the group. */
  async interrupt(): Promise<number | null> {
    process.kill(-(this.#child.pid ?? 0), 'SIGINT');
    return await this.#closed;
  }

  /** Whatever is left of it. */
  end(): void {
    try {
      process.kill(-(this.#child.pid ?? 0), 'SIGKILL');
    } catch {}
  }
}

/** A port such that the brokers' and the controllers' ports, from 100 above, are free. */
async function freeBase(): Promise<number> {
  const random = splitMix(process.pid);
  for (;;) {
    const base = 20_000 + random(10_000);
    const ports = [0, 1, 2].flatMap((k) => [base + k, base + 100 + k]);
    if ((await Promise.all(ports.map(isFree))).every((free) => free)) return base;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Who leads, as one of these brokers says it. */
async function leaderPort(ports: readonly number[]): Promise<number | null> {
  for (const port of ports) {
    try {
      const client = await Client.connect({ host: '127.0.0.1', port });
      const { brokers, topics } = await client.metadata([topic]);
      client.close();
      const leader = topics[0]?.partitions[0]?.leaderId;
      return brokers.find(({ nodeId }) => nodeId === leader)?.port ?? null;
    } catch (error) {
      if (!(error instanceof ConnectionLostError)) throw error;
    }
  }
  return null;
}

/** Writes a record with acks=all, and tries again while the cluster changes. */
async function produce(ports: readonly number[], value: string): Promise<void> {
  const deadline = performance.now() + readyMs;
  for (;;) {
    const port = await leaderPort(ports);
    if (port !== null) {
      const client = await Client.connect({ host: '127.0.0.1', port }).catch(() => null);
      const batch = [record(value)];
      const [answer] = (await client?.produce([{ topic, partition: 0, batch }])) ?? [];
      client?.close();
      if (answer?.errorCode === ErrorCode.NONE) return;
    }
    assert(performance.now() < deadline, `${value} was not taken`);
    await sleep(50);
  }
}

async function values(ports: readonly number[]): Promise<string[]> {
  const client = await Client.connect({
    host: '127.0.0.1',
    port: (await leaderPort(ports)) ?? 0,
  });
  const found: string[] = [];
  await client.readEach(topic, 0, ({ value }) => found.push(Buffer.from(value ?? []).toString()));
  client.close();
  return found;
}

async function started(run: Run): Promise<{ ports: number[]; pids: number[] }> {
  const [, addresses = ''] = await run.says(/all 3 brokers are ready: (\S+)/);
  await run.says(/Ctrl-C stops all of them/);
  const ports = addresses.split(',').map((address) => Number(address.split(':')[1]));
  const pids = [...run.output.matchAll(/broker \d is process (\d+)/g)].map(([, pid]) =>
    Number(pid),
  );
  assert.deepEqual([ports.length, pids.length], [3, 3]);
  return { ports, pids };
}

async function assertNothingLeft(base: number, pids: readonly number[]): Promise<void> {
  assert.deepEqual(pids.filter(isRunning), []);
  const ports = [0, 1, 2].flatMap((k) => [base + k, base + 100 + k]);
  assert.deepEqual(
    await Promise.all(ports.map(isListening)),
    ports.map(() => false),
  );
}

test('three brokers that copy each record to all of them, until Ctrl-C', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-cluster-'));
  const base = await freeBase();
  const runs: Run[] = [];
  const start = (): Run => {
    const run = new Run(dir, base);
    runs.push(run);
    return run;
  };
  try {
    const first = start();
    const { ports, pids } = await started(first);
    assert.deepEqual(ports, [base, base + 1, base + 2]);
    const client = await Client.connect({ host: '127.0.0.1', port: base });
    await client.createTopic(topic, 1, {}, -1);
    const { topics } = await client.metadata([topic]);
    client.close();
    assert.deepEqual(topics[0]?.partitions[0]?.replicaNodes.toSorted(), [1, 2, 3]);
    await produce(ports, 'before');
    assert.deepEqual(await values(ports), ['before']);

    process.kill(pids[0]!, 'SIGKILL');
    await first.says(/broker 1 ended \(SIGKILL\)\. The others go on/);
    await produce(ports, 'without one');
    // One of them was killed, which is a failure.
    assert.equal(await first.interrupt(), 1);
    await assertNothingLeft(base, pids);

    const second = start();
    const again = await started(second);
    assert.deepEqual(await values(ports), ['before', 'without one']);
    assert.equal(await second.interrupt(), 0);
    await assertNothingLeft(base, again.pids);
    for (const id of [1, 2, 3])
      assert(existsSync(join(dir, String(id), '.kafka_cleanshutdown')), `broker ${id}`);
  } finally {
    for (const run of runs) run.end();
    rmSync(dir, { recursive: true, force: true });
  }
});

test.run();
