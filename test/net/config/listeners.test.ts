import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { isLoopback, isWildcard, parseEndpoint } from '../../../net/config/listeners.ts';
import { type LoadedConfig, loadBrokerConfig } from '../../../net/config/load.ts';

const test = suite('listeners');

function load(...sets: string[]): LoadedConfig {
  const surroundings = { cwd: '/', hostname: 'mill', memoryBytes: 2 ** 33 };
  return loadBrokerConfig({ sets, surroundings });
}

test('endpoints are a name, a host and a port', () => {
  const parts = (text: string): unknown[] | null => {
    const endpoint = parseEndpoint(text);
    return endpoint === null ? null : [endpoint.name, endpoint.host, endpoint.port];
  };
  assert.deepEqual(parts('PLAINTEXT://127.0.0.1:9092'), ['PLAINTEXT', '127.0.0.1', 9092]);
  assert.deepEqual(parts('external://broker-1.example:0'), ['EXTERNAL', 'broker-1.example', 0]);
  assert.deepEqual(parts('PLAINTEXT://:9092'), ['PLAINTEXT', '', 9092]);
  assert.deepEqual(parts('A_1://[fe80::1%eth0]:1'), ['A_1', 'fe80::1%eth0', 1]);
  assert.deepEqual(parts('A://::1:9092'), ['A', '::1', 9092]);
  for (const bad of [
    '127.0.0.1:9092',
    'A://host',
    'A://host:',
    'A://host:65536',
    'A://h:-1',
    '://h:1',
    'A://a b:1',
    'A://[x:1',
    '',
  ]) {
    assert.equal(parts(bad), null, bad);
  }
});

test('addresses of every interface and of this machine alone', () => {
  for (const host of ['', '0.0.0.0', '::', '0:0:0:0:0:0:0:0']) assert(isWildcard(host), host);
  for (const host of ['127.0.0.1', '::1', 'a', '0.0.0.1']) assert(!isWildcard(host), host);
  for (const host of ['localhost', '127.0.0.1', '127.9.9.9', '::1']) assert(isLoopback(host), host);
  for (const host of ['', '0.0.0.0', '10.0.0.1', 'localhost.example'])
    assert(!isLoopback(host), host);
});

/** Settings that are refused, and the text that says so. */
const refusals: [string[], string][] = [
  [
    ['listeners=127.0.0.1:9092'],
    'listeners=127.0.0.1:9092 (--set): allowed: NAME://host:port with a port from 0 to 65535, comma-separated. 127.0.0.1:9092 is not that.',
  ],
  [['listeners='], 'listeners= (--set): allowed: a comma-separated list, each once, at least one.'],
  [
    ['listeners=SSL://127.0.0.1:9093'],
    'listeners=SSL://127.0.0.1:9093 (--set): SSL://127.0.0.1:9093 would be SSL, and Millrace has no TLS and no SASL yet. It does not open such a listener as plain text. Allowed: PLAINTEXT listeners.',
  ],
  [
    ['listeners=IN://127.0.0.1:1', 'listener.security.protocol.map=IN:SASL_PLAINTEXT'],
    'listeners=IN://127.0.0.1:1 (--set): IN://127.0.0.1:1 would be SASL_PLAINTEXT, and Millrace has no TLS and no SASL yet. It does not open such a listener as plain text. Allowed: PLAINTEXT listeners.',
  ],
  [
    ['listeners=IN://127.0.0.1:1'],
    'listeners=IN://127.0.0.1:1 (--set): listener.security.protocol.map has no protocol for IN. Allowed: names that it has, such as PLAINTEXT.',
  ],
  [
    ['listener.security.protocol.map=PLAINTEXT:TLS'],
    'listener.security.protocol.map=PLAINTEXT:TLS (--set): allowed: NAME:PROTOCOL, comma-separated, the protocol one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL.',
  ],
  [
    ['listeners=PLAINTEXT://a:1,PLAINTEXT://a:2'],
    'listeners=PLAINTEXT://a:1,PLAINTEXT://a:2 (--set): the name PLAINTEXT stands twice. Allowed: each once.',
  ],
  [
    [
      'listeners=PLAINTEXT://a:1,B://a:1',
      'listener.security.protocol.map=PLAINTEXT:PLAINTEXT,B:PLAINTEXT',
    ],
    'listeners=PLAINTEXT://a:1,B://a:1 (--set): a:1 stands twice. Allowed: each address once.',
  ],
  [
    ['listeners=CONTROLLER://a:1', 'controller.listener.names=CONTROLLER'],
    'listeners=CONTROLLER://a:1 (--set): every listener is kept for controllers by controller.listener.names. Allowed: at least one for clients.',
  ],
  [
    ['advertised.listeners=PLAINTEXT://0.0.0.0:9092'],
    'advertised.listeners=PLAINTEXT://0.0.0.0:9092 (--set): clients cannot connect to 0.0.0.0. Allowed: a name or address by which they reach this machine.',
  ],
  [
    ['advertised.listeners=PLAINTEXT://:9092'],
    'advertised.listeners=PLAINTEXT://:9092 (--set): clients cannot connect to an empty host. Allowed: a name or address by which they reach this machine.',
  ],
  [
    ['advertised.listeners=OUT://a:9092'],
    'advertised.listeners=OUT://a:9092 (--set): listeners has no OUT. Allowed: the names in listeners (PLAINTEXT).',
  ],
  [
    ['inter.broker.listener.name=OUT'],
    'inter.broker.listener.name=OUT (--set): allowed: one of the names in listeners (PLAINTEXT).',
  ],
  [
    ['inter.broker.listener.name=PLAINTEXT', 'security.inter.broker.protocol=PLAINTEXT'],
    'inter.broker.listener.name=PLAINTEXT (--set): security.inter.broker.protocol is set too. Allowed: one of the two.',
  ],
];

