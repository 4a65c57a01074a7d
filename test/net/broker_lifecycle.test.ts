import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { BrokerLifecycle, type ControllerPath } from '../../net/broker_lifecycle.ts';
import { LevelLogger } from '../../net/logger.ts';
import type { QuorumRequestOf } from '../../net/quorum_api.ts';
import { registration } from '../replication/metadata/fixtures.ts';
import { eventually } from './server/harness.ts';

const test = suite('broker_lifecycle');

type Heartbeat = QuorumRequestOf<'brokerHeartbeat'>;

/** What a heartbeat is answered: an error code, or what the controller says. */
type Verdict = number | { isFenced: boolean; shouldShutDown: boolean };

interface World {
  readonly lifecycle: BrokerLifecycle;
  readonly lines: string[];
  readonly beats: Heartbeat[];
  /** Registrations so far. */
  registered: number;
  /** The codes of the next registrations; those after them succeed. */
  refusals: number[];
  verdict: Verdict;
  silentMs: number;
  canBeLetGo: boolean;
}

function open(): World {
  const lines: string[] = [];
  const controller = {
    request: async (request: { type: string }) => {
      if (request.type === 'registerBroker') {
        world.registered += 1;
        const errorCode = world.refusals.shift();
        if (errorCode !== undefined) return { errorCode, errorMessage: 'no', result: null };
        return { errorCode: 0, result: { brokerEpoch: 100 + world.registered } };
      }
      world.beats.push(request as Heartbeat);
      const { verdict } = world;
      if (typeof verdict === 'number')
        return { errorCode: verdict, errorMessage: 'no', result: null };
      return { errorCode: 0, result: { isCaughtUp: true, ...verdict } };
    },
  } as unknown as ControllerPath;
  const lifecycle = new BrokerLifecycle({
    controller,
    registration: registration(1),
    heartbeatIntervalMs: 5,
    sessionTimeoutMs: 50,
    appliedOffset: () => 77,
    silentMs: () => world.silentMs,
    canBeLetGo: () => world.canBeLetGo,
    offlineLogDirs: () => [],
    logger: new LevelLogger(
      { format: 'text', level: 'info' },
      (_level, message) => lines.push(message),
      () => performance.now(),
    ),
  });
  const world: World = {
    lifecycle,
    lines,
    beats: [],
    registered: 0,
    refusals: [],
    verdict: { isFenced: true, shouldShutDown: false },
    silentMs: 0,
    canBeLetGo: true,
  };
  return world;
}

test('a broker registers, wants to be fenced while it starts, and is unfenced when it is ready', async () => {
  const world = open();
  const { lifecycle, beats } = world;
  assert.equal(await lifecycle.register(), 101);
  await eventually(() => beats.length >= 2);
  assert.deepEqual(beats[0], {
    type: 'brokerHeartbeat',
    brokerId: 1,
    brokerEpoch: 101,
    currentMetadataOffset: 77,
    wantFence: true,
    wantShutDown: false,
    offlineLogDirs: [],
  });
  lifecycle.setReady();
  await eventually(() => beats.at(-1)?.wantFence === false);
  world.verdict = { isFenced: false, shouldShutDown: false };
  await lifecycle.unfenced;
  lifecycle.close();
});

test('it waits for a leader and for its last run to be given up, and says so', async () => {
  const world = open();
  world.refusals = [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.DUPLICATE_BROKER_REGISTRATION];
  await world.lifecycle.register();
  assert.equal(world.registered, 3);
  assert.match(world.lines[0]!, /no leader yet/);
  assert.match(world.lines[1]!, /last run has not been given up/);
  world.lifecycle.close();
});

test('a refusal that does not pass is an error for people', async () => {
  const world = open();
  world.refusals = [ErrorCode.INCONSISTENT_CLUSTER_ID];
  await assert.rejects(world.lifecycle.register(), /the controller refused the broker: no/);
  world.lifecycle.close();
});

test('who is not known any more registers again, and who was fenced comes back', async () => {
  const world = open();
  const { lifecycle, beats } = world;
  await lifecycle.register();
  lifecycle.setReady();
  world.verdict = { isFenced: false, shouldShutDown: false };
  await lifecycle.unfenced;
  world.verdict = ErrorCode.STALE_BROKER_EPOCH;
  await eventually(() => world.registered === 2);
  world.verdict = { isFenced: false, shouldShutDown: false };
  await eventually(() => beats.at(-1)?.brokerEpoch === 102);
  world.verdict = { isFenced: true, shouldShutDown: false };
  await eventually(() => world.lines.at(-1)?.includes('has fenced this broker') === true);
  world.verdict = { isFenced: false, shouldShutDown: false };
  await eventually(() => world.lines.at(-1)?.includes('has unfenced this broker') === true);
  lifecycle.close();
});

test('a broker with a hanging thread sends no heartbeats', async () => {
  const world = open();
  await world.lifecycle.register();
  await eventually(() => world.beats.length > 0);
  world.silentMs = 1_000;
  await eventually(() => world.lines.at(-1)?.includes('does not respond') === true);
  const before = world.beats.length;
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(world.beats.length, before);
  world.silentMs = 0;
  await eventually(() => world.beats.length > before);
  world.lifecycle.close();
});

test('a controlled shutdown lasts until the controller lets go', async () => {
  const world = open();
  await world.lifecycle.register();
  world.lifecycle.setReady();
  world.verdict = { isFenced: false, shouldShutDown: false };
  await world.lifecycle.unfenced;
  let gone = false;
  const leaving = world.lifecycle.shutDown().then(() => {
    gone = true;
  });
  await eventually(() => world.beats.filter(({ wantShutDown }) => wantShutDown).length >= 2);
  assert.equal(gone, false);
  world.verdict = { isFenced: false, shouldShutDown: true };
  await leaving;
  const { length } = world.beats;
  await new Promise((resolve) => setTimeout(resolve, 30));
  assert.equal(world.beats.length, length, 'no heartbeat after it');
});

test('a controlled shutdown ends when no controller answers', async () => {
  const world = open();
  await world.lifecycle.register();
  world.verdict = ErrorCode.REQUEST_TIMED_OUT;
  await world.lifecycle.shutDown();
  assert.match(world.lines.at(-1)!, /could not be moved away/);
});

test('a controlled shutdown asks nobody when nobody is left', async () => {
  const world = open();
  await world.lifecycle.register();
  await eventually(() => world.beats.length > 0);
  world.canBeLetGo = false;
  await world.lifecycle.shutDown();
  assert(world.beats.every(({ wantShutDown }) => !wantShutDown));
  assert.match(world.lines.at(-1)!, /leadership stays where it is/);
});

test('a broker that never registered stops at once', async () => {
  const world = open();
  await world.lifecycle.shutDown();
  assert.equal(world.beats.length, 0);
});

test.run();
