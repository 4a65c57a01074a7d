/** `millrace start`: configuration, broker, signals, and a clean end. */
import { flushCompileCache } from 'node:module';
import { constants } from 'node:os';
import { warnOfUnreachable } from '../net/advertised_check.ts';
import type { BrokerConfig } from '../net/config/broker_config.ts';
import { hostText, type Listener } from '../net/config/listeners.ts';
import { loadBrokerConfig } from '../net/config/load.ts';
import { createLogger, type Logger } from '../net/logger.ts';
import { explainStartError } from './start_errors.ts';
import { ExitCode, type StartOptions } from './start_options.ts';

/** What a started broker offers, see `startBroker`. */
interface RunningBroker {
  readonly address: { readonly host: string; readonly port: number };
  stop(): Promise<void>;
  readonly failed: Promise<Error>;
}

/** Starts a broker and returns when it is ready; signals and failures end the process from then on. */
export async function start(options: StartOptions, version: string): Promise<void> {
  const loaded = loadBrokerConfig({ file: options.config, sets: options.set });
  const { config } = loaded;
  if (config === null) {
    refuse(loaded.errors, loaded.warnings);
    return;
  }
  const logger = createLogger({ format: options.logFormat, level: options.logLevel });
  endOnBrokenAssertions(logger);
  const stopRequested = listenForSignals(logger);
  logger.info(
    {
      nodeId: config.nodeId,
      dataDirectory: config.logDirs.join(','),
      durability: config.durability,
      shards: config.shards,
      pid: process.pid,
      node: process.version,
    },
    `Millrace ${version}`,
  );
  for (const warning of loaded.warnings) logger.warn(warning);
  const broker = await open(config, logger, stopRequested);
  announce(config, broker, logger);
  void broker.failed.then((error) => fail(error, logger));
  void stopRequested.then((signal) => stop(broker, signal, logger));
}

/** Says everything that is wrong with the configuration, at once. */
function refuse(errors: readonly string[], warnings: readonly string[]): void {
  const count =
    errors.length === 1 ? 'one setting is wrong' : `${errors.length} settings are wrong`;
  const lines = [`millrace: ${count}, nothing was started`, ...errors.map((text) => `  ${text}`)];
  if (warnings.length > 0) lines.push('warnings:', ...warnings.map((text) => `  ${text}`));
  console.error(lines.join('\n'));
  process.exitCode = ExitCode.usage;
}

async function open(
  config: BrokerConfig,
  logger: Logger,
  stopRequested: Promise<NodeJS.Signals>,
): Promise<RunningBroker> {
  try {
    const { startBroker } = await import('../net/broker.ts');
    return await startBroker(config, logger, {}, stopRequested);
  } catch (error) {
    // By name: importing the class would load the broker before there is anything to explain.
    if (error instanceof Error && error.constructor.name === 'StartAbandoned') {
      logger.info(`${await stopRequested}: stopped before the broker could serve`);
      process.exit(ExitCode.stopped);
    }
    const reason = explainStartError(error, config);
    if (reason === null) logger.fatal({ error }, 'cannot start');
    else logger.fatal(`cannot start: ${reason}`);
    return process.exit(ExitCode.cannotStart);
  }
}

function announce(config: BrokerConfig, broker: RunningBroker, logger: Logger): void {
  for (const [index, listener] of config.listeners.entries()) {
    const port = index === 0 ? broker.address.port : listener.port;
    const { host } = config.advertisedListeners[index] as Listener;
    const where = `${listener.name}://${hostText(listener.host)}:${port}`;
    const told = `${hostText(host)}:${config.advertisedListeners[index]?.port || port}`;
    logger.info({ advertised: told }, `listening on ${where}`);
  }
  logger.info(`ready in ${Math.round(performance.now())} ms`);
  setTimeout(flushCompileCache, compileCacheDelayMs).unref();
  void warnOfUnreachable(config, broker.address.port, logger);
}

/**
 * The compile cache is written when the process ends on its own, which a broker that is killed never does: written
 * once here, out of the way of the first requests.
 */
const compileCacheDelayMs = 2_000;

/**
 * One wish to stop can come twice: Ctrl-C reaches the broker from the terminal and from npm, timeout(1) signals the
 * process and then its group.
 */
const sameSignalMs = 1_000;

/**
 * Resolves with the first signal that asks for a clean stop. A second one ends the process at once, as a shell
 * expects it (128 + number of the signal).
 */
function listenForSignals(logger: Logger): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let first: { readonly signal: string; readonly atMs: number } | null = null;
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
      process.on(signal, () => {
        const nowMs = performance.now();
        if (first === null) {
          first = { signal, atMs: nowMs };
          resolve(signal);
          return;
        }
        if (signal === first.signal && nowMs - first.atMs < sameSignalMs) return;
        logger.warn(`${signal} again: ending at once, the next start will recover`);
        process.exit(128 + constants.signals[signal]);
      });
    }
  });
}

async function stop(broker: RunningBroker, signal: string, logger: Logger): Promise<void> {
  const startedMs = performance.now();
  logger.info(`${signal}: stopping`);
  try {
    await broker.stop();
  } catch (error) {
    logger.fatal({ error }, 'could not stop cleanly, the next start will recover');
    process.exit(ExitCode.failed);
  }
  logger.info(`stopped cleanly in ${Math.round(performance.now() - startedMs)} ms`);
  process.exit(ExitCode.stopped);
}

function fail(error: unknown, logger: Logger): never {
  logger.fatal({ error }, 'the broker failed and ends here, the next start will recover');
  process.exit(ExitCode.failed);
}

/** Fail-stop: a broken assertion ends the process with its reason, rather than leaving half a broker. */
function endOnBrokenAssertions(logger: Logger): void {
  process.on('uncaughtException', (error) => fail(error, logger));
  process.on('unhandledRejection', (reason) => fail(reason, logger));
}
