/**
 * Look-ups in logs that must not wait for the device on the shard's thread: what they miss is brought into the page
 * cache, and they are tried again.
 *
 * Thread: the shard's. Holds files only while they are being read.
 */
import { ColdRead } from '../engine/ports.ts';
import type { ReadAhead, ReadAheadTicket } from '../engine/read_ahead.ts';

/**
 * A look of a fetch needs an index or two and the headers around two positions. One that still misses something after
 * so many tries (others may have pushed out what was brought in) waits on the thread: it must come to an end.
 */
export const coldTriesMax = 8;

/** The same for look-ups by time, which may need something of every segment of a log. */
const lookUpTriesMax = 4096;

/** Read at a time where a look-up misses something: the next ones will want what follows. */
const windowBytes = 128 * 1024;

/**
 * Brings in what look-ups missed and calls `done`, in a later turn, when all of it is there.
 * @returns gives up what has not begun; `done` is not called then
 */
export function warm(
  readAhead: ReadAhead,
  asker: object,
  missed: readonly ColdRead[],
  done: () => void,
): () => void {
  const waiting = new Map<ColdRead, ReadAheadTicket>();
  let isCancelled = false;
  for (const cold of missed) {
    const length = Math.max(cold.length, windowBytes);
    const ticket = readAhead.request(asker, cold.fd, cold.position, length, () => {
      cold.release?.();
      waiting.delete(cold);
      if (waiting.size === 0 && !isCancelled) done();
    });
    waiting.set(cold, ticket);
  }
  return () => {
    isCancelled = true;
    for (const [cold, ticket] of waiting) if (ticket.cancel()) cold.release?.();
  };
}

/**
 * Runs a look-up until it misses nothing: a promise only when it missed something.
 * @param lookUp with `mayWait` it waits for the device, otherwise it throws a ColdRead
 */
export function lookUpWarm<T extends object>(
  readAhead: ReadAhead,
  asker: object,
  lookUp: (mayWait: boolean) => T,
  tries = 0,
): T | Promise<T> {
  try {
    return lookUp(tries >= lookUpTriesMax);
  } catch (error) {
    if (!(error instanceof ColdRead)) throw error;
    return new Promise<void>((done) => {
      warm(readAhead, asker, [error], done);
    }).then(() => lookUpWarm(readAhead, asker, lookUp, tries + 1));
  }
}
