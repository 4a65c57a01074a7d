/** Runs `millrace consume`. */
import type { Admin } from '../../net/client/admin.ts';
import type { Client, ConsumerOptions } from '../../net/client/client.ts';
import { keyOf, type TopicPartition } from '../../net/client/consumer/topic_partition.ts';
import type { ConsumeOptions, StartPlace } from '../commands/consume.ts';
import { CommandError, withClient } from './connect.ts';
import { printerOf } from './message_text.ts';
import { createOutput } from './output.ts';
import { countText } from './quantity.ts';
import { interruption, isInteractive, say } from './terminal.ts';

/** How often it is looked whether all has been read. */
const lookMs = 100;
/** What lies behind the last message is no message: nothing that could come has come for so long. */
const idleMs = 3_000;
/** A group may be about to give this member more: what it has must have been read at so many looks in a row. */
const groupLooks = 10;

export function consume(topics: readonly string[], options: ConsumeOptions): Promise<void> {
  return withClient(options, async (client) => {
    checkOptions(options);
    const isFollowing = options.follow === true || options.from?.kind === 'latest';
    const ends = new Ends(client.admin());
    const consumerOptions =
      options.group === undefined
        ? await partitionsToRead(client.admin(), topics, options, isFollowing ? null : ends)
        : groupOptions(topics, options);
    if (consumerOptions === null) {
      if (isInteractive(process.stderr)) say(`there is nothing to read in ${topics.join(', ')}`);
      return;
    }
    await read(client, consumerOptions, options, isFollowing ? null : ends);
  });
}

function checkOptions({ group, partition, tail, from }: ConsumeOptions): void {
  if (tail !== undefined && from !== undefined)
    throw new CommandError('--tail and --from cannot be combined.');
  if (group === undefined) return;
  if (partition !== undefined)
    throw new CommandError('--partition and --group cannot be combined: the group assigns them.');
  if (tail !== undefined || from?.kind === 'offset' || from?.kind === 'tail')
    throw new CommandError(
      'a group begins where it has stopped: --tail and offsets are for reading without one.',
      'To move a group: millrace group reset.',
    );
}

/** Of a group only what it has not read; `from` is for what it has never read. */
function groupOptions(topics: readonly string[], { group, from }: ConsumeOptions): ConsumerOptions {
  const begin =
    from?.kind === 'time' ? new Date(from.ms) : from?.kind === 'latest' ? 'latest' : 'earliest';
  return { topics, group: group as string, from: begin };
}

/** Null when there is nothing to read. */
async function partitionsToRead(
  admin: Admin,
  topics: readonly string[],
  options: ConsumeOptions,
  ends: Ends | null,
): Promise<ConsumerOptions | null> {
  const partitions: TopicPartition[] = [];
  for (const topic of topics) {
    const found = (await admin.describeTopic(topic)).partitions.map((one) => one.partition);
    for (const wanted of options.partition ?? found) {
      if (!found.includes(wanted))
        throw new CommandError(
          `${topic} has no partition ${wanted}; it has 0 to ${found.length - 1}.`,
        );
      partitions.push({ topic, partition: wanted });
    }
  }
  const place: StartPlace =
    options.tail === undefined
      ? (options.from ?? { kind: 'earliest' })
      : { kind: 'tail', count: options.tail };
  const offsets = await startsOf(admin, partitions, place);
  await ends?.learn(partitions);
  const begins = partitions.map((one, number) => ({ ...one, offset: offsets[number] as number }));
  const rest = ends === null ? begins : begins.filter((one) => !ends.isPast(one, one.offset));
  return rest.length === 0 ? null : { partitions: rest };
}

async function startsOf(
  admin: Admin,
  partitions: readonly TopicPartition[],
  place: StartPlace,
): Promise<number[]> {
  const offsetsAt = async (spec: 'earliest' | 'latest' | number): Promise<number[]> =>
    (await admin.listOffsets(partitions, spec)).map(({ offset }) => offset);
  if (place.kind === 'earliest' || place.kind === 'latest') return await offsetsAt(place.kind);
  const [first, end] = await Promise.all([offsetsAt('earliest'), offsetsAt('latest')]);
  const within = (offset: number, number: number): number =>
    Math.min(end[number] as number, Math.max(first[number] as number, offset));
  switch (place.kind) {
    case 'offset':
      return partitions.map((_, number) => within(place.offset, number));
    case 'tail':
      return end.map((offset, number) => within(offset - place.count, number));
    case 'time': {
      const found = await offsetsAt(place.ms);
      return found.map((offset, number) => (offset < 0 ? (end[number] as number) : offset));
    }
  }
}

/** Where partitions ended when it was first asked: what came later is not waited for. */
class Ends {
  readonly #admin: Admin;
  readonly #offsets = new Map<string, number>();

  constructor(admin: Admin) {
    this.#admin = admin;
  }

  async learn(partitions: readonly TopicPartition[]): Promise<void> {
    const unknown = partitions.filter((one) => !this.#offsets.has(keyOf(one)));
    if (unknown.length === 0) return;
    const listed = await this.#admin.listOffsets(unknown, 'latest', { isReadCommitted: true });
    for (const one of listed) this.#offsets.set(keyOf(one), one.offset);
  }

  isPast(partition: TopicPartition, offset: number): boolean {
    const end = this.#offsets.get(keyOf(partition));
    return end !== undefined && offset >= end;
  }
}

/** @param ends null to go on until it is interrupted */
async function read(
  client: Client,
  consumerOptions: ConsumerOptions,
  options: ConsumeOptions,
  ends: Ends | null,
): Promise<void> {
  const stopping = new AbortController();
  const interrupted = interruption();
  interrupted.signal.addEventListener('abort', () => stopping.abort());
  const output = createOutput();
  const print = printerOf(options);
  const max = options.max ?? Number.POSITIVE_INFINITY;
  let count = 0;
  let lastMs = performance.now();
  await using consumer = client.consumer(consumerOptions);
  const timer = ends === null ? null : setInterval(() => void look(), lookMs);
  const looksNeeded = options.group === undefined ? 1 : groupLooks;
  let looks = 0;
  const look = async (): Promise<void> => {
    try {
      const { assignment } = consumer;
      if (assignment.length === 0 || ends === null) return;
      await ends.learn(assignment);
      const isIdle = performance.now() - lastMs > idleMs && consumer.metrics.bufferedBytes === 0;
      const isRead = assignment.every((one) => ends.isPast(one, consumer.position(one) ?? -1));
      looks = isRead ? looks + 1 : 0;
      if (looks >= looksNeeded || (isIdle && count > 0)) stopping.abort();
    } catch {
      // The loop meets what is wrong, too, and tells it.
    }
  };
  try {
    for await (const message of consumer.messages({ signal: stopping.signal })) {
      lastMs = performance.now();
      if (ends?.isPast(message, message.offset) === true) continue;
      count += 1;
      const isRead = await output.write(print(message));
      if (count >= max || !isRead) {
        if (options.group !== undefined) await consumer.commit(message);
        break;
      }
    }
  } catch (error) {
    if (!stopping.signal.aborted) throw error;
  } finally {
    if (timer !== null) clearInterval(timer);
    interrupted.release();
    await output.flush();
  }
  if (options.verbose === true && isInteractive(process.stderr)) say(countText(count, 'message'));
}
