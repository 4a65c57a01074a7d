/** A worker for the supervisor's tests; `data` says how it behaves. */
import { supervised } from '../../../engine/thread/supervised_thread.ts';

const { data, ready } = supervised(async () => {
  if (data === 'never stops') await new Promise(() => {});
});
// Something that would keep the thread alive, as a server does.
setInterval(() => {}, 1_000);

if (data === 'throws at start') throw new Error('broken on purpose');
ready();
if (data === 'throws later') {
  setTimeout(() => {
    throw new Error('broken on purpose');
  }, 5);
}
if (data === 'rejects') void Promise.reject(new Error('rejected on purpose'));
if (data === 'exits') setTimeout(() => process.exit(3), 5);
if (data === 'hangs for a while') setTimeout(() => block(400), 5);

function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
