/** Runs `millrace produce`. */
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import type { ProducerMessage } from '../../net/client/client.ts';
import { MillraceError } from '../../net/client/errors.ts';
import type { ProduceOptions } from '../commands/produce.ts';
import { CommandError, withClient } from './connect.ts';
import { CliExit } from './exit_code.ts';
import { messageOf } from './input_message.ts';
import { countText } from './quantity.ts';
import { isInteractive, printJson, say } from './terminal.ts';

/** Lines that have been read and not delivered: beyond that the input waits. */
const pendingMax = 10_000;
/** How large a message may be is up to the topic, not to this command: nearly what brokers take as one request. */
const requestBytesMax = 96 << 20;

export function produce(
  topic: string,
  values: readonly string[],
  options: ProduceOptions,
): Promise<void> {
  return withClient(options, async (client) => {
    if (values.length > 0 && options.file !== undefined)
      throw new CommandError('values and --file cannot be combined.');
    const { compression, acks } = options;
    await using producer = client.producer({
      ...{ compression, acks, lingerMs: 5, autoCreateTopics: true },
      ...{ deliveryTimeoutMs: options.timeout * 1_000, maxRequestBytes: requestBytesMax },
    });
    const startedMs = performance.now();
    const sending = new Sending((message) => producer.send(message));
    let line = 0;
    for await (const text of values.length > 0 ? values : linesOf(options.file)) {
      line += 1;
      await sending.add(messageOf(topic, text, line, options), line);
    }
    await sending.end();
    const seconds = (performance.now() - startedMs) / 1_000;
    if (options.json === true) printJson({ topic, messages: sending.delivered, seconds });
    else if (options.quiet !== true && isInteractive(process.stderr))
      say(`${countText(sending.delivered, 'message')} delivered in ${seconds.toFixed(1)} s`);
  });
}

/** Sends ahead of the deliveries, and throws the first error once it is known. */
class Sending {
  readonly #send: (message: ProducerMessage) => Promise<unknown>;
  #pending = 0;
  #error: unknown = null;
  #wake: (() => void) | null = null;
  delivered = 0;

  constructor(send: (message: ProducerMessage) => Promise<unknown>) {
    this.#send = send;
  }

  /** @param line of the input, counted from 1, for what is said when it is refused */
  async add(message: ProducerMessage, line: number): Promise<void> {
    this.#pending += 1;
    this.#send(message).then(
      () => {
        this.delivered += 1;
        this.#settled();
      },
      (error: unknown) => {
        this.#error ??= refusalOf(error, line);
        this.#settled();
      },
    );
    if (this.#pending >= pendingMax) await this.#until(pendingMax / 2);
    if (this.#error !== null) throw this.#error;
  }

  async end(): Promise<void> {
    await this.#until(0);
    if (this.#error !== null) throw this.#error;
  }

  #settled(): void {
    this.#pending -= 1;
    this.#wake?.();
  }

  /** Until at most `count` are on their way, or one has failed. */
  async #until(count: number): Promise<void> {
    while (this.#pending > count && this.#error === null)
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
  }
}

/** Of one message, and not of the cluster: the line says which. */
function refusalOf(error: unknown, line: number): unknown {
  if (!(error instanceof MillraceError) || error.code !== 'MESSAGE_TOO_LARGE') return error;
  return new MillraceError(error.code, `line ${line}: ${error.message}`, {
    cause: error,
    remedy:
      'Send smaller messages, or `millrace topic alter <name> --set max.message.bytes=<bytes>`.',
  });
}

async function* linesOf(file: string | undefined): AsyncGenerator<string, void, undefined> {
  if (file === undefined && isInteractive(process.stdin as unknown as NodeJS.WriteStream))
    say('a line is a message; Ctrl-D ends');
  const input = file === undefined ? process.stdin : createReadStream(file);
  try {
    yield* createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY });
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const name = file ?? 'standard input';
    if ((error as NodeJS.ErrnoException).code === 'ENOENT')
      throw new CommandError(`--file ${name}: there is no such file.`);
    throw new CommandError(`${name}: ${error.message}`, null, CliExit.failed);
  }
}
