/** A look, after the start, at whether clients can reach the broker where they are sent. */
import { connect } from 'node:net';
import type { BrokerConfig } from './config/broker_config.ts';
import { hostText, isWildcard, type Listener } from './config/listeners.ts';
import type { Logger } from './logger.ts';

const answerMsMax = 3_000;

/**
 * Connects to each advertised address that is not the one listened on, and warns where nobody answers: the mistake
 * that people meet most, since clients then connect once and never again. `firstPort` is the port that the first listener
 * got. Keeps no process alive; never rejects.
 */
export async function warnOfUnreachable(
  config: BrokerConfig,
  firstPort: number,
  logger: Logger,
): Promise<void> {
  const checks = config.listeners.map(async (listener, index) => {
    const advertised = config.advertisedListeners[index] as Listener;
    const bound = index === 0 ? firstPort : listener.port;
    const port = advertised.port === 0 ? bound : advertised.port;
    if (advertised.host === listener.host && port === bound) return;
    const problem = await tryConnect(advertised.host, port);
    if (problem === null) return;
    const remedy = isWildcard(listener.host)
      ? 'set advertised.listeners'
      : 'check advertised.listeners';
    logger.warn(
      `Clients of listener ${listener.name} are sent to ${hostText(advertised.host)}:${port}, where this machine itself reaches nobody (${problem}): ${remedy} if they cannot connect either.`,
    );
  });
  await Promise.all(checks);
}

/** Null if somebody answers at the address, else why not. */
export function tryConnect(host: string, port: number): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    socket.unref();
    const timer = setTimeout(() => end(`no answer in ${answerMsMax / 1_000} s`), answerMsMax);
    timer.unref();
    function end(result: string | null): void {
      clearTimeout(timer);
      socket.destroy();
      resolve(result);
    }
    socket.once('connect', () => end(null));
    socket.once('error', (error) => {
      end('code' in error ? String(error.code) : error.message);
    });
  });
}
