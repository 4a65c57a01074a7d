/** A worker's end of its supervision: answers the watchdog and runs the orderly stop. See `supervisor.ts`. */
import assert from 'node:assert/strict';
import { type MessagePort, workerData } from 'node:worker_threads';

export type ToThread = 'ping' | 'stop';
export type FromThread = 'pong' | 'ready';

/** What the supervisor passes as `workerData`. */
export interface SupervisedData {
  readonly supervision: MessagePort;
  readonly data: unknown;
}

export interface Supervision {
  /** What the supervisor's caller gave for this thread. */
  readonly data: unknown;
  /** Tells the supervisor that the thread serves; from now on it must answer the watchdog. */
  ready(): void;
}

/**
 * Puts this worker thread under its supervisor's watch; call it once, first thing. `onStop` is called when the
 * thread has to end; when its promise settles the thread exits, whatever is still open. A rejection counts as a
 * failure of the thread: it is thrown, and the process stops as for any other.
 */
export function supervised(onStop: () => Promise<void>): Supervision {
  const { supervision, data } = workerData as SupervisedData;
  assert(supervision !== undefined, 'this thread was not started by a supervisor');
  let stopping = false;
  supervision.on('message', (message: ToThread) => {
    if (message === 'ping') {
      supervision.postMessage('pong' satisfies FromThread);
      return;
    }
    if (stopping) return;
    stopping = true;
    // In a worker this ends the thread alone. A rejection stays unhandled on purpose: that is an error event.
    void onStop().then(() => process.exit(0));
  });
  // Listening must not be what keeps a thread alive.
  supervision.unref();
  return {
    data,
    ready: () => supervision.postMessage('ready' satisfies FromThread),
  };
}
