/** kcat (librdkafka) as the client of the throughput works. */
import { run } from './children.ts';
import type { Payload } from './payload.ts';

const TIMEOUT_MS = 180_000;

export interface ProduceOptions {
  acks: 1 | -1;
  batchBytes: number;
  /** Partitions of the topic: with one, kcat is told its number; with more, librdkafka's partitioner picks. */
  partitions: number;
}

/** Throws, saying how to get it, when kcat is not installed. */
export async function requireKcat(): Promise<void> {
  try {
    await run(['kcat', '-V'], { timeoutMs: 10_000 });
  } catch {
    throw new Error('kcat is not installed: apt-get update && apt-get install kcat');
  }
}

/** The command line, also for the report. */
export function produceCommand(
  port: number,
  topic: string,
  payload: Payload,
  options: ProduceOptions,
): string[] {
  return [
    ...['kcat', '-P', '-b', `127.0.0.1:${port}`, '-t', topic],
    ...(options.partitions === 1 ? ['-p', '0'] : []),
    ...[
      '-X',
      `acks=${options.acks}`,
      '-X',
      'linger.ms=5',
      '-X',
      `batch.size=${options.batchBytes}`,
    ],
    ...['-X', 'batch.num.messages=100000', '-l', payload.file],
  ];
}

/** Produces the whole file; resolves with the wall time in milliseconds, kcat's own start included. */
export function produce(
  port: number,
  topic: string,
  payload: Payload,
  options: ProduceOptions,
): Promise<number> {
  return run(produceCommand(port, topic, payload, options), { timeoutMs: TIMEOUT_MS });
}

export function drainCommand(port: number, topic: string): string[] {
  return ['kcat', '-C', '-b', `127.0.0.1:${port}`, '-t', topic, '-o', 'beginning', '-e', '-q'];
}

/**
 * Reads the topic from its beginning to its end; resolves with the wall time in milliseconds. With
 * `onBytes` the output is counted by the caller, which costs the client's CPU; otherwise it goes to
 * /dev/null.
 */
export function drain(
  port: number,
  topic: string,
  onBytes?: (bytes: number) => void,
): Promise<number> {
  return run(drainCommand(port, topic), {
    timeoutMs: TIMEOUT_MS,
    ...(onBytes === undefined ? {} : { onStdout: (chunk: Buffer) => onBytes(chunk.length) }),
  });
}
