/** What the suites of the first-party client stand on: a broker of whichever kind, and a client of it, near or through a proxy. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { Client, MillraceError } from '../../net/client/client.ts';
import { BrokerProcess, type Launcher, type Settings } from './broker_process.ts';
import { Client as RawClient } from './client.ts';
import { RoughProxy } from './rough_proxy.ts';
import { splitMix } from './split_mix.ts';

/** A broker, the tests' own client of it, and the one under test. */
export interface Stage {
  broker: BrokerProcess;
  raw: RawClient;
  client: Client;
}

/** The client under test knows the broker by the proxy's address alone. */
export interface RoughStage {
  broker: BrokerProcess;
  proxy: RoughProxy;
  client: Client;
}

type Steps<S> = Readonly<Record<string, (stage: S) => Promise<void>>>;

/** Runs each step as a test with one broker for all. */
export function runStaged(
  title: string,
  launcher: Launcher | undefined,
  settings: Settings,
  steps: Steps<Stage>,
): void {
  const test = suite<Partial<Stage>>(title);
  test.before(async (context) => {
    const broker = await BrokerProcess.start(startOptions(launcher, settings));
    context.broker = broker;
    context.raw = await RawClient.connect(broker);
    context.client = new Client({ bootstrap: broker.bootstrap });
  });
  test.after(async ({ broker, raw, client }) => {
    await client?.close();
    raw?.close();
    await broker?.dispose();
  });
  for (const [what, step] of Object.entries(steps)) test(what, (context) => step(context as Stage));
  test.run();
}

/** The same with a proxy before the broker, whose chances come from MILLRACE_SEED. */
export function runRough(
  title: string,
  launcher: Launcher | undefined,
  settings: Settings,
  steps: Steps<RoughStage>,
): void {
  const test = suite<Partial<RoughStage>>(title);
  test.before(async (context) => {
    const proxy = await RoughProxy.open(splitMix(Number(process.env['MILLRACE_SEED'] ?? 1)));
    context.proxy = proxy;
    const options = startOptions(launcher, { ...proxy.settings, ...settings });
    context.broker = await BrokerProcess.start(options);
    proxy.leadTo(context.broker.port);
    context.client = new Client({ bootstrap: proxy.bootstrap });
  });
  test.after(async ({ broker, proxy, client }) => {
    await client?.close();
    proxy?.close();
    await broker?.dispose();
  });
  for (const [what, step] of Object.entries(steps))
    test(what, (context) => step(context as RoughStage));
  test.run();
}

function startOptions(
  launcher: Launcher | undefined,
  settings: Settings,
): Parameters<typeof BrokerProcess.start>[0] {
  return launcher === undefined ? { settings } : { launcher, settings };
}

/** What it rejects with, which is to be an error of the client. */
export async function failure(promise: Promise<unknown>): Promise<MillraceError> {
  const error: unknown = await promise.then(
    () => assert.fail('it should have failed'),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof MillraceError, String(error));
  return error;
}
