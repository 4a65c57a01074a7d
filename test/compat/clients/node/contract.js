/** Reads the commands of ../README.md from standard input, has a client carry them out, and answers. */
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

/** How long a producer stays open after acks=0, in ms: a broker may lose what it has not read when a client closes. */
const unansweredMs = 500;

export const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const toBytes = (hex) => (hex === null ? null : Buffer.from(hex, 'hex'));
const toHex = (bytes) => (bytes === null || bytes === undefined ? null : bytes.toString('hex'));

/**
 * `client` has `create(bootstrap, topic, partitions)`, `produce(bootstrap, mode, records, stayOpen)` and
 * `consume(bootstrap, places, emit, isDone)`. Records have `key`, `value` and the values of `headers` (an array of pairs)
 * as buffers or null, and `timestamp` in milliseconds. A producer awaits `stayOpen()` before it closes. A consumer
 * calls `emit` for each record and ends once `isDone()`, which throws when the time is over.
 *
 * `member(command, { assigned, processed, failed, isStopped })` consumes in a group until `isStopped()`; it calls `assigned` with the
 * numbers of the partitions that it has after every rebalance, `processed` for each record before it commits it, and, if
 * it may try that record again, `failed` when its client reports that the commit failed.
 *
 * `stream(command, next, acked)` sends what `next(partition)` returns, `{ number, value }`, until that is null, and calls
 * `acked(partition, number, offset)`.
 */
export async function serve(client) {
  const commands = {
    create: ({ bootstrap, topic, partitions }) => client.create(bootstrap, topic, partitions),
    produce: (command) => {
      const stayOpen = () => wait(command.acks === '0' ? unansweredMs : 0);
      return client.produce(command.bootstrap, command, readRecords(command.input), stayOpen);
    },
    consume: (command) => consume(client, command),
    member: (command) => {
      const note = (event) => appendFileSync(command.output, `${JSON.stringify(event)}\n`);
      return client.member(command, {
        assigned: (partitions) => note({ assigned: [...partitions].sort((a, b) => a - b) }),
        processed: (partition, offset) => note({ partition, offset: Number(offset) }),
        failed: (partition, offset) => note({ failed: { partition, offset: Number(offset) } }),
        isStopped: () => existsSync(command.stop),
      });
    },
    stream: async (command) => {
      const note = (event) => appendFileSync(command.output, `${JSON.stringify(event)}\n`);
      const sent = new Array(command.partitions).fill(0);
      const next = (partition) => {
        if (existsSync(command.stop)) return null;
        const number = sent[partition];
        sent[partition] += 1;
        return { number, value: Buffer.from(`${partition}-${number}|`) };
      };
      await client.stream(command, next, (partition, number, offset) =>
        note({ partition, number, offset: Number(offset) }),
      );
      note({ sent });
    },
  };
  for await (const line of createInterface({ input: process.stdin })) {
    const command = JSON.parse(line);
    const answer = await commands[command.command](command).then(
      () => ({ ok: true }),
      (error) => ({ ok: false, error: describe(error) }),
    );
    process.stdout.write(`${JSON.stringify(answer)}\n`);
  }
}

/** The text of an error with those that it wraps: the code of the protocol is often the innermost. */
function describe(error) {
  const inner = [error.cause, ...(error.errors ?? [])].filter((one) => one instanceof Error);
  return [`${error.stack}`, ...inner.map(describe)].join('\n');
}

function readRecords(path) {
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
  return lines.map((line) => {
    const { key, value, headers, timestamp } = JSON.parse(line);
    const pairs = headers.map(([name, content]) => [name, toBytes(content)]);
    return { key: toBytes(key), value: toBytes(value), headers: pairs, timestamp };
  });
}

async function consume(client, { bootstrap, partitions, output, timeoutMs }) {
  const missing = new Map(
    partitions.map(([topic, partition, count]) => [`${topic}-${partition}`, count]),
  );
  const deadline = Date.now() + timeoutMs;
  const lines = [];
  const emit = (record) => {
    const place = `${record.topic}-${record.partition}`;
    missing.set(place, missing.get(place) - 1);
    const headers = record.headers.map(([name, content]) => [name, toHex(content)]);
    lines.push(
      JSON.stringify({ ...record, key: toHex(record.key), value: toHex(record.value), headers }),
    );
  };
  const isDone = () => {
    const rest = [...missing].filter(([, count]) => count > 0);
    if (rest.length === 0) return true;
    if (Date.now() > deadline) throw new Error(`timed out; still missing ${JSON.stringify(rest)}`);
    return false;
  };
  const places = partitions.map(([topic, partition]) => ({ topic, partition }));
  await client.consume(bootstrap, places, emit, isDone);
  writeFileSync(output, lines.map((line) => `${line}\n`).join(''));
}
