import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { type LoadedConfig, loadBrokerConfig } from '../../../net/config/load.ts';

const test = suite('quorum_config');

const here = 'controller.quorum.voters=3@127.0.0.1:9393,1@127.0.0.1:9193,2@127.0.0.1:9293';
const listeners = 'listeners=PLAINTEXT://127.0.0.1:9192,CONTROLLER://127.0.0.1:9193';
const apart = 'controller.quorum.voters=1@mill-1:9093,2@mill-2:9093,3@mill-3:9093';

function load(...sets: string[]): LoadedConfig {
  const surroundings = { cwd: '/', hostname: 'mill', memoryBytes: 2 ** 33 };
  return loadBrokerConfig({ sets, surroundings });
}

test('without voters a node is alone, and so it is with itself as the only one', () => {
  assert.deepEqual(load().config?.quorum.voters, []);
  assert.deepEqual(load('controller.quorum.voters=1@a:9093').config?.quorum.voters, []);
});

test('voters are taken in the order of their ids, and the controllers get their listener', () => {
  const { config, errors, warnings } = load(here, listeners);
  assert.deepEqual(errors, []);
  assert.deepEqual(warnings, []);
  assert.deepEqual(config?.quorum.voters, [
    { nodeId: 1, host: '127.0.0.1', port: 9193 },
    { nodeId: 2, host: '127.0.0.1', port: 9293 },
    { nodeId: 3, host: '127.0.0.1', port: 9393 },
  ]);
  const names = [config?.listeners[0]?.name, config?.controllerListeners[0]?.name];
  assert.deepEqual(names, ['PLAINTEXT', 'CONTROLLER']);
});

test('addresses of IPv6 stand in brackets', () => {
  const { config } = load(
    'controller.quorum.voters=1@[::1]:9193,2@[::1]:9293,3@[::1]:9393',
    'listeners=PLAINTEXT://[::1]:9192,CONTROLLER://[::1]:9193',
  );
  assert.equal(config?.quorum.voters[0]?.host, '::1');
});

test("listeners of controllers are told by their own address, the advertised one or the host's name", () => {
  const on = (...sets: string[]): unknown[] => {
    const { config } = load(apart, 'listeners=PLAINTEXT://:9092,CONTROLLER://:9093', ...sets);
    return (config?.advertisedControllerListeners ?? []).map(({ host, port }) => [host, port]);
  };
  assert.deepEqual(on(), [['mill', 9093]]);
  assert.deepEqual(on('advertised.listeners=PLAINTEXT://a:9092,CONTROLLER://b:9193'), [
    ['b', 9193],
  ]);
});

const refusals: [string[], string][] = [
  [
    ['controller.quorum.voters=1@a'],
    'controller.quorum.voters=1@a (--set): allowed: id@host:port with a port from 1 to 65535, comma-separated. 1@a is not that.',
  ],
  [
    ['controller.quorum.voters=1@a:0,2@b:1', listeners],
    'controller.quorum.voters=1@a:0,2@b:1 (--set): allowed: id@host:port with a port from 1 to 65535, comma-separated. 1@a:0 is not that.',
  ],
  [
    ['controller.quorum.voters=2147483648@a:1,2@b:1', listeners],
    'controller.quorum.voters=2147483648@a:1,2@b:1 (--set): allowed: id@host:port with a port from 1 to 65535, comma-separated. 2147483648@a:1 is not that.',
  ],
  [
    ['controller.quorum.voters=1@a:1,1@b:1,3@c:1', listeners],
    'controller.quorum.voters=1@a:1,1@b:1,3@c:1 (--set): the id 1 stands twice. Allowed: each once.',
  ],
  [
    ['controller.quorum.voters=1@a:1,2@a:1,3@c:1', listeners],
    'controller.quorum.voters=1@a:1,2@a:1,3@c:1 (--set): a:1 stands twice. Allowed: each address once.',
  ],
  [
    ['broker.heartbeat.interval.ms=0'],
    'broker.heartbeat.interval.ms=0 (--set): allowed: at least 1.',
  ],
  [
    ['broker.session.timeout.ms=2000'],
    'broker.session.timeout.ms=2000 (--set): a broker would be taken for dead between two heartbeats. Allowed: more than broker.heartbeat.interval.ms=2000.',
  ],
  [
    [apart, listeners],
    'listeners=PLAINTEXT://127.0.0.1:9192,CONTROLLER://127.0.0.1:9193 (--set): the other brokers of the cluster would be sent to 127.0.0.1, and voter 2 is at mill-2. Allowed: for PLAINTEXT an address by which other hosts reach this one.',
  ],
  [
    ['replica.fetch.wait.max.ms=40000'],
    'replica.fetch.wait.max.ms=40000 (--set): allowed: at most replica.lag.time.max.ms=30000.',
  ],
];

test('what cannot work is refused, with what is allowed', () => {
  for (const [sets, error] of refusals) {
    const loaded = load(...sets);
    assert.equal(loaded.errors[0], error);
    assert.equal(loaded.config, null);
  }
});

test('what will surprise somebody is a warning', () => {
  assert.deepEqual(load(here, listeners, 'node.id=4').warnings, [
    'node.id=4 is not among the voters of controller.quorum.voters: this node joins their cluster as an observer.',
  ]);
  const two = 'controller.quorum.voters=1@127.0.0.1:9193,2@127.0.0.1:9293';
  assert.deepEqual(load(two, listeners).warnings, [
    'controller.quorum.voters names 2 voters: an even number survives no more failures than one less.',
  ]);
  assert.deepEqual(load(here, listeners, 'node.id=2').warnings, [
    'controller.quorum.voters sends the other voters to port 9293 of this node, and its listener for controllers is on 9193.',
  ]);
  const { warnings } = load(
    apart,
    'listeners=PLAINTEXT://mill-1:9092,CONTROLLER://:9093',
    'default.replication.factor=3',
  );
  assert.deepEqual(warnings, [
    "Listener CONTROLLER on all interfaces, port 9093: everybody who can connect can change the cluster's metadata, there is no authentication yet.",
    'Listener PLAINTEXT on mill-1, port 9092: everybody who can connect can read and write everything, there is no authentication yet.',
  ]);
});

test.run();
