/** The other thread of the calibration: wakes up for each turn and says so, until the turn is negative. */
import { workerData } from 'node:worker_threads';

const turns = workerData as Int32Array<SharedArrayBuffer>;
for (let seen = 0; seen >= 0; ) {
  Atomics.wait(turns, 0, seen);
  seen = Atomics.load(turns, 0);
  Atomics.store(turns, 1, seen);
  Atomics.notify(turns, 1);
}