test('listeners that cannot be opened as they are meant are refused', () => {
  for (const [sets, error] of refusals) {
    const loaded = load(...sets);
    assert.equal(loaded.errors[0], error);
    assert.equal(loaded.config, null);
  }
});

test('each listener is advertised under its own name, or as it is', () => {
  const { config } = load(
    'listeners=IN://10.0.0.1:1,OUT://10.0.0.2:2',
    'listener.security.protocol.map=IN:PLAINTEXT,OUT:PLAINTEXT',
    'advertised.listeners=OUT://public.example:12',
  );
  const addresses = config?.advertisedListeners.map(({ name, host, port }) => [name, host, port]);
  assert.deepEqual(addresses, [
    ['IN', '10.0.0.1', 1],
    ['OUT', 'public.example', 12],
  ]);
  assert.equal(config?.interBrokerListenerName, 'IN');
});

test('a listener on all interfaces is advertised by host name, with a warning that says what to set', () => {
  const { config, warnings } = load('listeners=PLAINTEXT://0.0.0.0:9092');
  assert.equal(config?.advertisedListeners[0]?.host, 'mill');
  assert.deepEqual(warnings, [
    'Listener PLAINTEXT on all interfaces, port 9092: everybody who can connect can read and write everything, there is no authentication yet.',
    'Clients of listener PLAINTEXT are sent to mill:9092. If they cannot reach that name, set advertised.listeners=PLAINTEXT://<address they can reach>:9092.',
  ]);
});

test('a listener beyond loopback is a warning, loopback is none', () => {
  assert.deepEqual(load('listeners=PLAINTEXT://10.0.0.5:9092').warnings, [
    'Listener PLAINTEXT on 10.0.0.5, port 9092: everybody who can connect can read and write everything, there is no authentication yet.',
  ]);
  assert.deepEqual(load('listeners=PLAINTEXT://[::1]:9092').warnings, []);
});

test('controller listeners of a node that is alone stay closed, and are plain without a map', () => {
  const { config, errors, warnings } = load(
    'listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093',
  );
  assert.deepEqual(errors, []);
  assert.deepEqual(
    config?.listeners.map(({ name }) => name),
    ['PLAINTEXT'],
  );
  assert.deepEqual(
    config?.controllerListeners.map(({ port }) => port),
    [9093],
  );
  assert.deepEqual(warnings, [
    'Controller listener CONTROLLER://127.0.0.1:9093 stays closed: this node is the only voter.',
  ]);
});

test.run();
