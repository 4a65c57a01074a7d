/** What people are told who cannot reach a broker, and with which exit code. */
import assert from 'node:assert/strict';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { suite } from 'uvu';
import { type CommandRun, runCommand } from '../../harness/command_line.ts';
import { certificate as cert, privateKey as key } from '../../harness/tls_certificate.ts';

const test = suite('connect');
const millrace = (...args: string[]): Promise<CommandRun> => runCommand(args);

function listen(server: ReturnType<typeof createServer>): Promise<string> {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      resolve(`127.0.0.1:${(server.address() as AddressInfo).port}`);
    });
  });
}

test('no broker there', async () => {
  const server = createServer();
  const address = await listen(server);
  await new Promise((resolve) => server.close(resolve));
  const { code, out, err } = await millrace('topic', 'list', '-b', address, '--timeout', '1');
  assert.deepEqual([code, out], [3, '']);
  assert.match(err, new RegExp(`^millrace: .*${address}.*\\n  Check that the broker runs`));
  const json = await millrace('topic', 'list', '-b', address, '--timeout', '1', '--json');
  const { error } = JSON.parse(json.err) as { error: { code: string; remedy: string } };
  assert.equal(error.code, 'BROKER_UNREACHABLE');
});

test('another service on that port', async () => {
  const server = createHttpServer((_, response) => response.end('hello'));
  const address = await listen(server);
  try {
    const { code, err } = await millrace('cluster-info', '-b', address, '--timeout', '2');
    assert.equal(code, 3);
    assert.match(err, /^millrace: .*\n {2}Check the port/);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test('a TLS listener that is addressed in plain text', async () => {
  const server = createTlsServer({ key, cert }, (socket) => socket.on('error', () => {}).resume());
  server.on('tlsClientError', () => {});
  const address = await listen(server);
  try {
    const { code, out, err } = await millrace('topic', 'list', '-b', address, '--timeout', '2');
    assert.deepEqual([code, out], [3, '']);
    assert.equal(
      err,
      `millrace: ${address} is a TLS listener, and was addressed in plain text\n` +
        "  Use TLS (`tls: true` in the client's options, `--tls` on the command line), or the port of the broker's PLAINTEXT listener.\n",
    );
    const untrusted = await millrace('topic', 'list', '-b', address, '--tls', '--json');
    assert.equal(untrusted.code, 3);
    const { error } = JSON.parse(untrusted.err) as { error: { message: string; remedy: string } };
    assert.match(error.message, /^the certificate of .* is not trusted: self-signed certificate/);
    assert.match(error.remedy, /NODE_EXTRA_CA_CERTS/);
  } finally {
    server.close();
  }
});

test('a service that takes connections and says nothing', async () => {
  const sockets: Socket[] = [];
  const server = createServer((socket) => void sockets.push(socket.on('error', () => {}).resume()));
  const address = await listen(server);
  try {
    const { code, err } = await millrace('topic', 'list', '-b', address, '--timeout', '1');
    assert.equal(code, 3);
    assert.match(
      err,
      /^millrace: 127.* took the connection, and did not answer.*\n {2}Check the port/,
    );
  } finally {
    for (const socket of sockets) socket.destroy();
    server.close();
  }
});

/** Command lines that are refused before anybody is asked, and how that begins. */
const refused: [string[], RegExp][] = [
  [['topic'], /^Usage: millrace topic /],
  [['topic', 'creat'], /^error: unknown command 'creat'\n\(Did you mean create\?\)/],
  [['topic', 'create'], /^error: missing required argument 'topic'/],
  [['topic', 'create', 'x', '-p', '0'], /Allowed: a whole number from 1 to 100000\.$/m],
  [['topic', 'alter', 'x', '--set', 'abc'], /Allowed: key=value\.$/m],
  [['topic', 'list', '-b', 'nowhere:x'], /^millrace: .*nowhere/],
  [['topic', 'alter', 'x'], /^millrace: there is nothing to change\.\n {2}Say what: --set/],
  [['group', 'reset', 'g', '--to', 'there'], /Allowed: earliest, latest or an offset\.$/m],
  [['group', 'reset', 'g', '--to-time', 'soon'], /Allowed: a date such as/],
  [['group', 'reset', 'g', '--to', '1'], /^millrace: say what: either --topic, or --all-topics/],
  [['group', 'reset', 'g', '--all-topics'], /^millrace: say where to: one of --to/],
  [['config', 'describe', 'user', 'x'], /Allowed choices are topic, broker, group\.$/m],
  [['consume', 'x', '--from', 'noon'], /Allowed: earliest, latest, an offset, a date/],
  [['consume', 'x', '--tail', '1', '--from', '2'], /^millrace: --tail and --from cannot/],
  [['consume', 'x', '-g', 'g', '--tail', '1'], /^millrace: a group begins where it has stopped/],
  [['produce', 'x', '--acks', '2'], /Allowed: all, 1 or 0\.$/m],
  [
    ['produce', 'x', '--file', '/no/such'],
    /^millrace: --file \/no\/such: there is no such file\.$/m,
  ],
  [['produce', 'x', 'y', '--file', 'z'], /^millrace: values and --file cannot be combined/],
  [['bench', 'produce', '--size', 'big'], /Allowed: a whole number from 8 to 100000000\.$/m],
  [['log', 'dump', '--from', '-1'], /Allowed: a whole number from 0 to/],
];

test('wrong usage is told at once, with exit code 2', async () => {
  const runs = refused.map(async ([args, text]) => {
    const { code, err } = await millrace(...args);
    assert.match(err, text, args.join(' '));
    assert.equal(code, 2, args.join(' '));
  });
  await Promise.all(runs);
});

test('every command has help with examples', async () => {
  const commands = ['topic', 'group', 'config', 'cluster-info', 'produce', 'consume', 'bench'];
  const others = ['start', 'cluster', 'group reset', 'log verify', 'log dump'];
  const runs = [...commands, ...others].map(async (name) => {
    const { code, out } = await millrace(...name.split(' '), '--help');
    assert.equal(code, 0);
    assert.match(out, /\nExamples:\n {2}\S/, name);
    const wide = out.split('\n').filter((line) => line.length > 80);
    assert.deepEqual(wide, [], name);
  });
  await Promise.all(runs);
});

test.run();
