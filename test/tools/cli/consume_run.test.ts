/** `millrace consume` at a broker, as somebody sees it who waits for messages. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { suite } from 'uvu';
import { BrokerProcess, millrace } from '../../harness/broker_process.ts';
import { entry, runCommand } from '../../harness/command_line.ts';

const test = suite('consume');
const guardMs = 30_000;
let broker: BrokerProcess;

test.before(async () => {
  broker = await BrokerProcess.start({ launcher: millrace });
});

test.after(() => broker.dispose());

/** Runs a command that goes on, until `see` has come for the last time. */
function follow(...args: string[]): {
  see: (text: string) => Promise<void>;
  stop: () => Promise<number>;
} {
  const env = { ...process.env, MILLRACE_BOOTSTRAP: broker.bootstrap };
  const child = spawn(process.execPath, [entry, 'consume', ...args], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let out = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text;
  });
  const signal = AbortSignal.timeout(guardMs);
  return {
    async see(text) {
      while (!out.includes(text)) await once(child.stdout, 'data', { signal });
    },
    async stop() {
      const ended = once(child, 'close');
      child.kill('SIGINT');
      const [code] = (await ended) as [number];
      return code;
    },
  };
}

test('--follow shows each message when it comes, and ends well with Ctrl-C', async () => {
  await runCommand(['produce', 'orders', 'one', 'two'], broker.bootstrap);
  const following = follow('orders', '--follow');
  await following.see('one\ntwo\n');
  await runCommand(['produce', 'orders', 'three'], broker.bootstrap);
  await following.see('three\n');
  assert.equal(await following.stop(), 0);
});

test('a group goes on where it was when it was interrupted', async () => {
  const first = follow('orders', '--follow', '--group', 'readers');
  await first.see('three\n');
  assert.equal(await first.stop(), 0);
  await runCommand(['produce', 'orders', 'four'], broker.bootstrap);
  const second = await runCommand(['consume', 'orders', '--group', 'readers'], broker.bootstrap);
  assert.match(second.out, /^(three\n)?four\n$/);
});

test.run();
