/** What all commands have in common that talk to a cluster: how to reach it, and what is said when that fails. */
import { type Command, Option } from 'commander';
import type { Client } from '../../net/client/client.ts';
import { CliExit } from './exit_code.ts';
import { paragraph } from './flow.ts';
import { wholeNumber } from './options.ts';
import { jsonText, say } from './terminal.ts';

export interface ConnectOptions {
  readonly bootstrap: string;
  readonly tls?: boolean;
  /** Seconds. */
  readonly timeout: number;
  readonly json?: boolean;
}

const defaultBootstrap = '127.0.0.1:9092';

/** Adds the options of `ConnectOptions` to a command, behind its own. */
export function connecting(command: Command): Command {
  return command
    .addOption(
      new Option('-b, --bootstrap <host:port,…>', 'brokers to ask first')
        .env('MILLRACE_BOOTSTRAP')
        .default(defaultBootstrap),
    )
    .option('--tls', 'connect over TLS')
    .addOption(
      new Option('--timeout <seconds>', 'how long to try')
        .argParser(wholeNumber(1, 86_400))
        .default(30),
    )
    .option('--json', 'output for programs');
}

/** Something that the user can put right, in words for people. */
export class CommandError extends Error {
  readonly exitCode: number;
  readonly remedy: string | null;

  constructor(message: string, remedy: string | null = null, exitCode: number = CliExit.usage) {
    super(message);
    this.remedy = remedy;
    this.exitCode = exitCode;
  }
}

/** Runs a command with a client, and tells what went wrong if it did. */
export async function withClient(
  options: ConnectOptions,
  run: (client: Client) => Promise<void>,
): Promise<void> {
  const { Client } = await import('../../net/client/client.ts');
  try {
    await using client = new Client({
      bootstrap: options.bootstrap,
      clientId: 'millrace-cli',
      timeoutMs: options.timeout * 1_000,
      connectTimeoutMs: Math.min(5_000, options.timeout * 1_000),
      tls: options.tls === true,
    });
    await run(client);
  } catch (error) {
    explain(error, options.json === true);
  }
}

interface Explained {
  readonly code: string;
  readonly message: string;
  readonly remedy: string | null;
  readonly exitCode: number;
}

/** Prints an error that was expected, and sets the exit code; throws any other one. */
function explain(error: unknown, isJson: boolean): void {
  const explained = explanationOf(error);
  if (explained === null) throw error;
  const { exitCode, ...rest } = explained;
  process.exitCode = exitCode;
  if (isJson) say(jsonText({ error: rest }));
  else {
    say(paragraph(`millrace: ${rest.message}`, '', process.stderr));
    if (rest.remedy !== null) say(paragraph(rest.remedy, '  ', process.stderr));
  }
}

/** Of nobody who could answer. */
const unreachableCodes = new Set([
  'BROKER_UNREACHABLE',
  'CONNECTION_LOST',
  'TIMED_OUT',
  'NOT_KAFKA',
  'TLS_PORT',
]);

function explanationOf(error: unknown): Explained | null {
  if (error instanceof CommandError) {
    const { message, remedy, exitCode } = error;
    return { code: 'USAGE', message, remedy, exitCode };
  }
  // By its fields: importing the class would load the client for commands that need none.
  if (!(error instanceof Error) || error.name !== 'MillraceError') return null;
  const { code, remedy } = error as Error & { code: string; remedy: string | null };
  const exitCode = unreachableCodes.has(code)
    ? CliExit.unreachable
    : code === 'INVALID_ARGUMENT'
      ? CliExit.usage
      : CliExit.failed;
  const isTimeOut = code === 'TIMED_OUT' && remedy === null;
  return {
    code,
    message: error.message,
    remedy: isTimeOut ? 'Try a longer --timeout, or another broker with --bootstrap.' : remedy,
    exitCode,
  };
}

/** An error in one line, with its remedy. */
export function explainedText(error: unknown): string {
  const explained = explanationOf(error);
  if (explained === null) return error instanceof Error ? error.message : String(error);
  return explained.remedy === null
    ? explained.message
    : `${explained.message}. ${explained.remedy}`;
}
